/** What a failure says of whether anything went out. */

import { type DeliveryFailure, failureOf } from "../outbound/failure.js";

export type NotSentDetails = {
  /** true: no further attempt would end otherwise. */
  readonly permanent?: boolean;
  /** ms that the channel asks to be left alone, at least; an hour counts at most. */
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
};

/** Thrown by an adapter's `send` that is certain: the channel has not taken this part, and will not. */
export class NotSentError extends Error {
  override readonly name = "NotSentError";
  readonly permanent: boolean;
  readonly retryAfterMs: number;

  constructor(message: string, { permanent = false, retryAfterMs = 0, cause }: NotSentDetails = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.permanent = permanent;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Thrown in the adapter's place: it has not answered in time, and may yet. */
export class SendTimeout extends Error {
  override readonly name = "SendTimeout";
  /** Settles as the adapter does. */
  readonly answer: Promise<unknown>;

  constructor(ms: number, answer: Promise<unknown>) {
    super(`the channel has not answered within ${ms} ms`);
    this.answer = answer;
  }
}

/**
 * `known`: nothing of the part in question went out. That is so where the channel was not asked yet (its stages, a fault of ours), and where
 * its adapter throws a NotSentError. Whatever else a send throws, and one that is late, leaves it `unknown`.
 */
export type Doubt =
  | { readonly kind: "aborted" }
  | { readonly kind: "known"; readonly permanent: boolean; readonly retryAfterMs: number }
  | { readonly kind: "unknown"; readonly answer: Promise<unknown> | null };

export function doubtOf({ at, cause }: DeliveryFailure): Doubt {
  switch (at) {
    case "aborted":
      return { kind: "aborted" };
    case "before-send":
      return { kind: "known", permanent: false, retryAfterMs: 0 };
    case "send":
      if (cause instanceof NotSentError) {
        const { permanent, retryAfterMs } = cause;
        return { kind: "known", permanent, retryAfterMs };
      }
      return { kind: "unknown", answer: cause instanceof SendTimeout ? cause.answer : null };
  }
}

/** As a channel's late refusal is taken. */
export function sendFailure(thrown: unknown): DeliveryFailure {
  return failureOf("send", thrown);
}
