/** One inbound message, as its channel hands it to the host. */

import type { Location, Metadata, ProviderUpdate, ReplyFacts, TraceFacts } from "../facts.js";
import type { Attachments } from "./media.js";

/** A field that is not known is absent; an empty id counts as absent. */
export type InboundMessage = {
  readonly channelId: string;
  /** Who wrote it, or where it was written, as the channel addresses them. */
  readonly from: string;
  readonly isGroup: boolean;
  /** Without one, nobody can tell whether the message came before. */
  readonly messageId?: string;
  readonly accountId?: string;
  readonly conversationId?: string;
  readonly parentConversationId?: string;
  readonly threadId?: string;
  readonly senderId?: string;
  readonly senderName?: string;
  readonly senderUsername?: string;
  /** What a command parser is to read. */
  readonly commandBody?: string;
  /** As it was written. */
  readonly rawBody?: string;
  readonly body?: string;
  /** With what the host adds for the agent. */
  readonly bodyForAgent?: string;
  /** Of what was spoken. */
  readonly transcript?: string;
  /** ms since 1970 */
  readonly timestamp?: number;
  readonly commandAuthorized?: boolean;
  readonly senderIsOwner?: boolean;
  readonly wasMentioned?: boolean;
  readonly quote?: Quote;
  readonly location?: Location;
  readonly providerUpdate?: ProviderUpdate;
  readonly attachments?: Attachments;
  /** The channel's own. */
  readonly metadata?: Metadata;
  readonly sessionKey?: string;
  readonly runId?: string;
  readonly agentId?: string;
  readonly trace?: TraceFacts;
  /** How many runs of agents led to this message. */
  readonly callDepth?: number;
};

/** What the message replies to. */
export type Quote = ReplyFacts & {
  /** Has the channel taken out what the readers of this conversation may not see? Otherwise no hook is told of the quote. */
  readonly visibilityFiltered: boolean;
};
