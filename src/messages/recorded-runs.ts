/** Runs of hooks on the kernel's machine and ledger. A ledger that fails is said, and changes nothing of what handlers said. */

import type { Started } from "../core/events.js";
import { BLOCKS_ON_FAILURE } from "../core/handlers.js";
import { REDUCER_VERSION } from "../core/legality.js";
import { hookErrorsOf } from "../core/result.js";
import { definedBy } from "../core/rewrite.js";
import type { Concluded } from "../core/state.js";
import { type Clock, systemClock } from "../dispatch/clock.js";
import { freshIds } from "../dispatch/fresh-ids.js";
import { requireLabel } from "../dispatch/identity.js";
import { LiveDispatch } from "../dispatch/live.js";
import { PatientStore, STORE_TIMEOUT_MS } from "../dispatch/patient-store.js";
import { Recorder } from "../dispatch/recorder.js";
import { codeOf, said } from "../dispatch/said.js";
import { SparseLog } from "../dispatch/sparse-log.js";
import { type Telemetry, telemetry } from "../dispatch/telemetry.js";
import { unlessAborted } from "../dispatch/unless-aborted.js";
import type { ErrorCode } from "../errors.js";
import { canonicalJson } from "../payload/canonical-json.js";
import { digest } from "../payload/digest.js";
import type { Redactor } from "../payload/redaction.js";
import { schemaDigest } from "../payload/schema.js";
import type { Blob, EventStore } from "../store/port.js";
import { type Logger, type LogSink, loggerFor } from "../subscribers/log.js";
import { ENGINE_VERSION } from "../version.js";
import type { HandlerAnswer } from "./answers.js";
import { documentOf, type Given } from "./document.js";
import { HandlerAnswers } from "./handler-answers.js";
import { type Dress, type HandlerLink, linksOf } from "./handler-chain.js";
import { type MessageHookName, rulesOf } from "./hooks.js";
import { blocksOn, type OperatorOptions, operatorJson, operatorOptions } from "./operator.js";
import type { MessagePlugins, Registered } from "./registry.js";
import type {
  ClaimHook,
  ClaimRun,
  HookRuns,
  NotifyHook,
  NotifyRun,
  RewriteRun,
  RunOptions,
  WaterfallRun,
} from "./runs.js";
import type { ContextOf, EventOf, ResultOf } from "./types.js";

export type RunsParts = {
  readonly plugins: MessagePlugins;
  /** Stays the caller's. */
  readonly store: EventStore;
  readonly redactor: Redactor;
  readonly hooks?: OperatorOptions;
  readonly dress?: Dress;
  readonly log?: LogSink;
  readonly clock?: Clock;
  readonly telemetry?: Telemetry;
  readonly newId?: () => string;
  /** ms that an answer of the store is waited for, 30 000 by default. */
  readonly storeTimeoutMs?: number;
};

type Ran = {
  readonly dispatchId: string;
  readonly state: Concluded;
  readonly answers: HandlerAnswers;
  /** What the run came to, live. */
  readonly given: Given;
  /** Undefined: that is not known yet. */
  readonly storeError: ErrorCode | null | undefined;
  readonly stored: Promise<ErrorCode | null>;
};

const IDLE_MS = 30_000;
/** ms after which the configuration is written again: a collection may have removed it. */
const CONFIG_AGE_MS = 10 * 60 * 1000;
const NOBODY = {
  dispatchId: null,
  failures: [],
  recorded: true,
  storeError: null,
  stored: Promise.resolve(null),
} as const;

export class RecordedRuns implements HookRuns {
  readonly #parts: RunsParts;
  readonly #store: PatientStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #newId: () => string;
  readonly #operator: OperatorOptions;
  readonly #config: Blob;
  readonly #log: Logger;
  readonly #complaints: SparseLog;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #live = new Set<{ readonly cancel: () => void }>();
  #configRecorded = Number.NEGATIVE_INFINITY;

