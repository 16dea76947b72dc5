/** What passes between the store and its writer's thread. Each request is answered once, in order. */
import type { AppendRequest, AppendResult } from "../port.js";
import type { DeliveryChange, DeliveryState, QueuedDelivery } from "../queue.js";
import type { Failure } from "./failure.js";

export type WriterData = {
  /** Real path of the ledger. */
  readonly path: string;
  /** How long to wait for another process's transaction. */
  readonly busyTimeoutMs: number;
  /** A thread before this one may have committed what is not on disk yet. */
  readonly resumed: boolean;
};

/** `writer`: the store's, for attempts that begin with it. */
export type PutRequest = {
  readonly kind: "put";
  readonly deliveries: readonly QueuedDelivery[];
  readonly writer: string;
  readonly barrier: boolean;
};

export type ChangeRequest = {
  readonly kind: "change";
  readonly id: string;
  readonly from: readonly DeliveryState[];
  readonly to: DeliveryChange;
  readonly writer: string;
  readonly barrier: boolean;
};

export type QueueRequest = PutRequest | ChangeRequest;

/** Only what concerns the queue has a `kind`. */
export type WriteRequest = AppendRequest | QueueRequest;

export type ToWriter =
  | { readonly kind: "write"; readonly requests: readonly WriteRequest[] }
  /** Make everything durable, let go of the file, and end. */
  | { readonly kind: "close" };

/** Of a request that concerns the queue: whether it found what it was to change. */
export type QueueResult = { readonly changed: boolean };

export type Outcome = AppendResult | QueueResult | Failure;

export type FromWriter =
  | { readonly kind: "ready" }
  | { readonly kind: "outcomes"; readonly outcomes: readonly Outcome[] }
  /** The writer ends itself: the ledger cannot be opened, or its disk can no longer be trusted. */
  | { readonly kind: "failed"; readonly failure: Failure };

export function isFailure(outcome: Outcome): outcome is Failure {
  return "code" in outcome;
}
