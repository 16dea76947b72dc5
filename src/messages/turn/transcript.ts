/** Transcripts of sessions: what is written, where, and what a write comes to. */

/** A session by its key, and which one that is at the moment. */
export type TranscriptSession = { readonly agentId: string; readonly sessionId: string; readonly sessionKey: string };

/** A session's transcript; a session that is replaced has another `generation` from then on. */
export type TranscriptTarget = TranscriptSession & {
  /** Of the store's file. */
  readonly storePath: string;
  /** Null: nothing was written yet. */
  readonly generation: string | null;
};

/** A boundary: what is written from here on is the run's. */
export type TranscriptStart = TranscriptTarget & {
  /** Of the last message, 1-based; null: there is none. */
  readonly maxSeq: number | null;
};

export type TranscriptMessage = {
  readonly id: string;
  readonly role: "user" | "assistant";
  /** JSON. */
  readonly content: unknown;
  readonly [key: string]: unknown;
};

/** Of a message that was written: it need not be written again. It gives no right to write anything else. */
export type TranscriptReceipt = {
  readonly target: TranscriptTarget;
  readonly messageId: string;
  readonly idempotencyKey: string;
  /** Where in the transcript it stands, 1-based. */
  readonly projectionAnchor?: number;
};

export interface TranscriptWriter {
  /**
   * Resolves once the message is on disk, with the receipt of the first message that was appended under that key. Rejects with
   * HL_TRANSCRIPT_REPLACED where the session is not the target's any more, HL_LIMIT_PAYLOAD, and with what its store throws.
   */
  append(target: TranscriptTarget, message: TranscriptMessage, idempotencyKey: string): Promise<TranscriptReceipt>;
}
