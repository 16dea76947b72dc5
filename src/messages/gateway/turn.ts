/** One message through all stages: who may take it, who answers, and what is sent of it. */

import type { AgentReplies, AgentReply } from "../agent/agent-replies.js";
import { ReplyTurn, type Takeover } from "../agent/reply-turn.js";
import { isDeliverySuppressed } from "../agent/restricted.js";
import { dispatchKindOf } from "../agent/target.js";
import { finalizedContext, messageContext } from "../inbound/contexts.js";
import { contentOf } from "../inbound/facts-of.js";
import { known } from "../inbound/known.js";
import type { InboundMessage } from "../inbound/message.js";
import { type InboundHost, type Received, receiveMessage } from "../inbound/receive.js";
import type { ChannelAdapter, Route } from "../outbound/adapter.js";
import type { ReplyDispatcherOptions } from "../outbound/dispatcher.js";
import type { UsageStates } from "../outbound/usage-states.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { ReplyDispatchEvent } from "../types.js";
import type { Agent, AgentAnswer, TurnPlan } from "./options.js";
import type { TurnCompletion, TurnEnd } from "./outcome.js";
import { unlessAborted } from "./race.js";
import { TurnReplies } from "./turn-replies.js";

/** What lives as long as the gateway. */
export type TurnParts = InboundHost & {
  readonly channels: ReadonlyMap<string, ChannelAdapter>;
  readonly agent: Agent;
  readonly agentReplies: AgentReplies;
  readonly usage: UsageStates;
  readonly plan: (message: InboundMessage) => TurnPlan | PromiseLike<TurnPlan>;
  readonly openDispatcher: (
    options: Pick<ReplyDispatcherOptions, "route" | "signal" | "idempotencyKey" | "onOutcome">,
  ) => ReplyDispatcher;
  readonly failureNotice: string;
  /** For people: one line, redacted. */
  readonly said: (thrown: unknown) => string;
};

/** The message has its run id and session key. */
export type TurnMessage = InboundMessage & { readonly runId: string; readonly sessionKey: string };

export type Turned = { readonly end: TurnEnd; readonly completion: TurnCompletion | null };

/** Never rejects. */
export async function runTurn(message: TurnMessage, signal: AbortSignal, parts: TurnParts): Promise<Turned> {
  const { runId, sessionKey } = message;
  let replies: TurnReplies | null = null;
  let end: TurnEnd;
  try {
    const plan = await unlessAborted(parts.plan(message), signal);
    if (plan === "aborted") return { end: { end: "aborted", retryable: true }, completion: null };
    const turn = new Turn(message, plan, signal, parts);
    replies = turn.replies;
    end = await turn.run();
  } catch (thrown) {
    end = { end: "failed", retryable: replies?.anyAdmitted !== true, at: "host", error: parts.said(thrown) };
  }
  if (replies === null || end.end === "duplicate") return { end, completion: null };
  const settled = await replies.settle();
  return { end, completion: { runId, sessionKey, end: end.end, ...settled } };
}

class Turn {
  readonly replies: TurnReplies;
  readonly #message: TurnMessage;
  readonly #plan: TurnPlan;
  readonly #signal: AbortSignal;
  readonly #parts: TurnParts;
  readonly #event: Omit<ReplyDispatchEvent, "ctx" | "isTailDispatch">;

