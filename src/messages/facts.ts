/** What events and contexts are made of. A field that is not known is absent; ids are present only when they are not empty. */

export type ReplyFacts = {
  readonly replyToId?: string;
  readonly replyToIdFull?: string;
  readonly replyToBody?: string;
  readonly replyToSender?: string;
  readonly replyToIsQuote?: boolean;
};

export type TraceFacts = {
  readonly trace?: string;
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
};

export type MessageContext = ReplyFacts &
  TraceFacts & {
    readonly channelId: string;
    readonly accountId?: string;
    readonly conversationId?: string;
    readonly sessionKey?: string;
    readonly runId?: string;
    readonly messageId?: string;
    readonly senderId?: string;
    readonly callDepth?: number;
  };

/** An attachment; its place in the list is its identity. */
export type MediaFact = {
  /** Readable here. */
  readonly path?: string;
  readonly url?: string;
  readonly contentType?: string;
  readonly kind?: string;
  readonly transcribed?: true;
  readonly messageId?: string;
  readonly workspaceDir?: string;
};

export type Location = {
  readonly latitude: number;
  readonly longitude: number;
  /** m */
  readonly accuracy?: number;
  readonly name?: string;
  readonly address?: string;
  readonly caption?: string;
  readonly source?: "pin" | "place" | "live";
  readonly isLive?: boolean;
  readonly livePeriodSeconds?: number;
};

/** Identity of a change that the channel tells of; timestamps in ms since 1970. */
export type ProviderUpdate = {
  readonly id: string;
  readonly kind: string;
  readonly messageId?: string;
  readonly messageTimestamp?: number;
  readonly editedTimestamp?: number;
};

/** While a remote attachment is not staged: no `media`, `mediaStagingPending`, and the provider's facts in `originalMedia`. */
export type MediaFacts = {
  readonly media?: readonly MediaFact[];
  readonly originalMedia?: readonly MediaFact[];
  readonly mediaStagingPending?: true;
};

export type Metadata = { readonly [key: string]: unknown };

export type ReplyKind = "tool" | "block" | "final";

/** What a handler may see and return. */
export type ReplyPayload = {
  readonly text?: string;
  readonly mediaUrl?: string;
  readonly mediaUrls?: readonly string[];
  readonly presentation?: unknown;
  readonly delivery?: unknown;
  readonly replyToId?: string;
  readonly audioAsVoice?: boolean;
  readonly spokenText?: string;
  readonly isError?: boolean;
};

/** The host's own: `trustedLocalMedia` is never shown to a handler, nor taken from one. */
export type HostReplyPayload = ReplyPayload & { readonly trustedLocalMedia?: boolean };

type TokenUsage = {
  readonly input?: number;
  readonly output?: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  readonly total?: number;
};

/** A live snapshot of one turn, best effort. */
export type UsageState = {
  readonly provider?: string;
  readonly model?: string;
  readonly resolvedRef?: string;
  readonly requested?: string;
  readonly reasoningEffort?: string;
  readonly fastMode?: boolean;
  readonly fallbackUsed?: boolean;
  readonly agentId?: string;
  readonly sessionId?: string;
  readonly chatType?: string;
  readonly authMode?: string;
  readonly overrideSource?: string;
  readonly turnUsd?: number;
  readonly durationMs?: number;
  readonly identity?: { readonly name?: string; readonly emoji?: string; readonly avatar?: string };
  readonly compactionCount?: number;
  readonly contextTokenBudget?: number;
  readonly contextUsedTokens?: number;
  readonly usage?: TokenUsage;
  readonly lastUsage?: TokenUsage;
};
