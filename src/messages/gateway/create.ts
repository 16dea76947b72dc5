/** A chat gateway: messages in, turns one after the other in each session, replies out through the hooks, everything recorded. */

import { type Clock, systemClock } from "../../dispatch/clock.js";
import { freshIds } from "../../dispatch/fresh-ids.js";
import { createRedactor } from "../../payload/redaction.js";
import { boundedMessage } from "../../payload/text.js";
import { openStore } from "../../store/open.js";
import type { DeliveryQueue } from "../../store/queue.js";
import { queueOf } from "../../store/queue-of.js";
import { thrownText } from "../../subscribers/fault.js";
import { type Logger, loggerFor } from "../../subscribers/log.js";
import { AgentReplies } from "../agent/agent-replies.js";
import { createMessageHooks, type MessageHooks } from "../create.js";
import { type DurableDeliveries, openDurableDeliveries } from "../durable/deliveries.js";
import { hostLog } from "../host-log.js";
import { ConversationBindings } from "../inbound/bindings.js";
import { InboundDedupe } from "../inbound/dedupe.js";
import { known } from "../inbound/known.js";
import type { InboundMessage } from "../inbound/message.js";
import { requireMs } from "../limits.js";
import { tell } from "../listener.js";
import type { ChannelAdapter } from "../outbound/adapter.js";
import { requireStages } from "../outbound/before-deliver.js";
import { createReplyDispatcher } from "../outbound/dispatcher.js";
import { UsageStates } from "../outbound/usage-states.js";
import type { MessagePlugins } from "../registry.js";
import type { HookRuns } from "../runs.js";
import type { GatewayOptions } from "./options.js";
import type { GatewayOutcome } from "./outcome.js";
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

/** Throws HL_PLUGIN, HL_CONFIG (an invalid pattern), HL_STORE_… and RangeError (two channels of one id, a limit that is none). */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const channels = channelsOf(options.channels);
  const { store: given, startTimeoutMs, closeTimeoutMs, storeTimeoutMs } = options;
  requireMs({ startTimeoutMs, closeTimeoutMs, storeTimeoutMs });
  const store = typeof given === "string" ? await openStore(given, { mode: "write" }) : given;
  const letGo = async (): Promise<void> => {
    if (typeof given === "string") await store.close();
  };
  let hooks: MessageHooks | undefined;
  try {
    hooks = await createMessageHooks({ ...options, store });
    const deliveries = await durableDeliveries(options, queueOf(store), hooks.runs, channels);
    return new RunningGateway(options, { hooks, deliveries, channels, letGo });
  } catch (error) {
    await hooks?.close();
    await letGo();
    throw error;
  }
}

/** Null where replies are sent at once and once. */
async function durableDeliveries(
  { durable = {}, redact = [], secrets = [], log, clock, storeTimeoutMs, closeTimeoutMs, onWarning }: GatewayOptions,
  queue: DeliveryQueue | null,
  runs: HookRuns,
  channels: Channels,
): Promise<DurableDeliveries | null> {
  if (queue === null || durable === false) return null;
  const redactor = createRedactor({ patterns: redact, secrets });
  return openDurableDeliveries({
    ...durable,
    queue,
    runs,
    channelOf: ({ channelId }) => channels.get(channelId),
    redact: (text) => redactor.text(text),
    ...known({ log, clock, storeTimeoutMs, drainMs: closeTimeoutMs, onWarning }),
  });
}

/** What it is made of, and is to let go of. */
type Made = {
  readonly hooks: MessageHooks;
  readonly deliveries: DurableDeliveries | null;
  readonly channels: Channels;
  readonly letGo: () => Promise<void>;
};

type Channels = ReadonlyMap<string, ChannelAdapter>;

class RunningGateway implements Gateway {
  readonly plugins: MessagePlugins;
  readonly #options: GatewayOptions;
  readonly #made: Made;
  readonly #parts: TurnParts;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #newId: () => string;
  readonly #log: Logger;
  readonly #underWay = new Map<AbortController, Promise<unknown>>();
  #closed: Promise<void> | null = null;

