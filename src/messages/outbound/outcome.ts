/** What became of one payload, and of several as one. */

import type { HostReplyPayload } from "../facts.js";
import type { SendReceipt } from "./adapter.js";
import type { DeliveryFailure } from "./failure.js";
import type { HookEffect } from "./hook-effect.js";

export type SuppressionReason =
  | "cancelled_by_reply_payload_sending_hook"
  | "empty_after_reply_payload_sending_hook"
  | "cancelled_by_message_sending_hook"
  | "empty_after_message_sending_hook"
  | "blocked_by_failed_hook"
  | "cancelled_by_channel"
  | "no_visible_payload";

/** The record of a hook run: `show` tells why. */
export type HookRunRef = {
  readonly hook: "reply_payload_sending" | "message_sending";
  readonly dispatchId: string;
  /** false: the ledger could not be written. */
  readonly recorded: boolean;
};

/** Attempted and successful, though nothing was sent: it is never retried. */
export type Suppressed = {
  readonly status: "suppressed";
  readonly reason: SuppressionReason;
  /** The handler or stage that suppressed it. */
  readonly by?: string;
  readonly hookEffect?: HookEffect;
};

export type Sent = {
  readonly status: "sent";
  /** One for each part that the channel took, in order. */
  readonly receipts: readonly SendReceipt[];
};

/** Something was sent before the failure: whoever sends it again sends that twice. */
export type PartiallyFailed = {
  readonly status: "partial_failed";
  readonly receipts: readonly SendReceipt[];
  readonly failure: DeliveryFailure;
};

export type Failed = { readonly status: "failed"; readonly failure: DeliveryFailure };

export type Ended = Sent | Suppressed | PartiallyFailed | Failed;

/** Where a delivery is kept that is sent durably. */
export type CustodyRef = {
  /** In the queue. */
  readonly id: string;
  /** `pending`: the queue tries again by itself, whatever failed; `unknown`: it may have been sent, and an operator is to say. */
  readonly state: "pending" | "unknown" | "sent" | "failed" | "dropped";
};

export type DeliveryOutcome = Ended & {
  /** Of what a durable queue has taken. */
  readonly custody?: CustodyRef;
  /** As the hooks left it; null where it did not come through them. */
  readonly payload: HostReplyPayload | null;
  /** Runs of the sending hooks, in order. */
  readonly hookRuns: readonly HookRunRef[];
};

/** Of N payloads: as of one, with each one's own. */
export type BatchOutcome = Ended & {
  /** In the order of the payloads. */
  readonly outcomes: readonly DeliveryOutcome[];
};

/**
 * Failed beats sent, sent beats suppressed: a failure after or before anything was sent is a partial one. The first failure and the
 * first hook's or channel's suppression speak for all. No payloads at all are no visible payload.
 */
export function projectBatch(outcomes: readonly DeliveryOutcome[]): BatchOutcome {
  const receipts = outcomes.flatMap(receiptsOf);
  const failure = outcomes.map(failureIn).find((found) => found !== undefined);
  if (failure !== undefined) {
    return receipts.length === 0
      ? { status: "failed", failure, outcomes }
      : { status: "partial_failed", receipts, failure, outcomes };
  }
  if (outcomes.some(({ status }) => status === "sent")) return { status: "sent", receipts, outcomes };
  const suppressed = outcomes.filter((outcome) => outcome.status === "suppressed");
  const speaker = suppressed.find(({ reason }) => reason !== "no_visible_payload");
  if (speaker === undefined) return { status: "suppressed", reason: "no_visible_payload", outcomes };
  const { hookRuns: _, payload: __, custody: ___, ...suppression } = speaker;
  return { ...suppression, outcomes };
}

export function receiptsOf(outcome: Ended): readonly SendReceipt[] {
  switch (outcome.status) {
    case "sent":
    case "partial_failed":
      return outcome.receipts;
    case "suppressed":
    case "failed":
      return [];
  }
}

export function failureIn(outcome: Ended): DeliveryFailure | undefined {
  switch (outcome.status) {
    case "partial_failed":
    case "failed":
      return outcome.failure;
    case "sent":
    case "suppressed":
      return undefined;
  }
}

/** Does the recipient see anything of it? */
export function isVisible(outcome: Ended): boolean {
  return receiptsOf(outcome).some(({ visible }) => visible !== false);
}
