/** What became of a message that a gateway was given. */

import type { HostReplyPayload, ReplyKind } from "../facts.js";
import type { DeliveryOutcome } from "../outbound/outcome.js";
import type { DispatchReceipt } from "../reply-dispatcher.js";
import type { ChatCompletion } from "../turn/completion.js";

export type SettledReply = { readonly kind: ReplyKind; readonly outcome: DeliveryOutcome };

/** Of a turn that is over: one, whoever answered. */
export type TurnCompletion = {
  readonly runId: string;
  readonly sessionKey: string;
  readonly end: GatewayEnd["end"];
  /** What was delivered, as the hooks left it, in order. */
  readonly delivered: readonly HostReplyPayload[];
  /** Each reply that was admitted, in order, and what became of it. */
  readonly replies: readonly SettledReply[];
  readonly receipt: DispatchReceipt;
  /** Where a runtime left the chat's completion to the host: it went to `onChatEvent`. */
  readonly chat: ChatCompletion | null;
};

/** How a turn ended. `retryable`: nothing became of the message, and it may come again. */
export type GatewayEnd =
  | { readonly end: "duplicate"; readonly retryable: false }
  | { readonly end: "aborted"; readonly retryable: boolean }
  /** A plugin took it; no agent was asked. */
  | {
      readonly end: "claimed";
      readonly retryable: false;
      readonly hook: "inbound_claim" | "before_dispatch" | "reply_dispatch" | "before_agent_reply";
      readonly by: string;
      readonly dispatchId: string | null;
    }
  /** The plugin that owns the conversation did not take it; the conversation was told. */
  | {
      readonly end: "refused";
      readonly retryable: false;
      readonly outcome: "declined" | "error";
      readonly plugin: string;
    }
  /** The agent ran. */
  | { readonly end: "answered"; readonly retryable: false }
  /**
   * One bounded line, redacted. `at`: `host` is what the host's own options threw, `takeover` a plugin that was to answer, `delivery` a ledger
   * that could keep none of the replies, so that none was sent.
   */
  | {
      readonly end: "failed";
      readonly retryable: boolean;
      readonly at: "host" | "takeover" | "agent" | "delivery";
      readonly error: string;
    };

export type GatewayOutcome =
  | (GatewayEnd & {
      readonly runId: string;
      readonly sessionKey: string;
      /** Null where it was no turn of its own: a duplicate, or a message without a plan or a channel. */
      readonly completion: TurnCompletion | null;
    })
  /** No turn began. `busy`: too many wait already. */
  | {
      readonly end: "busy" | "closed";
      readonly retryable: true;
      readonly runId: string;
      readonly sessionKey: string;
      readonly completion: null;
    };
