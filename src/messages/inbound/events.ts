/** The inbound events of one message. What was staged when an event is built stands in it. */

import type { Metadata } from "../facts.js";
import type { BeforeDispatchEvent, InboundClaimEvent, MessageReceivedEvent } from "../types.js";
import { withoutAliases } from "./aliases.js";
import { contentOf, providerUpdateOf, replyFacts, traceFacts } from "./facts-of.js";
import { firstNonBlank, known } from "./known.js";
import { locationOf } from "./location.js";
import { mediaFacts } from "./media.js";
import type { InboundMessage } from "./message.js";

export function inboundClaimEvent(message: InboundMessage): InboundClaimEvent {
  const { channelId, isGroup, body, bodyForAgent, transcript, accountId, conversationId, parentConversationId } =
    message;
  const { senderId, senderName, senderUsername, messageId, sessionKey, runId, timestamp, threadId } = message;
  const { commandAuthorized, senderIsOwner, wasMentioned } = message;
  return {
    content: contentOf(message),
    channel: channelId,
    isGroup,
    ...known({ body, bodyForAgent, transcript, accountId, conversationId, parentConversationId }),
    ...known({ senderId, senderName, senderUsername, messageId, sessionKey, runId, timestamp, threadId }),
    ...known({ commandAuthorized, senderIsOwner, wasMentioned }),
    ...whatCameWithIt(message),
  };
}

export function messageReceivedEvent(message: InboundMessage): MessageReceivedEvent {
  const { from, timestamp, threadId, messageId, senderId, sessionKey, runId, callDepth } = message;
  return {
    from,
    content: contentOf(message),
    ...known({ timestamp, threadId, messageId, senderId, sessionKey, runId, callDepth }),
    ...whatCameWithIt(message),
  };
}

export function beforeDispatchEvent(message: InboundMessage): BeforeDispatchEvent {
  const { messageId, channelId, sessionKey, senderId, isGroup, timestamp, body, bodyForAgent } = message;
  return {
    content: contentOf(message),
    isGroup,
    ...known({
      messageId,
      body: firstNonBlank(bodyForAgent, body),
      channel: channelId,
      sessionKey,
      senderId,
      timestamp,
    }),
    ...replyFacts(message.quote),
  };
}

function whatCameWithIt({ quote, trace, location, providerUpdate, attachments, metadata }: InboundMessage) {
  return {
    ...replyFacts(quote),
    ...traceFacts(trace),
    ...known({
      location: locationOf(location),
      providerUpdate: providerUpdateOf(providerUpdate),
      metadata: metadata === undefined ? undefined : (withoutAliases(metadata) satisfies Metadata),
    }),
    ...mediaFacts(attachments),
  };
}
