/** A way to reach one subscriber. The dispatcher keeps the deadline and the record; a subscriber only answers. */

import type { HookMode, Producer } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import type { Answer } from "../payload/answer.js";
import type { Payload } from "../payload/payload.js";

/** `P`: what a subscriber is given. `N`: how hooks are named there. */
export type Invocation<P = Payload, N extends string = HookPoint> = {
  readonly dispatchId: string;
  readonly point: N;
  readonly mode: HookMode;
  readonly payload: P;
  readonly subscriptionId: string | undefined;
  readonly session: string | undefined;
  readonly turn: string | undefined;
  readonly traceparent: string | undefined;
  /**
   * Aborts at the deadline or on the caller's cancellation. Whatever is answered after that is ignored. May be a getter
   * that makes its controller when it is first read: read it once, and only where it is needed.
   */
  readonly signal: AbortSignal;
  /** The same news without a signal to be made for it: `cancel` is called once then, or at once if it has happened. One listener. */
  readonly onAbort: (cancel: () => void) => void;
  /** ms given to this call, > 0; infinite for a handler without a deadline. */
  readonly timeoutMs: number;
  /** ms left now, never negative. */
  readonly remainingMs: () => number;
  /** Told when a subscriber settles once more: that changes nothing, and is counted. */
  readonly extra?: () => void;
};

export interface SubscriberTransport {
  /** Resolves with the admitted answer; a subscriber's fault is an answer, never a rejection. */
  invoke(call: Invocation): Promise<Answer>;
  /** Lets go of the connection. Calls in flight are answered as PROCESS_CRASHED or run out. Idempotent. */
  close(): Promise<void>;
}

/** A subscriber as it stands: who answers, and how. The same object as long as the same one answers. */
export type Reach = { readonly transport: SubscriberTransport; readonly producer: Producer };

/** A subscriber that may have to be started before it can be reached. */
export interface Startable {
  /** What stands. Calls of what does not run fail, and say why. */
  readonly now: Reach;
  /** true: it does not run, and `ready` would start it. */
  readonly due: boolean;
  /** true: its last start failed. */
  readonly failing: boolean;
  /** Starts it where that is due, once for all who wait, and gives what stands then. Never rejects. */
  ready(): Promise<Reach>;
}
