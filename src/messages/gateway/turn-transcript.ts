/** What a transcript keeps of one turn: what was asked, and what was delivered, each once, whoever writes it. */

import type { HostReplyPayload } from "../facts.js";
import { dedupeKey } from "../inbound/dedupe.js";
import { contentOf } from "../inbound/facts-of.js";
import { withoutTrust } from "../outbound/trust.js";
import { persistAssistantTurn } from "../turn/assistant.js";
import type { ChatCompletion } from "../turn/completion.js";
import type { TranscriptSession, TranscriptStart, TranscriptWriter } from "../turn/transcript.js";
import { UserTurnRecorder } from "../turn/user-turn.js";
import type { TurnMessage } from "./turn.js";

/** `SqliteTranscripts` is one. */
export interface Transcripts extends TranscriptWriter {
  /** Where a run that begins now will write. */
  start(session: TranscriptSession): TranscriptStart;
}

export type SaidInTurn = {
  /** Null where the completion is not the host's. */
  readonly chat: ChatCompletion | null;
  /** A runtime that keeps its completion keeps its transcript, too. */
  readonly isRuntimes: boolean;
  readonly delivered: readonly HostReplyPayload[];
};

export class TurnTranscript {
  readonly start: TranscriptStart;
  readonly recorder: UserTurnRecorder;
  readonly #transcripts: Transcripts;
  readonly #message: TurnMessage;
  readonly #warn: (thrown: unknown) => void;

  /** Throws as the transcripts do. */
  constructor(transcripts: Transcripts, message: TurnMessage, sessionId: string, warn: (thrown: unknown) => void) {
    const { agentId = "main", sessionKey, runId, messageId } = message;
    this.#transcripts = transcripts;
    this.#message = message;
    this.#warn = warn;
    this.start = transcripts.start({ agentId, sessionId, sessionKey });
    this.recorder = new UserTurnRecorder({
      transcripts,
      target: this.start,
      message: { id: messageId || runId, role: "user", content: contentOf(message) },
      idempotencyKey: `user:${dedupeKey(message) ?? runId}`,
    });
  }

  /** Never rejects. */
  async keepUserTurn(): Promise<void> {
    try {
      await this.recorder.persist();
    } catch (thrown) {
      this.#warn(thrown);
    }
  }

  /** Never rejects. */
  async keepAssistantTurn({ chat, isRuntimes, delivered }: SaidInTurn): Promise<void> {
    if (isRuntimes || delivered.length === 0) return;
    const key = `assistant:${this.#message.runId}`;
    try {
      await persistAssistantTurn({
        transcripts: this.#transcripts,
        target: this.start,
        message: { id: key, role: "assistant", content: delivered.map(withoutTrust) },
        idempotencyKey: key,
        receipt: chat?.assistantTranscript,
      });
    } catch (thrown) {
      this.#warn(thrown);
    }
  }
}
