/** One message through all stages: who may take it, who answers, and what is sent of it. */

import type { Clock } from "../../dispatch/clock.js";
import { unlessAborted } from "../../dispatch/unless-aborted.js";
import { ERROR_CODES, HookledgerError } from "../../errors.js";
import type { AgentReplies, AgentReply } from "../agent/agent-replies.js";
import { ReplyTurn, type Takeover } from "../agent/reply-turn.js";
import { isDeliverySuppressed } from "../agent/restricted.js";
import { dispatchKindOf } from "../agent/target.js";
import { finalizedContext } from "../inbound/contexts.js";
import { contentOf } from "../inbound/facts-of.js";
import { known } from "../inbound/known.js";
import type { InboundMessage } from "../inbound/message.js";
import { type InboundHost, type Received, receiveMessage } from "../inbound/receive.js";
import type { ChannelAdapter } from "../outbound/adapter.js";
import type { ReplyDispatcherOptions } from "../outbound/dispatcher.js";
import type { DeliveryOutcome } from "../outbound/outcome.js";
import type { UsageStates } from "../outbound/usage-states.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import { isInputRetryable } from "../turn/adoption.js";
import { assistantPreparer } from "../turn/assistant.js";
import { type ChatCompletion, ReplyCompletion, type RuntimeEvent } from "../turn/completion.js";
import { TurnLife } from "../turn/life.js";
import type { OnPreparedAgentRunStart } from "../turn/run-start.js";
import { StartupWatchdog } from "../turn/watchdog.js";
import type { ReplyDispatchEvent } from "../types.js";
import type { Agent, AgentAnswer, AgentTranscript, TurnPlan } from "./options.js";
import type { GatewayEnd, SettledReply, TurnCompletion } from "./outcome.js";
import { dispatchEvent, routeOf } from "./turn-plan.js";
import { TurnReplies } from "./turn-replies.js";
import { type Transcripts, TurnTranscript } from "./turn-transcript.js";

/** What lives as long as the gateway. */
export type TurnParts = InboundHost & {
  readonly channels: ReadonlyMap<string, ChannelAdapter>;
  readonly agent: Agent;
  readonly agentReplies: AgentReplies;
  readonly usage: UsageStates;
  readonly plan: (message: InboundMessage) => TurnPlan | PromiseLike<TurnPlan>;
  readonly openDispatcher: (options: Pick<ReplyDispatcherOptions, "route" | "signal" | "onOutcome">) => ReplyDispatcher;
  readonly failureNotice: string;
  readonly transcripts: Transcripts | null;
  readonly acknowledge: (message: InboundMessage) => void | PromiseLike<void>;
  readonly startTimeoutMs: number | null;
  readonly clock: Clock;
  readonly onChatEvent: (event: RuntimeEvent | ChatCompletion) => void;
  readonly warn: (thrown: unknown) => void;
  /** For people: one line, redacted. */
  readonly said: (thrown: unknown) => string;
};

/** The message has its run id and session key. */
export type TurnMessage = InboundMessage & { readonly runId: string; readonly sessionKey: string };

export type Turned = { readonly end: GatewayEnd; readonly completion: TurnCompletion | null };

/** Never rejects. */
export async function runTurn(message: TurnMessage, signal: AbortSignal, parts: TurnParts): Promise<Turned> {
  let turn: Turn | null = null;
  let end: GatewayEnd;
  try {
    const plan = await unlessAborted(parts.plan(message), signal);
    if (plan === "aborted") return { end: { end: "aborted", retryable: true }, completion: null };
    turn = new Turn(message, plan, signal, parts);
    end = await turn.run();
  } catch (thrown) {
    end = { end: "failed", retryable: turn?.isUntouched !== false, at: "host", error: parts.said(thrown) };
  }
  if (turn === null || end.end === "duplicate") return { end, completion: null };
  return turn.settle(end);
}

class Turn {
  readonly #replies: TurnReplies;
  readonly #message: TurnMessage;
  readonly #plan: TurnPlan;
  readonly #signal: AbortSignal;
  readonly #parts: TurnParts;
  readonly #event: Omit<ReplyDispatchEvent, "ctx" | "isTailDispatch">;
  readonly #life: TurnLife;
  readonly #completion: ReplyCompletion;
  /** Of a message that came to be dispatched. */
  #transcript: TurnTranscript | null = null;
  /** Forgets a dispatched message, which may come again then. */
  #giveBack: () => void = () => {};
  #adopted = false;
  #announced = false;

