/**
 * Payloads on their way out, one after the other: normalised, offered to the sending hooks, stripped of what is the host's own, sent,
 * and told of. One that fails does not keep the others.
 */

import type { HostReplyPayload } from "../facts.js";
import type { SendReceipt } from "./adapter.js";
import { requireStages } from "./before-deliver.js";
import { tellSent } from "./message-sent.js";
import { type DeliverOptions, type Delivery, deliveries } from "./options.js";
import { type BatchOutcome, type DeliveryOutcome, failureIn, projectBatch, receiptsOf } from "./outcome.js";
import { hookRunsOf, prepare } from "./prepare.js";
import { send } from "./send.js";

/** Rejects with a RangeError where a stage of the channel has no valid `timeoutMs`, before anybody is asked; else never. */
export async function deliver(payloads: readonly HostReplyPayload[], options: DeliverOptions): Promise<BatchOutcome> {
  requireStages(options.route.adapter.beforeDeliver ?? []);
  const delivery = deliveries(options);
  const outcomes: DeliveryOutcome[] = [];
  for (const [n, payload] of payloads.entries()) outcomes.push(await deliverOne(payload, delivery(n)));
  return projectBatch(outcomes);
}

/**
 * As callers of old expect it: receipts alone, none for what was suppressed. Rejects with what the first failure was caused by, also
 * where something was sent before it.
 */
export async function deliverDirect(
  payloads: readonly HostReplyPayload[],
  options: DeliverOptions,
): Promise<readonly SendReceipt[]> {
  const { outcomes } = await deliver(payloads, options);
  const failure = outcomes.map(failureIn).find((found) => found !== undefined);
  if (failure !== undefined) throw failure.cause;
  return outcomes.flatMap(receiptsOf);
}

/** Never rejects. */
export async function deliverOne(payload: HostReplyPayload, delivery: Delivery): Promise<DeliveryOutcome> {
  const prepared = await prepare(payload, delivery);
  switch (prepared.end) {
    case "suppressed":
      return { ...prepared.outcome, payload: null, hookRuns: await hookRunsOf(prepared) };
    case "failed": {
      const outcome = { status: "failed", failure: prepared.failure } as const;
      tellSent(outcome, prepared.content, delivery);
      return { ...outcome, payload: null, hookRuns: await hookRunsOf(prepared) };
    }
    case "ready": {
      const { outcome, content } = await send(prepared.payload, delivery);
      tellSent(outcome, content, delivery);
      return { ...outcome, payload: prepared.payload, hookRuns: await hookRunsOf(prepared) };
    }
  }
}
