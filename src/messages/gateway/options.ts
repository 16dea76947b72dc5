/** What a gateway is made of. */

import type { DispatchTarget } from "../agent/target.js";
import type { MessageHooksOptions } from "../create.js";
import type { DurableOptions } from "../durable/deliveries.js";
import type { HostReplyPayload, UsageState } from "../facts.js";
import type { BindingsOptions } from "../inbound/bindings.js";
import type { DedupeOptions } from "../inbound/dedupe.js";
import type { InboundMessage } from "../inbound/message.js";
import type { Stager } from "../inbound/staging.js";
import type { ChannelAdapter } from "../outbound/adapter.js";
import type { DeliveryWarning } from "../outbound/options.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { PrepareAssistantTranscriptMessage } from "../turn/assistant.js";
import type { ChatCompletion, RuntimeEvent } from "../turn/completion.js";
import type { OnPreparedAgentRunStart } from "../turn/run-start.js";
import type { TranscriptStart } from "../turn/transcript.js";
import type { UserTurnTranscriptRecorder } from "../turn/user-turn.js";
import type { AgentContext, DispatchKind, ReplyDispatchEvent } from "../types.js";
import type { TurnCompletion } from "./outcome.js";
import type { SessionLimits } from "./sessions.js";
import type { Transcripts } from "./turn-transcript.js";

/** One run of the host's model. */
export type AgentTurn = {
  readonly runId: string;
  readonly sessionKey: string;
  readonly dispatchKind: DispatchKind | undefined;
  /** With its attachments staged. */
  readonly message: InboundMessage;
  /** For what is to be sent while the run is under way; admits nothing once the turn is over. */
  readonly dispatcher: ReplyDispatcher;
  /** Of the turn. Once it is aborted, nobody waits for the run any more. */
  readonly signal: AbortSignal;
  /** A runtime tells of its run, and may leave the chat's completion to the host. */
  readonly onPreparedAgentRunStart: OnPreparedAgentRunStart;
  /** What a runtime tells whoever watches the chat; a completion that is the host's stops here. */
  readonly emit: (event: RuntimeEvent) => void;
  /** Null where there are no transcripts. */
  readonly transcript: AgentTranscript | null;
  /** The latest usage, for `reply_payload_sending`; without durable delivery only. */
  readonly noteUsage: (state: UsageState) => void;
};

export type AgentTranscript = {
  readonly start: TranscriptStart;
  /** To be shared with the runtime, so that the user's turn is written once. */
  readonly userTurnTranscriptRecorder: UserTurnTranscriptRecorder;
  readonly prepareAssistantTranscriptMessage: PrepareAssistantTranscriptMessage;
};

/** Resolves with the final replies, none where all is said already. */
export type Agent = (turn: AgentTurn) => AgentAnswer | PromiseLike<AgentAnswer>;

type NoAnswer = ReturnType<() => void>;
export type AgentAnswer = HostReplyPayload | readonly HostReplyPayload[] | NoAnswer | undefined | null;

export type DurableSettings = Pick<DurableOptions, "retry" | "sendTimeoutMs" | "pollMs" | "onSettled">;

export type ReplyAddress = {
  readonly channelId: string;
  readonly to: string;
  readonly threadId?: string;
  readonly accountId?: string;
};

/** What the host knows of a message's turn; what it does not say has the default. */
export type TurnPlan = {
  /** Where replies go: by default where the message came from. */
  readonly replyTo?: ReplyAddress;
  /** By default the message's session. */
  readonly target?: DispatchTarget | null;
  /** Of the transcript; the session's key by default. */
  readonly sessionId?: string;
  /** What `reply_dispatch` is told, beside what is known of the message. */
  readonly dispatch?: Partial<Omit<ReplyDispatchEvent, "ctx" | "runId" | "sessionKey" | "isTailDispatch">>;
  /** What `before_agent_reply` is told; `trigger` is `user` by default. */
  readonly agent?: Omit<AgentContext, "runId" | "sessionKey">;
  /** `ctx.cfg` of `reply_dispatch`. */
  readonly cfg?: unknown;
};

export type GatewayOptions = MessageHooksOptions & {
  /** By `channelId`; none twice. */
  readonly channels: readonly ChannelAdapter[];
  readonly agent: Agent;
  /** Asked once a turn, first of all. */
  readonly plan?: (message: InboundMessage) => TurnPlan | PromiseLike<TurnPlan>;
  /** Whose turns come one after the other: the message's own key, else one of its channel, account and conversation, by default. */
  readonly sessionKeyOf?: (message: InboundMessage) => string;
  readonly bindings?: Omit<BindingsOptions, "plugins">;
  readonly stage?: Stager;
  readonly dedupe?: DedupeOptions;
  /** What was said is written there, once; stays the caller's. */
  readonly transcripts?: Transcripts;
  /**
   * The host's word, asked for by a takeover that adopts the input, that it need not come again. Rejects where it cannot be given: the input
   * comes again then.
   */
  readonly acknowledge?: (message: InboundMessage) => void | PromiseLike<void>;
  /** ms that nobody may begin on a dispatched message before it is given back; no limit by default. */
  readonly startTimeoutMs?: number;
  /**
   * How replies are kept until they are sent, where the store is a SQLite ledger: its file has them before any is sent, and what a crash
   * leaves is gone on with. false: they are sent at once and once, as with other stores.
   */
  readonly durable?: DurableSettings | false;
  /** 32 may wait in a session and 1 024 in all by default. */
  readonly limits?: Partial<SessionLimits>;
  /** ms that `close` waits for turns before it aborts them, and then for what is left of them; 10 000 by default. */
  readonly closeTimeoutMs?: number;
  /** What a user is told whose agent failed. */
  readonly failureNotice?: string;
  /** Told of each turn once. */
  readonly onCompletion?: (completion: TurnCompletion) => void;
  /** For whoever watches the chat: runtimes' events, and one completion of a turn whose runtime left it to the host. */
  readonly onChatEvent?: (event: RuntimeEvent | ChatCompletion) => void;
  readonly onWarning?: (warning: DeliveryWarning) => void;
};
