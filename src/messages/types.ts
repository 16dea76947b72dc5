/** Event, context and result of each hook, as a plugin author sees them. */

import type {
  HostReplyPayload,
  Location,
  MediaFacts,
  MessageContext,
  Metadata,
  ProviderUpdate,
  ReplyFacts,
  ReplyKind,
  ReplyPayload,
  TraceFacts,
  UsageState,
} from "./facts.js";
import type { MessageHookName } from "./hooks.js";
import type { ReplyDispatcher } from "./reply-dispatcher.js";
import type { TurnAdoption } from "./turn/adoption.js";
import type { PrepareAssistantTranscriptMessage } from "./turn/assistant.js";
import type { OnAgentRunStart, OnPreparedAgentRunStart } from "./turn/run-start.js";
import type { UserTurnTranscriptRecorder } from "./turn/user-turn.js";

export type InboundClaimEvent = ReplyFacts &
  TraceFacts &
  MediaFacts & {
    readonly content: string;
    readonly channel: string;
    readonly isGroup: boolean;
    readonly body?: string;
    readonly bodyForAgent?: string;
    readonly transcript?: string;
    readonly accountId?: string;
    readonly conversationId?: string;
    readonly parentConversationId?: string;
    readonly senderId?: string;
    readonly senderName?: string;
    readonly senderUsername?: string;
    readonly messageId?: string;
    readonly sessionKey?: string;
    readonly runId?: string;
    /** ms since 1970 */
    readonly timestamp?: number;
    readonly threadId?: string;
    readonly commandAuthorized?: boolean;
    readonly senderIsOwner?: boolean;
    readonly wasMentioned?: boolean;
    readonly location?: Location;
    readonly providerUpdate?: ProviderUpdate;
    readonly metadata?: Metadata;
  };

export type InboundClaimContext = MessageContext & {
  readonly agentId?: string;
  readonly parentConversationId?: string;
  readonly pluginBinding?: PluginBinding;
};

/** Who owns a conversation. */
export type PluginBinding = { readonly pluginId: string; readonly [key: string]: unknown };

export type MessageReceivedEvent = ReplyFacts &
  TraceFacts &
  MediaFacts & {
    readonly from: string;
    readonly content: string;
    readonly timestamp?: number;
    readonly threadId?: string;
    readonly messageId?: string;
    readonly senderId?: string;
    readonly sessionKey?: string;
    readonly runId?: string;
    readonly callDepth?: number;
    readonly location?: Location;
    readonly providerUpdate?: ProviderUpdate;
    readonly metadata?: Metadata;
  };

export type BeforeDispatchEvent = ReplyFacts & {
  readonly content: string;
  readonly messageId?: string;
  /** What the agent would be given. */
  readonly body?: string;
  readonly channel?: string;
  readonly sessionKey?: string;
  readonly senderId?: string;
  readonly isGroup?: boolean;
  readonly timestamp?: number;
};

export type BeforeDispatchContext = ReplyFacts & {
  readonly messageId?: string;
  readonly channelId?: string;
  readonly accountId?: string;
  readonly conversationId?: string;
  readonly sessionKey?: string;
  readonly senderId?: string;
};

export type Trigger = "user" | "cron" | "heartbeat";

export type BeforeAgentReplyEvent = { readonly cleanedBody: string };

export type AgentContext = {
  readonly runId?: string;
  readonly agentId?: string;
  readonly sessionKey?: string;
  readonly sessionId?: string;
  readonly workspaceDir?: string;
  readonly modelProviderId?: string;
  readonly modelId?: string;
  readonly channel?: string;
  readonly chatId?: string;
  readonly senderId?: string;
  readonly trigger?: Trigger;
  readonly inputProvenance?: unknown;
};

export type DispatchKind = "acp" | "agent";

export type ReplyDispatchEvent = {
  /** The finalized message context. */
  readonly ctx: MessageContext & Metadata;
  readonly runId?: string;
  readonly sessionKey?: string;
  readonly toolsAllow?: readonly string[];
  readonly images?: readonly unknown[];
  readonly inboundAudio: boolean;
  readonly sessionTtsAuto?: string;
  readonly ttsChannel?: string;
  readonly suppressUserDelivery?: boolean;
  readonly suppressReplyLifecycle?: boolean;
  readonly sourceReplyDeliveryMode?: "automatic" | "message_tool_only";
  readonly shouldRouteToOriginating: boolean;
  readonly originatingChannel?: string;
  readonly originatingTo?: string;
  readonly originatingAccountId?: string;
  readonly originatingThreadId?: string;
  readonly originatingChatType?: string;
  readonly shouldSendToolSummaries: boolean;
  readonly shouldSendFullToolDetails: boolean;
  readonly sendPolicy: "allow" | "deny";
  /** The second run of a turn, behind the agent's. */
  readonly isTailDispatch?: boolean;
};

