/** A chat gateway: messages in, turns one after the other in each session, replies out through the hooks, everything recorded. */

import { type Clock, systemClock } from "../../dispatch/clock.js";
import { freshIds } from "../../dispatch/fresh-ids.js";
import { createRedactor } from "../../payload/redaction.js";
import { boundedMessage } from "../../payload/text.js";
import { openStore } from "../../store/open.js";
import { thrownText } from "../../subscribers/fault.js";
import { type Logger, loggerFor } from "../../subscribers/log.js";
import { AgentReplies } from "../agent/agent-replies.js";
import { createMessageHooks, type MessageHooks } from "../create.js";
import { ConversationBindings } from "../inbound/bindings.js";
import { InboundDedupe } from "../inbound/dedupe.js";
import type { InboundMessage } from "../inbound/message.js";
import type { ChannelAdapter } from "../outbound/adapter.js";
import { requireStages } from "../outbound/before-deliver.js";
import { createReplyDispatcher } from "../outbound/dispatcher.js";
import { UsageStates } from "../outbound/usage-states.js";
import type { MessagePlugins } from "../registry.js";
import type { GatewayOptions } from "./options.js";
import type { GatewayOutcome, TurnCompletion } from "./outcome.js";
import { Sessions } from "./sessions.js";
import { runTurn, type TurnMessage, type TurnParts } from "./turn.js";

export type Gateway = {
  /** Loaded, replaced and unloaded at any time; runs under way go on with the handlers they began with. */
  readonly plugins: MessagePlugins;
  /** Resolves when the turn is over and its replies are settled. `signal`: aborts the turn. Rejects with what `sessionKeyOf` throws alone. */
  receive(message: InboundMessage, options?: { readonly signal?: AbortSignal }): Promise<GatewayOutcome>;
  /** Takes nothing more, waits for what is under way, aborts what takes too long, and lets go of what it has opened. Idempotent. */
  close(): Promise<void>;
};

const WAITING_PER_SESSION = 32;
const MESSAGES = 1_024;
const CLOSE_TIMEOUT_MS = 10_000;
const FAILURE_NOTICE = "Something went wrong, and this message was not answered. Please try again.";

/** Throws HL_PLUGIN, HL_CONFIG (an invalid pattern), HL_STORE_… and RangeError (two channels of one id, a stage's limit). */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const channels = channelsOf(options.channels);
  const { store: given } = options;
  const store = typeof given === "string" ? await openStore(given, { mode: "write" }) : given;
  const letGo = async (): Promise<void> => {
    if (typeof given === "string") await store.close();
  };
  try {
    const hooks = await createMessageHooks({ ...options, store });
    return new RunningGateway(options, hooks, channels, letGo);
  } catch (error) {
    await letGo();
    throw error;
  }
}

class RunningGateway implements Gateway {
  readonly plugins: MessagePlugins;
  readonly #options: GatewayOptions;
  readonly #hooks: MessageHooks;
  readonly #letGo: () => Promise<void>;
  readonly #parts: TurnParts;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #log: Logger;
  readonly #underWay = new Set<Promise<unknown>>();
  /** Aborted when closing takes too long. */
  readonly #impatience = new AbortController();
  #closed: Promise<void> | null = null;