  constructor(parts: RunsParts) {
    this.#parts = parts;
    const { clock = systemClock, log = () => {}, storeTimeoutMs = STORE_TIMEOUT_MS } = parts;
    this.#clock = clock;
    this.#telemetry = parts.telemetry ?? telemetry();
    this.#newId = parts.newId ?? freshIds(clock);
    this.#log = loggerFor("messages", log);
    this.#complaints = new SparseLog(clock, (text) => this.#log.error(text));
    this.#store = new PatientStore(parts.store, {
      clock,
      timeoutMs: storeTimeoutMs,
      onBacklog: () => this.#telemetry.backlogRefused(),
    });
    this.#operator = operatorOptions(parts.hooks ?? {});
    const text = canonicalJson({ messages: operatorJson(this.#operator) });
    this.#config = { digest: digest("config", text), bytes: Buffer.from(text) };
  }

  hasHooks<H extends MessageHookName>(
    hook: H,
    context: Partial<ContextOf<H>>,
    { onlyPlugin }: Pick<RunOptions, "onlyPlugin"> = {},
  ): boolean {
    return this.#links(hook, context, onlyPlugin) !== null;
  }

  async claim<H extends ClaimHook>(
    hook: H,
    event: EventOf<H>,
    context: ContextOf<H>,
    options: RunOptions = {},
  ): Promise<ClaimRun<H>> {
    const ran = await this.#run(hook, { event, context }, options);
    if (ran === null) return { ...NOBODY, end: "declined" };
    const common = commonOf(ran);
    const { state, answers } = ran;
    if (state.kind === "aborted") return { ...common, end: "aborted" };
    const answer = answers.of(state.author);
    if (answer?.class !== "claimed" || !isResultOf<H>(answer.result)) return { ...common, end: "declined" };
    return { ...common, end: "claimed", by: state.decided.decidedBy, result: answer.result };
  }

  async rewrite(
    event: EventOf<"message_sending">,
    context: ContextOf<"message_sending">,
    options: RunOptions = {},
  ): Promise<RewriteRun> {
    const ran = await this.#run("message_sending", { event, context }, options);
    if (ran === null) return { ...NOBODY, end: "sent", content: event.content };
    const common = commonOf(ran);
    const { state, answers } = ran;
    if (state.kind === "aborted") return { ...common, end: "aborted" };
    const by = state.decided.decidedBy;
    const defined = (field: "content" | "cancelReason" | "metadata") => setOf(answers.of(definedBy(state, field)));
    if (state.decided.decision === "allow") {
      return { ...common, end: "sent", content: defined("content")?.content ?? event.content };
    }
    if (!cancelled(ran)) return { ...common, end: "blocked", by };
    const cancelReason = defined("cancelReason")?.cancelReason;
    const metadata = defined("metadata")?.metadata;
    return {
      ...common,
      end: "cancelled",
      by,
      ...(cancelReason === undefined ? {} : { cancelReason }),
      ...(metadata === undefined ? {} : { metadata }),
    };
  }

  async waterfall(
    event: EventOf<"reply_payload_sending">,
    context: ContextOf<"reply_payload_sending">,
    options: RunOptions = {},
  ): Promise<WaterfallRun> {
    const ran = await this.#run("reply_payload_sending", { event, context }, options);
    if (ran === null) return { ...NOBODY, end: "sent", payload: event.payload };
    const common = commonOf(ran);
    const { state, answers } = ran;
    if (state.kind === "aborted") return { ...common, end: "aborted" };
    const by = state.decided.decidedBy;
    if (state.decided.decision === "allow") {
      const answer = answers.of(state.author);
      return { ...common, end: "sent", payload: answer?.class === "replaced" ? answer.payload : event.payload };
    }
    const answer = cancelled(ran);
    if (answer === null) return { ...common, end: "blocked", by };
    const reason = answer.class === "cancelled" ? answer.reason : undefined;
    return { ...common, end: "cancelled", by, ...(reason === undefined ? {} : { reason }) };
  }

  async notify<H extends NotifyHook>(
    hook: H,
    event: EventOf<H>,
    context: ContextOf<H>,
    options: RunOptions = {},
  ): Promise<NotifyRun> {
    const ran = await this.#run(hook, { event, context }, options);
    if (ran === null) return { ...NOBODY, end: "notified" };
    return { ...commonOf(ran), end: ran.state.kind === "aborted" ? "aborted" : "notified" };
  }

  /** Resolves when no run is under way any more. Those that are after `limitMs` are aborted: a handler without a deadline may never end. */
  async idle(limitMs = IDLE_MS): Promise<void> {
    if (!(await this.#isQuietWithin(limitMs))) {
      this.#log.warn(`${this.#underWay.size} runs have not ended within ${limitMs} ms, and are aborted`);
      for (const { cancel } of this.#live) cancel();
      await this.#isQuietWithin(limitMs);
    }
    this.#complaints.flush();
  }

  async #isQuietWithin(limitMs: number): Promise<boolean> {
    const quiet = async (): Promise<true> => {
      while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
      return true;
    };
    let cancel = (): void => {};
    const late = new Promise<false>((resolve) => {
      cancel = this.#clock.timer(limitMs, () => resolve(false));
    });
    return Promise.race([quiet(), late]).finally(() => cancel());
  }

  /** Null where nobody is to be asked. */
  #links(hook: MessageHookName, context: object, onlyPlugin: string | undefined): HandlerLink[] | null {
    const all = this.#parts.plugins.handlers(hook);
    const asked = onlyPlugin === undefined ? all : all.filter(({ plugin }) => plugin === onlyPlugin);
    if (asked.length === 0) return null;
    const { dress = asItIs } = this.#parts;
    const links = linksOf(asked satisfies readonly Registered[], context, { timeouts: this.#operator, dress });
    return links.every(({ subscriber }) => subscriber.skip !== undefined) ? null : links;
  }

  #run(hook: MessageHookName, given: Given, options: RunOptions): Promise<Ran | null> {
    const links = this.#links(hook, given.context, options.onlyPlugin);
    if (links === null) return Promise.resolve(null);
    const running = this.#recordedRun(hook, links, given, options);
    this.#track(running.then(({ stored }) => stored));
    return running;
  }

  async #recordedRun(
    hook: MessageHookName,
    links: readonly HandlerLink[],
    given: Given,
    { signal, deferred = false }: RunOptions,
  ): Promise<Ran> {
    const { redactor } = this.#parts;
    const dispatchId = this.#newId();
    const session = this.#label("session", given, "sessionKey");
    const turn = this.#label("turn", given, "runId");
    const span = this.#telemetry.dispatch(hook, session);
    const recorder = new Recorder(
      this.#store,
      dispatchId,
      {
        engineVersion: ENGINE_VERSION,
        writer: this.#store.writer,
        ...(session === undefined ? {} : { session }),
        ...(turn === undefined ? {} : { turn }),
        ...(span.traceparent === undefined ? {} : { traceparent: span.traceparent }),
      },
      this.#clock,
    );
    const begun = this.#clock.now();
    const withConfig = begun - this.#configRecorded > CONFIG_AGE_MS;
    if (withConfig) recorder.attach(this.#config);
    const answers = new HandlerAnswers(redactor);
    const input = documentOf(given, redactor);
    const live = new LiveDispatch<Given, HandlerAnswer, MessageHookName>({
      links,
      answers,
      started: this.#startedEvent(hook, dispatchId, links, input.ref),
      input,
      context: { dispatchId, point: hook, session, turn },
      signal,
      ownsStart: null,
      recorder,
      clock: this.#clock,
      telemetry: span,
      abortOnStoreFailure: false,
      onHookError: ({ subscriber, category, message }) => {
        this.#log.warn(redactor.text(`${hook}: handler ${subscriber} failed (${category}): ${message}`));
      },
      claimDetached: () => () => {},
    });
    this.#live.add(live);
    try {
      const state = await live.run();
      const stored = this.#stored(recorder, hook, deferred).then((storeError) => {
        if (withConfig && storeError === null) this.#configRecorded = begun;
        return storeError;
      });
      // A caller that gives up does not wait for the ledger either: whether it is recorded is not known then.
      const known = deferred ? "aborted" : await unlessAborted(stored, signal);
      const storeError = known === "aborted" ? undefined : known;
      return { dispatchId, state, answers, given, storeError, stored };
    } finally {
      this.#live.delete(live);
      span.end();
    }
  }

  /** Why it is not recorded, or null once it is. */
  async #stored(recorder: Recorder, hook: MessageHookName, deferred: boolean): Promise<ErrorCode | null> {
    try {
      await (deferred ? recorder.written() : recorder.durable());
      return null;
    } catch (error) {
      this.#telemetry.storeFailed(hook);
      this.#complaints.say(this.#parts.redactor.text(`${recorder.stream} (${hook}) is not recorded: ${said(error)}`));
      return codeOf(error);
    }
  }

  #track(work: Promise<unknown>): void {
    this.#underWay.add(work);
    const done = (): void => {
      this.#underWay.delete(work);
    };
    work.then(done, done);
  }

  #startedEvent(
    hook: MessageHookName,
    dispatchId: string,
    links: readonly HandlerLink[],
    input: Started["input"],
  ): Started {
    const redacted = this.#parts.redactor.active ? ["redacted"] : [];
    return {
      type: "started",
      dispatchId,
      point: hook,
      composition: rulesOf(hook).composition,
      reducerVersion: REDUCER_VERSION,
      flags: [...redacted, ...(blocksOn(hook, this.#operator) ? [BLOCKS_ON_FAILURE] : [])],
      vetoBearing: false,
      observe: "sequential",
      budgetMs: null,
      subscribers: links.map(({ subscriber }) => subscriber),
      configDigest: this.#config.digest,
      descriptorDigest: schemaDigest(),
      input,
    };
  }

  /** A key that is no label of a record is left out: that never fails a message. */
  #label(name: "session" | "turn", { event, context }: Given, key: string): string | undefined {
    const value: unknown = Reflect.get(context, key) ?? Reflect.get(event, key);
    if (typeof value !== "string") return undefined;
    try {
      return requireLabel(name, value, this.#parts.redactor);
    } catch {
      return undefined;
    }
  }
}

function asItIs(event: object): object {
  return event;
}

function commonOf({ dispatchId, state, storeError, stored }: Ran) {
  return {
    dispatchId,
    failures: hookErrorsOf(state),
    recorded: storeError === null,
    storeError: storeError ?? null,
    stored,
  };
}

/** What the canceller answered; null where a failure blocked. */
function cancelled({ state, answers }: Ran): HandlerAnswer | null {
  if (state.kind !== "decided") return null;
  const { decidedBy } = state.decided;
  const by = state.started.subscribers.find(({ id }) => id === decidedBy);
  return answers.of(by?.index ?? null) ?? null;
}

function setOf(answer: HandlerAnswer | undefined) {
  return answer?.class === "defined" ? answer.set : undefined;
}

/** The type of a claim's result is the hook's own promise; what is in it is for the host to read with care, and nothing of it is read here. */
function isResultOf<H extends ClaimHook>(result: object): result is NonNullable<ResultOf<H>> & object {
  return typeof result === "object";
}