export type ProcessedOutcome = "completed" | "skipped" | "error";

export type ReplyDispatchContext = {
  readonly dispatchKind?: DispatchKind;
  readonly cfg: unknown;
  readonly dispatcher: ReplyDispatcher;
  readonly abortSignal?: AbortSignal;
  readonly onReplyStart?: () => void | PromiseLike<void>;
  /** To be called when an agent's run is about to start, with everything its runtime has to say of it. */
  readonly onPreparedAgentRunStart?: OnPreparedAgentRunStart;
  /** @deprecated Where there is an `onPreparedAgentRunStart`, only that is called. */
  readonly onAgentRunStart?: OnAgentRunStart;
  /** To be shared with the runtime, so that the user's turn is written once. */
  readonly userTurnTranscriptRecorder?: UserTurnTranscriptRecorder;
  readonly prepareAssistantTranscriptMessage?: PrepareAssistantTranscriptMessage;
  /** Takes the input into a takeover's custody; hosts of old have none. */
  readonly turnAdoption?: TurnAdoption;
  readonly recordProcessed: (
    outcome: ProcessedOutcome,
    details?: { readonly reason?: string; readonly error?: string },
  ) => void;
  readonly markIdle: (reason: string) => void;
};

export type ReplyPayloadSendingEvent = {
  readonly payload: ReplyPayload;
  readonly kind: ReplyKind;
  readonly channel?: string;
  readonly sessionKey?: string;
  readonly runId?: string;
  readonly usageState?: UsageState;
};

export type MessageSendingEvent = {
  readonly to: string;
  readonly content: string;
  readonly replyToId?: string;
  readonly threadId?: string;
  readonly metadata?: {
    readonly channel?: string;
    readonly accountId?: string;
    readonly mediaUrls?: readonly string[];
    readonly [key: string]: unknown;
  };
};

export type MessageSentEvent = TraceFacts & {
  readonly to: string;
  readonly content: string;
  readonly success: boolean;
  readonly messageId?: string;
  readonly sessionKey?: string;
  readonly runId?: string;
  readonly error?: string;
};

/** Queued replies by kind. */
export type ReplyCounts = { readonly [kind in ReplyKind]: number };

type Handled<Extra> = { readonly handled?: boolean } & Extra;

/** Nothing, null and `handled: false` decline. */
/** Of a function without a return. */
type Nothing = ReturnType<() => void>;
type Declined = undefined | null | Nothing;

export type HookShapes = {
  inbound_claim: {
    readonly event: InboundClaimEvent;
    readonly context: InboundClaimContext;
    readonly result: Handled<{ readonly reply?: ReplyPayload }> | Declined;
  };
  message_received: {
    readonly event: MessageReceivedEvent;
    readonly context: MessageContext;
    readonly result: unknown;
  };
  before_dispatch: {
    readonly event: BeforeDispatchEvent;
    readonly context: BeforeDispatchContext;
    readonly result: Handled<{ readonly text?: string }> | Declined;
  };
  reply_dispatch: {
    readonly event: ReplyDispatchEvent;
    readonly context: ReplyDispatchContext;
    readonly result: Handled<{ readonly queuedFinal: boolean; readonly counts: ReplyCounts }> | Declined;
  };
  before_agent_reply: {
    readonly event: BeforeAgentReplyEvent;
    readonly context: AgentContext;
    readonly result: Handled<{ readonly reply?: ReplyPayload; readonly reason?: string }> | Declined;
  };
  reply_payload_sending: {
    readonly event: ReplyPayloadSendingEvent;
    readonly context: MessageContext;
    readonly result:
      | { readonly payload?: ReplyPayload; readonly cancel?: boolean; readonly reason?: string }
      | Declined;
  };
  message_sending: {
    readonly event: MessageSendingEvent;
    readonly context: MessageContext;
    readonly result:
      | {
          readonly content?: string;
          readonly cancel?: boolean;
          readonly cancelReason?: string;
          readonly metadata?: Metadata;
        }
      | Declined;
  };
  message_sent: { readonly event: MessageSentEvent; readonly context: MessageContext; readonly result: unknown };
};

export type EventOf<H extends MessageHookName> = HookShapes[H]["event"];
export type ContextOf<H extends MessageHookName> = HookShapes[H]["context"];
export type ResultOf<H extends MessageHookName> = HookShapes[H]["result"];

export type Handler<H extends MessageHookName> = (
  event: EventOf<H>,
  ctx: ContextOf<H>,
) => ResultOf<H> | PromiseLike<ResultOf<H>>;

export type { HostReplyPayload };