  /** Throws where there is no such channel. */
  constructor(message: TurnMessage, plan: TurnPlan, signal: AbortSignal, parts: TurnParts) {
    this.#message = message;
    this.#plan = plan;
    this.#signal = signal;
    this.#parts = parts;
    this.#event = dispatchEvent(message, plan);
    const route = routeOf(message, plan, parts.channels);
    this.#life = new TurnLife(signal);
    this.#completion = new ReplyCompletion({ emit: parts.onChatEvent, life: this.#life, warn: parts.warn });
    this.#replies = new TurnReplies(
      (onOutcome) => parts.openDispatcher({ route, signal, onOutcome }),
      this.#completion.onOutcome,
      isDeliverySuppressed(this.#event),
    );
  }

  /** Nothing was said to the user, and nobody has taken the input over. */
  get isUntouched(): boolean {
    return !this.#replies.anyAdmitted && !this.#adopted;
  }

  async run(): Promise<GatewayEnd> {
    const { dispatcher } = this.#replies;
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

  /** The turn is over: resolves when all of its replies are settled. Never rejects. */
  async settle(given: GatewayEnd): Promise<Turned> {
    const settled = await this.#replies.settle();
    const end = this.#kept(given, settled.replies);
    const { retryable } = end;
    const chat = await this.#completion.settle(this.#replies.dispatcher);
    if (!retryable) {
      const isRuntimes = this.#announced && chat === null;
      await this.#transcript?.keepUserTurn();
      await this.#transcript?.keepAssistantTurn({ chat, isRuntimes, delivered: settled.delivered });
    }
    this.#life.end(end.end === "aborted" ? "aborted" : "completed");
    const { runId, sessionKey } = this.#message;
    return { end, completion: { runId, sessionKey, end: end.end, ...settled, chat } };
  }

  /** It was dispatched and has its answer, and the abort has kept all of that from being sent. */
  #isLost({ end }: GatewayEnd, replies: readonly SettledReply[]): boolean {
    if (!this.#signal.aborted || this.#adopted || replies.length === 0) return false;
    return (end === "answered" || end === "aborted") && replies.every(({ outcome }) => isAbortedUnsent(outcome));
  }

  /** Where nothing of the answer was sent, nor kept to be sent, the message may come again. */
  #kept(given: GatewayEnd, replies: readonly SettledReply[]): GatewayEnd {
    if (this.#isLost(given, replies)) {
      this.#giveBack();
      return { end: "aborted", retryable: true };
    }
    const failures = replies.flatMap(({ outcome }) => unkeptFailure(outcome) ?? []);
    const [first] = failures;
    if (given.end !== "answered" || this.#adopted || first === undefined || failures.length < replies.length)
      return given;
    this.#giveBack();
    return { end: "failed", retryable: true, at: "delivery", error: this.#parts.said(first) };
  }

  /** What nothing became of is given back: the message may come again. */
  async #dispatched({ message, giveBack }: Extract<Received, { end: "dispatch" }>): Promise<GatewayEnd> {
    this.#giveBack = giveBack;
    let retryable = false;
    try {
      const end = await this.#answered(message);
      ({ retryable } = end);
      return end;
    } catch (fault) {
      retryable = this.isUntouched;
      throw fault;
    } finally {
      if (retryable) giveBack();
    }
  }

  async #answered(message: InboundMessage): Promise<GatewayEnd> {
    const { startTimeoutMs, clock, said } = this.#parts;
    this.#transcript = this.#openTranscript();
    const watchdog = startTimeoutMs === null ? null : new StartupWatchdog({ timeoutMs: startTimeoutMs, clock });
    watchdog?.start();
    const replyTurn = this.#replyTurn(message, watchdog);
    try {
      const takeover = await replyTurn.takeover();
      if (takeover.end !== "declined") return this.#taken(takeover);
      if (this.#signal.aborted) return this.#aborted();
      const reply = await this.#repliedInPlace(message, watchdog);
      if (reply.end === "handled") {
        const { by, dispatchId } = reply;
        return { end: "claimed", retryable: false, hook: "before_agent_reply", by, dispatchId };
      }
      if (this.#signal.aborted) return this.#aborted();
      watchdog?.signal.throwIfAborted();
    } catch (thrown) {
      if (!isInputRetryable(thrown)) throw thrown;
      return { end: "failed", retryable: true, at: "takeover", error: said(thrown) };
    } finally {
      watchdog?.stop();
    }
    return this.#agentRan(message, replyTurn);
  }

  /** Null also where it cannot be had: nobody gets no answer for that. */
  #openTranscript(): TurnTranscript | null {
    const { transcripts, warn } = this.#parts;
    const { sessionId = this.#message.sessionKey } = this.#plan;
    if (transcripts === null) return null;
    try {
      return new TurnTranscript(transcripts, this.#message, sessionId, warn);
    } catch (thrown) {
      warn(thrown);
      return null;
    }
  }

  async #agentRan(message: InboundMessage, replyTurn: ReplyTurn): Promise<GatewayEnd> {
    const { dispatcher } = this.#replies;
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
      dispatcher: this.#replies.dispatcher,
      signal: this.#signal,
      onPreparedAgentRunStart: this.#onRunStart,
      emit: (event) => this.#completion.forward(event),
      transcript: this.#agentTranscript,
      noteUsage: (state) => this.#parts.usage.put(runId, state),
    });
  }

