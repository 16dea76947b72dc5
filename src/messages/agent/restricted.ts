/** What a takeover may do with the host's dispatcher. */

import type { HostReplyPayload } from "../facts.js";
import { withoutTrust } from "../outbound/trust.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { ReplyDispatchEvent } from "../types.js";

/** May no user get a reply of the turn? */
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

/** Admits everything, and nothing as trusted: whoever takes over cannot vouch for local media in the host's name. */
export function trustingNothing(dispatcher: ReplyDispatcher): ReplyDispatcher {
  const untrusted = (payload: HostReplyPayload) => withoutTrust({ ...payload });
  return {
    sendToolResult: (payload) => dispatcher.sendToolResult(untrusted(payload)),
    sendBlockReply: (payload) => dispatcher.sendBlockReply(untrusted(payload)),
    sendFinalReply: (payload) => dispatcher.sendFinalReply(untrusted(payload)),
    getQueuedCounts: () => dispatcher.getQueuedCounts(),
    waitForIdle: () => dispatcher.waitForIdle(),
  };
}
