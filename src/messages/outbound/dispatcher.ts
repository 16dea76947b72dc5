/** Replies of one turn in one lane: tool results, blocks and the final one go out in the order in which they were handed over. */

import { thrownText } from "../../subscribers/fault.js";
import { clone } from "../clone.js";
import type { HostReplyPayload, ReplyKind } from "../facts.js";
import { tell } from "../listener.js";
import type { DispatchReceipt, LaneCounts, ReplyDispatcher } from "../reply-dispatcher.js";
import type { ReplyCounts } from "../types.js";
import { requireStages } from "./before-deliver.js";
import { deliverOne } from "./deliver.js";
import { Lane } from "./lane.js";
import { type DeliverOptions, deliveries } from "./options.js";
import { type DeliveryOutcome, isVisible } from "./outcome.js";
import { normalise } from "./payload.js";

export type ReplyDispatcherOptions = Omit<DeliverOptions, "kind"> & {
  /** How each is delivered: by default at once and once; durable custody has its own. Must not reject. */
  readonly deliverOne?: typeof deliverOne;
  /** Told of each reply once it is settled, in the lane's order. */
  readonly onOutcome?: (kind: ReplyKind, outcome: DeliveryOutcome) => void;
};

const NONE: LaneCounts = {
  delivered: 0,
  deliveredNotVisible: 0,
  cancelled: 0,
  failedBeforeSend: 0,
  failedAfterSend: 0,
};

/** Throws a RangeError where a stage of the channel has no valid `timeoutMs`. */
export function createReplyDispatcher(options: ReplyDispatcherOptions): ReplyDispatcher {
  requireStages(options.route.adapter.beforeDeliver ?? []);
  return new LaneDispatcher(options);
}

class LaneDispatcher implements ReplyDispatcher {
  readonly #lane = new Lane();
  readonly #delivery: ReturnType<typeof deliveries>;
  readonly #deliverOne: typeof deliverOne;
  readonly #onOutcome: ReplyDispatcherOptions["onOutcome"];
  readonly #queued = { tool: 0, block: 0, final: 0 };
  readonly #settled = { tool: NONE, block: NONE, final: NONE };
  #admitted = 0;
  #anyVisible = false;

  constructor({ onOutcome, deliverOne: deliverer = deliverOne, ...options }: ReplyDispatcherOptions) {
    this.#delivery = deliveries(options);
    this.#deliverOne = deliverer;
    this.#onOutcome = onOutcome;
  }

  sendToolResult(payload: HostReplyPayload): boolean {
    return this.#admit("tool", payload);
  }

  sendBlockReply(payload: HostReplyPayload): boolean {
    return this.#admit("block", payload);
  }

  sendFinalReply(payload: HostReplyPayload): boolean {
    return this.#admit("final", payload);
  }

  getQueuedCounts(): ReplyCounts {
    return { ...this.#queued };
  }

  async waitForIdle(): Promise<DispatchReceipt> {
    await this.#lane.idle();
    return { ...this.#settled, anyVisibleDelivered: this.#anyVisible };
  }

  #admit(kind: ReplyKind, payload: HostReplyPayload): boolean {
    const admitted = normalise(clone(payload));
    if (admitted === null) return false;
    const delivery = this.#delivery(this.#admitted++, kind);
    this.#queued[kind]++;
    this.#lane.put(async () => {
      const outcome = await this.#deliverOne(admitted, delivery);
      const column = columnOf(outcome);
      this.#settled[kind] = { ...this.#settled[kind], [column]: this.#settled[kind][column] + 1 };
      this.#anyVisible ||= isVisible(outcome);
      tell(
        (settled) => this.#onOutcome?.(kind, settled),
        outcome,
        (thrown) => delivery.warn({ kind: "listener-failed", message: thrownText(thrown) }),
      );
    });
    return true;
  }
}

/** Once the channel was asked to send, nobody knows that nothing went out. */
function columnOf(outcome: DeliveryOutcome): keyof LaneCounts {
  switch (outcome.status) {
    case "sent":
      return isVisible(outcome) ? "delivered" : "deliveredNotVisible";
    case "suppressed":
      return outcome.reason === "no_visible_payload" ? "deliveredNotVisible" : "cancelled";
    case "partial_failed":
      return "failedAfterSend";
    case "failed":
      return outcome.failure.at === "send" ? "failedAfterSend" : "failedBeforeSend";
  }
}
