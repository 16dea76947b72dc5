/** Turns whose replies no user is to get. */

import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { ReplyDispatchEvent } from "../types.js";

export function isDeliverySuppressed({
  sendPolicy,
  suppressUserDelivery,
}: Pick<ReplyDispatchEvent, "sendPolicy" | "suppressUserDelivery">): boolean {
  return sendPolicy === "deny" || suppressUserDelivery === true;
}

/** Admits nothing, whatever a takeover makes of the event: it is the host that keeps a policy. */
export function admittingNothing(dispatcher: ReplyDispatcher): ReplyDispatcher {
  return {
    sendToolResult: () => false,
    sendBlockReply: () => false,
    sendFinalReply: () => false,
    getQueuedCounts: () => dispatcher.getQueuedCounts(),
    waitForIdle: () => dispatcher.waitForIdle(),
  };
}
