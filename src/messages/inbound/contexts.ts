/** What handlers are told of a message's whereabouts. */

import type { MessageContext, Metadata } from "../facts.js";
import type { BeforeDispatchContext, InboundClaimContext, PluginBinding } from "../types.js";
import { contentOf, providerUpdateOf, replyFacts, traceFacts } from "./facts-of.js";
import { firstNonBlank, known } from "./known.js";
import { locationOf } from "./location.js";
import { mediaFacts } from "./media.js";
import type { InboundMessage } from "./message.js";

export function messageContext(message: InboundMessage): MessageContext {
  const { channelId, accountId, conversationId, sessionKey, runId, messageId, senderId, callDepth } = message;
  return {
    channelId,
    ...known({ accountId, conversationId, sessionKey, runId, messageId, senderId, callDepth }),
    ...replyFacts(message.quote),
    ...traceFacts(message.trace),
  };
}

export function inboundClaimContext(message: InboundMessage, pluginBinding: PluginBinding): InboundClaimContext {
  const { agentId, parentConversationId } = message;
  return { ...messageContext(message), ...known({ agentId, parentConversationId }), pluginBinding };
}

export function beforeDispatchContext(message: InboundMessage): BeforeDispatchContext {
  const { messageId, channelId, accountId, conversationId, sessionKey, senderId, quote } = message;
  return { ...known({ messageId, channelId, accountId, conversationId, sessionKey, senderId }), ...replyFacts(quote) };
}

/** What `reply_dispatch` is given as its event's `ctx`. */
export function finalizedContext(message: InboundMessage): MessageContext & Metadata {
  const { body, bodyForAgent, from, isGroup, threadId, timestamp, location, providerUpdate, attachments } = message;
  return {
    ...messageContext(message),
    ...known({
      from,
      isGroup,
      content: contentOf(message),
      body: firstNonBlank(bodyForAgent, body),
      threadId,
      timestamp,
      location: locationOf(location),
      providerUpdate: providerUpdateOf(providerUpdate),
    }),
    ...mediaFacts(attachments),
  };
}
