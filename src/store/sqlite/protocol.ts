/** What passes between the store and its writer's thread. Each request is answered once, in order. */
import type { AppendRequest, AppendResult } from "../port.js";
import type { Failure } from "./failure.js";

export type WriterData = {
  /** Real path of the ledger. */
  readonly path: string;
  /** How long to wait for another process's transaction. */
  readonly busyTimeoutMs: number;
  /** A thread before this one may have committed what is not on disk yet. */
  readonly resumed: boolean;
};

export type ToWriter =
  | { readonly kind: "append"; readonly requests: readonly AppendRequest[] }
  /** Make everything durable, let go of the file, and end. */
  | { readonly kind: "close" };

export type Outcome = AppendResult | Failure;

export type FromWriter =
  | { readonly kind: "ready" }
  | { readonly kind: "outcomes"; readonly outcomes: readonly Outcome[] }
  /** The writer ends itself: the ledger cannot be opened, or its disk can no longer be trusted. */
  | { readonly kind: "failed"; readonly failure: Failure };

export function isFailure(outcome: Outcome): outcome is Failure {
  return "code" in outcome;
}
