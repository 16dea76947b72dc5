/** What a gateway is made of. */

import type { DispatchTarget } from "../agent/target.js";
import type { MessageHooksOptions } from "../create.js";
import type { HostReplyPayload, UsageState } from "../facts.js";
import type { BindingsOptions } from "../inbound/bindings.js";
import type { DedupeOptions } from "../inbound/dedupe.js";
import type { InboundMessage } from "../inbound/message.js";
import type { Stager } from "../inbound/staging.js";
import type { ChannelAdapter } from "../outbound/adapter.js";
import type { DeliveryWarning } from "../outbound/options.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { AgentContext, DispatchKind, ReplyDispatchEvent } from "../types.js";
import type { TurnCompletion } from "./outcome.js";
import type { SessionLimits } from "./sessions.js";

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
  /** The latest usage, for `reply_payload_sending`; without durable delivery only. */
  readonly noteUsage: (state: UsageState) => void;
};

/** Resolves with the final replies, none where all is said already. */
export type Agent = (turn: AgentTurn) => AgentAnswer | PromiseLike<AgentAnswer>;

type NoAnswer = ReturnType<() => void>;
export type AgentAnswer = HostReplyPayload | readonly HostReplyPayload[] | NoAnswer | undefined | null;

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
  /** 32 may wait in a session and 1 024 in all by default. */
  readonly limits?: Partial<SessionLimits>;
  /** ms that `close` waits for turns before it aborts them, and then for what is left of them; 10 000 by default. */
  readonly closeTimeoutMs?: number;
  /** What a user is told whose agent failed. */
  readonly failureNotice?: string;
  /** Told of each turn once. */
  readonly onCompletion?: (completion: TurnCompletion) => void;
  readonly onWarning?: (warning: DeliveryWarning) => void;
};