  /** Throws where there is no such channel. */
  constructor(message: TurnMessage, plan: TurnPlan, signal: AbortSignal, parts: TurnParts) {
    this.#message = message;
    this.#plan = plan;
    this.#signal = signal;
    this.#parts = parts;
    this.#event = dispatchEvent(message, plan);
    const route = routeOf(message, plan, parts.channels);
    this.replies = new TurnReplies(
      (listen) => parts.openDispatcher({ route, signal, idempotencyKey: message.runId, ...listen }),
      isDeliverySuppressed(this.#event),
    );
  }

  async run(): Promise<TurnEnd> {
    const { dispatcher } = this.replies;
    const received = await receiveMessage(this.#message, { ...this.#parts, dispatcher, signal: this.#signal });
    switch (received.end) {
      case "duplicate":
        return { end: "duplicate", retryable: false };
      case "aborted":
        return { end: "aborted", retryable: true };
      case "handled": {
        const { hook, by, dispatchId } = received;
        return { end: "claimed", retryable: false, hook, by, dispatchId };
      }
      case "refused": {
        const { outcome, plugin } = received;
        return { end: "refused", retryable: false, outcome, plugin };
      }
      case "dispatch":
        return this.#dispatched(received);
    }
  }

  /** What nothing became of is given back: the message may come again. */
  async #dispatched({ message, giveBack }: Extract<Received, { end: "dispatch" }>): Promise<TurnEnd> {
    let retryable = false;
    try {
      const end = await this.#answered(message);
      ({ retryable } = end);
      return end;
    } catch (fault) {
      retryable = !this.replies.anyAdmitted;
      throw fault;
    } finally {
      if (retryable) giveBack();
    }
  }

  async #answered(message: InboundMessage): Promise<TurnEnd> {
    const replyTurn = this.#replyTurn(message);
    let takeover: Takeover;
    try {
      takeover = await replyTurn.takeover();
    } catch (thrown) {
      // Custody of the input was not taken, whatever else was done.
      return { end: "failed", retryable: true, at: "takeover", error: this.#parts.said(thrown) };
    }
    if (takeover.end !== "declined") return this.#taken(takeover);
    if (this.#signal.aborted) return this.#aborted();
    const reply = await this.#repliedInPlace(message);
    if (reply.end === "handled") {
      const { by, dispatchId } = reply;
      return { end: "claimed", retryable: false, hook: "before_agent_reply", by, dispatchId };
    }
    if (reply.end === "aborted" || this.#signal.aborted) return this.#aborted();
    return this.#agentRan(message, replyTurn);
  }

  async #agentRan(message: InboundMessage, replyTurn: ReplyTurn): Promise<TurnEnd> {
    const { dispatcher } = this.replies;
    let answer: AgentAnswer | "aborted";
    try {
      answer = await unlessAborted(this.#askAgent(message), this.#signal);
    } catch (thrown) {
      if (this.#signal.aborted) return this.#aborted();
      if (dispatcher.getQueuedCounts().final === 0) {
        dispatcher.sendFinalReply({ text: this.#parts.failureNotice, isError: true });
      }
      return { end: "failed", retryable: false, at: "agent", error: this.#parts.said(thrown) };
    }
    if (answer === "aborted" || this.#signal.aborted) return this.#aborted();
    for (const payload of payloadsIn(answer)) dispatcher.sendFinalReply(payload);
    const tail = await replyTurn.tail();
    return tail.end === "aborted" ? this.#aborted() : { end: "answered", retryable: false };
  }

  async #askAgent(message: InboundMessage): Promise<AgentAnswer> {
    const { runId, sessionKey } = this.#message;
    return this.#parts.agent({
      runId,
      sessionKey,
      message,
      dispatchKind: dispatchKindOf(this.#target),
      dispatcher: this.replies.dispatcher,
      signal: this.#signal,
      noteUsage: (state) => this.#parts.usage.put(runId, state),
    });
  }

  #repliedInPlace(message: InboundMessage): Promise<AgentReply> {
    const { runId, sessionKey } = this.#message;
    const { channelId: channel, conversationId: chatId, senderId, agentId } = message;
    return this.#parts.agentReplies.ask(
      { cleanedBody: contentOf(message) },
      { trigger: "user", ...known({ channel, chatId, senderId, agentId }), ...this.#plan.agent, runId, sessionKey },
      { dispatcher: this.replies.dispatcher, signal: this.#signal },
    );
  }

  #replyTurn(message: InboundMessage): ReplyTurn {
    const { runs } = this.#parts;
    return new ReplyTurn({
      runs,
      target: this.#target,
      event: { ...this.#event, ctx: finalizedContext(message) },
      context: {
        cfg: this.#plan.cfg ?? {},
        dispatcher: this.replies.dispatcher,
        recordProcessed: () => {},
        markIdle: () => {},
      },
      signal: this.#signal,
      failureNotice: this.#parts.failureNotice,
    });
  }

  get #target() {
    const { target = { sessionKey: this.#message.sessionKey } } = this.#plan;
    return target;
  }

  #taken(takeover: Exclude<Takeover, { end: "declined" }>): TurnEnd {
    switch (takeover.end) {
      case "aborted":
        return this.#aborted();
      case "failed": {
        const [failure] = takeover.failures;
        return { end: "failed", retryable: false, at: "takeover", error: failure?.message ?? "it failed" };
      }
      case "handled": {
        const { by, dispatchId } = takeover;
        return { end: "claimed", retryable: false, hook: "reply_dispatch", by, dispatchId };
      }
    }
  }

  /** Once the user was to hear something, the message is not asked for again. */
  #aborted(): TurnEnd {
    return { end: "aborted", retryable: !this.replies.anyAdmitted };
  }
}

function routeOf(message: TurnMessage, { replyTo }: TurnPlan, channels: ReadonlyMap<string, ChannelAdapter>): Route {
  const { channelId, to, threadId, accountId } = replyTo ?? { ...message, to: message.from };
  const adapter = channels.get(channelId);
  if (adapter === undefined) throw new RangeError(`there is no channel ${JSON.stringify(channelId.slice(0, 80))}`);
  const { accountId: _, ...context } = messageContext(message);
  return { adapter, to, ...known({ threadId }), context: { ...context, channelId, ...known({ accountId }) } };
}

function dispatchEvent(message: TurnMessage, { dispatch, replyTo }: TurnPlan): Omit<ReplyDispatchEvent, "ctx"> {
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

function payloadsIn(answer: AgentAnswer) {
  if (typeof answer !== "object" || answer === null) return [];
  return isList(answer) ? answer : [answer];
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}
