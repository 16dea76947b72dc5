/** Where a turn's replies go, and what takeovers are told, as the host has planned it or by default. */

import { messageContext } from "../inbound/contexts.js";
import { known } from "../inbound/known.js";
import type { ChannelAdapter, Route } from "../outbound/adapter.js";
import type { ReplyDispatchEvent } from "../types.js";
import type { TurnPlan } from "./options.js";
import type { TurnMessage } from "./turn.js";

/** Throws a RangeError where there is no such channel. */
export function routeOf(
  message: TurnMessage,
  { replyTo }: TurnPlan,
  channels: ReadonlyMap<string, ChannelAdapter>,
): Route {
  const { channelId, to, threadId, accountId } = replyTo ?? { ...message, to: message.from };
  const adapter = channels.get(channelId);
  if (adapter === undefined) throw new RangeError(`there is no channel ${JSON.stringify(channelId.slice(0, 80))}`);
  const { accountId: _, ...context } = messageContext(message);
  return { adapter, to, ...known({ threadId }), context: { ...context, channelId, ...known({ accountId }) } };
}

export function dispatchEvent(message: TurnMessage, { dispatch, replyTo }: TurnPlan): Omit<ReplyDispatchEvent, "ctx"> {
  const { runId, sessionKey } = message;
  const routed = replyTo !== undefined && replyTo.channelId !== message.channelId;
  return {
    inboundAudio: false,
    shouldRouteToOriginating: routed,
    ...(routed
      ? known({
          originatingChannel: replyTo.channelId,
          originatingTo: replyTo.to,
          originatingAccountId: replyTo.accountId,
          originatingThreadId: replyTo.threadId,
        })
      : {}),
    shouldSendToolSummaries: true,
    shouldSendFullToolDetails: false,
    sendPolicy: "allow",
    ...dispatch,
    runId,
    sessionKey,
  };
}
