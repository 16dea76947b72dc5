/** The start of an agent's run, as its runtime tells the host, and who is to say that the chat is complete. */

import type { TranscriptReceipt, TranscriptStart } from "./transcript.js";

/** What the runtime recorded of a run, once its dispatch has settled. */
export type RunResult = {
  /** As the runtime has it. */
  readonly terminalOutcome?: unknown;
  /** There where the assistant's turn was written. */
  readonly assistantTranscript?: TranscriptReceipt;
};

export type RunStartOptions = {
  /** Offers the completion to the host; a runtime whose event stream owns it leaves this out. */
  readonly completionSource?: "reply-dispatch";
  readonly getResult?: () => RunResult;
};

export type PreparedRunStart = {
  readonly runId: string;
  readonly executionIdentityToken?: string;
  readonly options?: RunStartOptions;
  /** The boundary that was prepared; null: the run has no transcript. */
  readonly transcriptStart: TranscriptStart | null;
};

/** Returns "reply-dispatch", itself and not later, to take the completion; anything else observes. */
export type OnPreparedAgentRunStart = (notification: PreparedRunStart) => unknown;

/** For released plugins: the notification's fields, one by one. */
export type OnAgentRunStart = (
  runId: string,
  executionIdentityToken?: string,
  options?: RunStartOptions,
  transcriptStart?: TranscriptStart | null,
) => unknown;

export type RunStartCallbacks = {
  readonly onPreparedAgentRunStart?: OnPreparedAgentRunStart;
  /** @deprecated Called only where there is no `onPreparedAgentRunStart`; it never takes the completion. */
  readonly onAgentRunStart?: OnAgentRunStart;
};

/**
 * For a runtime: tells the host of the start, by one callback only, and says who owns the completion. Throws what the callback throws.
 * What a callback returns later, or with another type, is no acceptance.
 */
export function announceRunStart(
  { onPreparedAgentRunStart, onAgentRunStart }: RunStartCallbacks,
  notification: PreparedRunStart,
): "reply-dispatch" | "runtime" {
  if (onPreparedAgentRunStart === undefined) {
    const { runId, executionIdentityToken, options, transcriptStart } = notification;
    leave(onAgentRunStart?.(runId, executionIdentityToken, options, transcriptStart));
    return "runtime";
  }
  const answer = onPreparedAgentRunStart(notification);
  if (answer === ACCEPTED && notification.options?.completionSource === ACCEPTED) return ACCEPTED;
  leave(answer);
  return "runtime";
}

export const ACCEPTED = "reply-dispatch";

/** The same callbacks, with somebody told first. Notification and answer go through as they are. */
export function observingRunStart(
  { onPreparedAgentRunStart, onAgentRunStart }: RunStartCallbacks,
  observe: () => void,
): RunStartCallbacks {
  return {
    ...(onPreparedAgentRunStart === undefined
      ? {}
      : {
          onPreparedAgentRunStart: (...notification) => {
            observe();
            return onPreparedAgentRunStart(...notification);
          },
        }),
    ...(onAgentRunStart === undefined
      ? {}
      : {
          onAgentRunStart: (...start) => {
            observe();
            return onAgentRunStart(...start);
          },
        }),
  };
}

/** Nobody waits for what an observer promises. */
export function leave(answer: unknown): void {
  Promise.resolve(answer).catch(() => {});
}