  constructor(options: GatewayOptions, made: Made) {
    const { clock = systemClock, log = () => {}, bindings, stage, dedupe, limits = {}, onChatEvent } = options;
    const redactor = createRedactor({ patterns: options.redact ?? [], secrets: options.secrets ?? [] });
    const redacted = hostLog(log, redactor);
    const { deliveries, channels, hooks } = made;
    const { runs, plugins } = hooks;
    const usage = new UsageStates(clock);
    const way = {
      runs,
      usage,
      clock,
      ...known({ onWarning: options.onWarning }),
      ...(deliveries === null ? {} : { durable: true, deferred: true, deliverOne: deliveries.deliverOne }),
    };
    this.plugins = plugins;
    this.#options = options;
    this.#made = made;
    this.#clock = clock;
    this.#newId = options.newId ?? freshIds(clock);
    this.#log = loggerFor("gateway", redacted);
    this.#sessions = new Sessions({ waitingPerSession: WAITING_PER_SESSION, messages: MESSAGES, ...limits });
    this.#parts = {
      runs,
      channels,
      usage,
      clock,
      agent: options.agent,
      agentReplies: new AgentReplies({ runs }),
      plan: options.plan ?? (() => ({})),
      dedupe: new InboundDedupe({ now: () => clock.now(), ...dedupe }),
      ...(bindings === undefined ? {} : { bindings: new ConversationBindings({ ...bindings, plugins }) }),
      ...(stage === undefined ? {} : { stage }),
      log: redacted,
      failureNotice: options.failureNotice ?? FAILURE_NOTICE,
      transcripts: options.transcripts ?? null,
      acknowledge: options.acknowledge ?? (() => {}),
      startTimeoutMs: options.startTimeoutMs ?? null,
      onChatEvent: (event) => this.#tell(onChatEvent, event),
      warn: (thrown) => this.#log.warn(thrown),
      said: (thrown) => boundedMessage(redactor.text(thrownText(thrown))),
      openDispatcher: (turn) => createReplyDispatcher({ ...way, ...turn }),
    };
  }

  async receive(given: InboundMessage, { signal }: { readonly signal?: AbortSignal } = {}): Promise<GatewayOutcome> {
    const { sessionKeyOf = defaultSessionKey } = this.#options;
    const runId = given.runId || this.#newId();
    const message: TurnMessage = { ...given, runId, sessionKey: sessionKeyOf(given) };
    const { sessionKey } = message;
    if (this.#closed !== null) return { end: "closed", retryable: true, runId, sessionKey, completion: null };
    const turn = new AbortController();
    const abort = (): void => turn.abort(signal?.reason);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    const working = this.#turn(message, turn.signal);
    this.#underWay.set(turn, working);
    try {
      return await working;
    } finally {
      this.#underWay.delete(turn);
      signal?.removeEventListener("abort", abort);
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
      if (completion !== null) this.#tell(this.#options.onCompletion, completion);
      if (end.end === "failed") this.#log.warn(`the turn of run ${runId} failed (${end.at}): ${end.error}`);
      return { ...end, runId, sessionKey, completion };
    } finally {
      leave();
    }
  }

  /** A listener has no say in turns. */
  #tell<T>(listener: ((news: T) => void) | undefined, news: T): void {
    tell(listener, news, this.#log.error);
  }

  async #close(): Promise<void> {
    const { deliveries, hooks, letGo } = this.#made;
    if (!(await this.#within(this.#idle()))) {
      const closing = new Error("the gateway is closing");
      // First, so that what is kept already stays kept, whatever becomes of its turn.
      void deliveries?.close();
      for (const turn of this.#underWay.keys()) turn.abort(closing);
      if (!(await this.#within(this.#idle()))) this.#log.error(`${this.#underWay.size} turns were left under way`);
    }
    // Its time is bounded by itself.
    await deliveries?.close();
    // An observer without a limit may hang for ever.
    if (!(await this.#within(hooks.close()))) this.#log.error("observers were left under way");
    await letGo();
  }

  async #idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay.values());
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

function channelsOf(adapters: readonly ChannelAdapter[]): Channels {
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
