/** The assistant's turn of a transcript: who shows it, and that it is written once. */

import type { TurnLife } from "./life.js";
import type { TranscriptMessage, TranscriptReceipt, TranscriptTarget, TranscriptWriter } from "./transcript.js";

/** The message is shown by its dispatch: as the replies that were delivered, not as the transcript has it. */
export type DisplayOwnership = {
  readonly owner: "reply-dispatch";
  readonly runId: string;
  /** What the runtime said, before hooks that change transcripts alone. */
  readonly text: string;
};

export type Displayed<M> = M & { readonly display?: DisplayOwnership };

/**
 * To be called before the message is appended; `originalText` was captured before hooks that change transcripts alone. What it returns
 * has content and ids as they were. It gives access to nothing, and is for its own turn: after that, the message comes back unchanged.
 */
export type PrepareAssistantTranscriptMessage = <M extends TranscriptMessage>(
  message: M,
  originalText: string,
) => Displayed<M>;

export type AssistantPreparerOptions = {
  readonly life: TurnLife;
  readonly runId: string;
  /** Told before the message is handed back to be appended. */
  readonly onOwned?: (messageId: string, display: DisplayOwnership) => void;
};

export function assistantPreparer({
  life,
  runId,
  onOwned,
}: AssistantPreparerOptions): PrepareAssistantTranscriptMessage {
  return (message, originalText) => {
    if (life.over !== null || typeof originalText !== "string") return message;
    if (typeof message !== "object" || message === null || message.role !== "assistant") return message;
    if (Object.hasOwn(message, "display")) return message;
    const display: DisplayOwnership = { owner: "reply-dispatch", runId, text: originalText };
    onOwned?.(message.id, display);
    return { ...message, display };
  };
}

export type AssistantTurn = {
  readonly transcripts: TranscriptWriter;
  /** As the host prepared it; a receipt's own target is never written to. */
  readonly target: TranscriptTarget;
  readonly message: TranscriptMessage;
  readonly idempotencyKey: string;
  /** What the runtime says it has written. */
  readonly receipt?: TranscriptReceipt | undefined;
};

/** Appends it unless the runtime has. Rejects as `append` does: HL_TRANSCRIPT_REPLACED where the session was replaced meanwhile. */
export async function persistAssistantTurn(turn: AssistantTurn): Promise<TranscriptReceipt> {
  const { transcripts, target, message, idempotencyKey, receipt } = turn;
  return receipt !== undefined && isReceipt(receipt) ? receipt : transcripts.append(target, message, idempotencyKey);
}

/** Runtimes in JavaScript are not held by the type: what says of no message that it was written keeps none from being written. */
function isReceipt(given: unknown): boolean {
  if (typeof given !== "object" || given === null) return false;
  const { messageId, idempotencyKey }: { readonly messageId?: unknown; readonly idempotencyKey?: unknown } = given;
  return typeof messageId === "string" && typeof idempotencyKey === "string";
}