  #repliedInPlace(message: InboundMessage, watchdog: StartupWatchdog | null): Promise<AgentReply> {
    const signal = watchdog === null ? this.#signal : AbortSignal.any([this.#signal, watchdog.signal]);
    const { runId, sessionKey } = this.#message;
    const { channelId: channel, conversationId: chatId, senderId, agentId } = message;
    return this.#parts.agentReplies.ask(
      { cleanedBody: contentOf(message) },
      { trigger: "user", ...known({ channel, chatId, senderId, agentId }), ...this.#plan.agent, runId, sessionKey },
      { dispatcher: this.#replies.dispatcher, signal },
    );
  }

  #replyTurn(message: InboundMessage, watchdog: StartupWatchdog | null): ReplyTurn {
    const { runs, failureNotice, acknowledge, warn } = this.#parts;
    const { start: _, ...transcript } = this.#agentTranscript ?? { start: null };
    return new ReplyTurn({
      runs,
      target: this.#target,
      event: { ...this.#event, ctx: finalizedContext(message) },
      context: {
        cfg: this.#plan.cfg ?? {},
        dispatcher: this.#replies.dispatcher,
        onPreparedAgentRunStart: this.#onRunStart,
        onAgentRunStart: () => {
          this.#announced = true;
        },
        ...transcript,
        recordProcessed: (outcome, { reason, error = reason } = {}) => {
          if (outcome === "error") warn(`a takeover reports an error: ${error ?? "it does not say which"}`);
        },
        markIdle: () => {},
      },
      signal: this.#signal,
      ingress: {
        acknowledge: async () => {
          await acknowledge(this.#message);
          this.#adopted = true;
        },
        ...(watchdog === null ? {} : { watchdog }),
      },
      failureNotice,
    });
  }

  readonly #onRunStart: OnPreparedAgentRunStart = (notification) => {
    this.#announced = true;
    return this.#completion.onPreparedAgentRunStart(notification);
  };

  get #agentTranscript(): AgentTranscript | null {
    if (this.#transcript === null) return null;
    const { start, recorder } = this.#transcript;
    const prepare = assistantPreparer({ life: this.#life, runId: this.#message.runId });
    return { start, userTurnTranscriptRecorder: recorder, prepareAssistantTranscriptMessage: prepare };
  }

  get #target() {
    const { target = { sessionKey: this.#message.sessionKey } } = this.#plan;
    return target;
  }

  #taken(takeover: Exclude<Takeover, { end: "declined" }>): GatewayEnd {
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

  #aborted(): GatewayEnd {
    return { end: "aborted", retryable: this.isUntouched };
  }
}

/** Neither sent nor kept to be sent. */
function isAbortedUnsent(outcome: DeliveryOutcome): boolean {
  if (outcome.status !== "failed" || outcome.failure.at !== "aborted") return false;
  return outcome.custody === undefined || outcome.custody.state === "dropped";
}

/** What the ledger said that could not take it into custody. */
function unkeptFailure(outcome: DeliveryOutcome): HookledgerError | undefined {
  if (outcome.status !== "failed" || outcome.custody !== undefined || outcome.failure.at !== "before-send")
    return undefined;
  const { cause } = outcome.failure;
  return cause instanceof HookledgerError && ERROR_CODES[cause.code] === "store" ? cause : undefined;
}

function payloadsIn(answer: AgentAnswer) {
  if (typeof answer !== "object" || answer === null) return [];
  return isList(answer) ? answer : [answer];
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}