  constructor(
    options: GatewayOptions,
    hooks: MessageHooks,
    channels: ReadonlyMap<string, ChannelAdapter>,
    letGo: () => Promise<void>,
  ) {
    const { clock = systemClock, log = () => {}, bindings, stage, dedupe, limits = {}, onWarning } = options;
    const redactor = createRedactor({ patterns: options.redact ?? [], secrets: options.secrets ?? [] });
    const { runs, plugins } = hooks;
    const usage = new UsageStates(clock);
    this.plugins = plugins;
    this.#options = options;
    this.#hooks = hooks;
    this.#letGo = letGo;
    this.#clock = clock;
    this.#newId = options.newId ?? freshIds(clock);
    this.#log = loggerFor("gateway", (line) => log({ ...line, message: redactor.text(line.message) }));
    this.#sessions = new Sessions({ waitingPerSession: WAITING_PER_SESSION, messages: MESSAGES, ...limits });
    this.#parts = {
      runs,
      channels,
      usage,
      agent: options.agent,
      agentReplies: new AgentReplies({ runs }),
      plan: options.plan ?? (() => ({})),
      dedupe: new InboundDedupe({ now: () => clock.now(), ...dedupe }),
      ...(bindings === undefined ? {} : { bindings: new ConversationBindings({ ...bindings, plugins }) }),
      ...(stage === undefined ? {} : { stage }),
      log: (line) => log({ ...line, message: redactor.text(line.message) }),
      failureNotice: options.failureNotice ?? FAILURE_NOTICE,
      said: (thrown) => boundedMessage(redactor.text(thrownText(thrown))),
      openDispatcher: (turn) =>
        createReplyDispatcher({ runs, usage, clock, ...(onWarning === undefined ? {} : { onWarning }), ...turn }),
    };
  }

  async receive(given: InboundMessage, { signal }: { readonly signal?: AbortSignal } = {}): Promise<GatewayOutcome> {
    const { sessionKeyOf = defaultSessionKey } = this.#options;
    const runId = given.runId || this.#newId();
    const message: TurnMessage = { ...given, runId, sessionKey: sessionKeyOf(given) };
    const { sessionKey } = message;
    if (this.#closed !== null) return { end: "closed", retryable: true, runId, sessionKey, completion: null };
    const { signal: impatience } = this.#impatience;
    const working = this.#turn(message, signal === undefined ? impatience : AbortSignal.any([signal, impatience]));
    this.#underWay.add(working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(working);
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #turn(message: TurnMessage, signal: AbortSignal): Promise<GatewayOutcome> {
    const { runId, sessionKey } = message;
    const leave = await this.#sessions.enter(sessionKey, signal);
    if (leave === "busy") return { end: "busy", retryable: true, runId, sessionKey, completion: null };
    if (leave === "aborted") return { end: "aborted", retryable: true, runId, sessionKey, completion: null };
    try {
      const { end, completion } = await runTurn(message, signal, this.#parts);
      if (completion !== null) this.#tell(completion);
      if (end.end === "failed") this.#log.warn(`the turn of run ${runId} failed (${end.at}): ${end.error}`);
      return { ...end, runId, sessionKey, completion };
    } finally {
      leave();
    }
  }

  #tell(completion: TurnCompletion): void {
    try {
      this.#options.onCompletion?.(completion);
    } catch (thrown) {
      this.#log.error(thrown);
    }
  }

  async #close(): Promise<void> {
    if (!(await this.#within(this.#idle()))) {
      this.#impatience.abort(new Error("the gateway is closing"));
      if (!(await this.#within(this.#idle()))) this.#log.error(`${this.#underWay.size} turns were left under way`);
    }
    // An observer without a limit may hang for ever.
    if (!(await this.#within(this.#hooks.close()))) this.#log.error("observers were left under way");
    await this.#letGo();
  }

  async #idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  /** false: it takes longer than closing may. */
  async #within(work: Promise<void>): Promise<boolean> {
    const { closeTimeoutMs = CLOSE_TIMEOUT_MS } = this.#options;
    let cancel = (): void => {};
    const late = new Promise<false>((resolve) => {
      cancel = this.#clock.timer(closeTimeoutMs, () => resolve(false));
    });
    try {
      return await Promise.race([work.then(() => true as const), late]);
    } finally {
      cancel();
    }
  }
}

function channelsOf(adapters: readonly ChannelAdapter[]): ReadonlyMap<string, ChannelAdapter> {
  const channels = new Map<string, ChannelAdapter>();
  for (const adapter of adapters) {
    const { channelId, beforeDeliver = [] } = adapter;
    if (channels.has(channelId)) throw new RangeError(`there are two channels ${JSON.stringify(channelId)}`);
    requireStages(beforeDeliver);
    channels.set(channelId, adapter);
  }
  return channels;
}

function defaultSessionKey({
  sessionKey,
  agentId,
  channelId,
  accountId,
  conversationId,
  from,
}: InboundMessage): string {
  if (sessionKey) return sessionKey;
  return ["agent", agentId || "main", channelId, accountId || "default", conversationId || from].join(":");
}
