/** What a channel has to offer to be delivered to. */

import type { MessageContext, ReplyKind } from "../facts.js";

export type ChannelMedia = {
  readonly url: string;
  /** The host vouches for it: where `url` is a path, it may be read from this machine. */
  readonly trustedLocal: boolean;
};

/** What may be shown: a payload after its hooks, without what is the host's own. At least one of text, media and presentation. */
export type ChannelMessage = {
  readonly text?: string;
  /** In order; none twice. */
  readonly media: readonly ChannelMedia[];
  readonly presentation?: unknown;
  readonly delivery?: unknown;
  readonly replyToId?: string;
  readonly audioAsVoice?: boolean;
  readonly isError?: boolean;
};

/** What goes out in one send: of several media, the first carries the text. */
export type ChannelPart = Omit<ChannelMessage, "media"> & { readonly media?: ChannelMedia };

export type SendRequest = {
  readonly to: string;
  readonly threadId?: string;
  readonly accountId?: string;
  readonly part: ChannelPart;
  /** The same for every attempt at this part, and for no other part. */
  readonly idempotencyKey: string;
  /** Aborted when the turn is. A send that is under way is waited for all the same: only the channel knows what became of it. */
  readonly signal: AbortSignal | undefined;
};

export type SendReceipt = {
  /** The channel's id of the message. */
  readonly messageId?: string;
  /** false: accepted, and there is nothing that the recipient sees. */
  readonly visible?: boolean;
};

export type StageContext = {
  readonly kind: ReplyKind;
  readonly to: string;
  readonly context: MessageContext;
  /** Aborted when the turn is, and when this stage's time is over. */
  readonly signal: AbortSignal;
};

/** The channel's last word before a send; stages run one after the other. */
export type BeforeDeliverStage = {
  /** For messages about it. */
  readonly name?: string;
  /** ms, > 0, at most 600 000; 15 000 by default. */
  readonly timeoutMs?: number;
  /** Given what the stage before it returned. Null cancels; who throws, or is late, fails the delivery before anything was sent. */
  run(message: ChannelMessage, context: StageContext): ChannelMessage | null | PromiseLike<ChannelMessage | null>;
};

export interface ChannelAdapter {
  readonly channelId: string;
  readonly beforeDeliver?: readonly BeforeDeliverStage[];
  /** Resolves when the channel has taken the part. */
  send(request: SendRequest): SendReceipt | PromiseLike<SendReceipt>;
  /** Has a part gone out under this key? Asked where an attempt has no recorded acknowledgement; without it nobody can tell. */
  wasSent?(idempotencyKey: string): boolean | PromiseLike<boolean>;
}

/** Where replies go: the channel that a message came from, or the one that its replies are routed back to. */
export type Route = {
  readonly adapter: ChannelAdapter;
  readonly to: string;
  readonly threadId?: string;
  /** As the hooks see it: the route's channel and account, the session and run that the replies belong to. */
  readonly context: MessageContext;
};
