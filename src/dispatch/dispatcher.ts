/** Turns a payload into a started dispatch, runs it, and hands out its result once the ledger has it. */
import type { Settings } from "../config/types.js";
import type { AbortCause, Started } from "../core/events.js";
import { REDUCER_VERSION } from "../core/legality.js";
import type { HookPoint } from "../core/points.js";
import type { HookErrorRecord } from "../core/result.js";
import { inFlight } from "../core/state.js";
import type { ErrorCode } from "../errors.js";
import type { HookPayloadInput } from "../payload/messages.js";
import { type Payload, payloadFrom } from "../payload/payload.js";
import { readPlan } from "../payload/plan.js";
import type { Redactor } from "../payload/redaction.js";
import { schemaDigest } from "../payload/schema.js";
import type { Blob, EventStore, StreamName } from "../store/port.js";
import { thrownText } from "../subscribers/fault.js";
import { type Logger, type LogSink, loggerFor } from "../subscribers/log.js";
import { ENGINE_VERSION } from "../version.js";
import type { ChainAnswer, Chains, FrozenChain } from "./chain.js";
import { ChainAnswers } from "./chain-answers.js";
import { type Clock, isoTime } from "./clock.js";
import { claimId, isOwn, recordedResult, stillOpen } from "./idempotency.js";
import { requireDispatchId, requireLabel } from "./identity.js";
import { AlreadyStarted, LiveDispatch } from "./live.js";
import { mend } from "./mend.js";
import { PatientStore } from "./patient-store.js";
import { Recorder } from "./recorder.js";
import { type DispatchResult, resultOf, unrecordedResult } from "./result.js";
import { codeOf, said } from "./said.js";
import { SparseLog } from "./sparse-log.js";
import type { Telemetry } from "./telemetry.js";
import { unlessAborted } from "./unless-aborted.js";
import { type Version, versionOf } from "./version.js";

export type DispatchOptions = {
  /** At most 256 bytes, no control characters; so is `turn`. */
  readonly session?: string;
  readonly turn?: string;
  /** A ULID: the same id with the same payload gives the recorded result and asks nobody. */
  readonly id?: string;
  /** The caller's own cancellation: ends the chain as aborted, which is no verdict. */
  readonly signal?: AbortSignal;
};

export type DispatcherParts = {
  readonly settings: Settings;
  readonly configBlob: Blob;
  readonly chains: Chains;
  readonly redactor: Redactor;
  readonly store: EventStore;
  /** ms that an answer of the store is waited for. */
  readonly storeTimeoutMs: number;
  /** What a dispatch under an id of the caller's waits for: it may be what a crash left open. Never rejects. */
  readonly recovered: Promise<unknown> | null;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly onHookError: (error: HookErrorRecord & { readonly dispatchId: string }) => void;
  readonly newId: () => string;
  readonly log: LogSink;
};

type Asked = Omit<DispatchOptions, "session" | "turn"> & {
  readonly session: string | undefined;
  readonly turn: string | undefined;
};

type UnderWay = {
  readonly live: LiveDispatch<Payload, ChainAnswer, HookPoint>;
  readonly answers: ChainAnswers;
  readonly recorder: Recorder;
  readonly chain: FrozenChain;
};

/** Detached observers in flight, over all dispatches of a kernel. */
const MAX_DETACHED = 1024;

/** ms after which the configuration is written again: if nothing refers to it any more, a collection may have removed it. */
const CONFIG_AGE = 10 * 60 * 1000;

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #store: PatientStore;
  readonly #log: Logger;
  /** A ledger without room refuses every dispatch that comes. */
  readonly #refused: SparseLog;
  readonly #underWay = new Set<Promise<void>>();
  #detached = 0;
  /** Monotonic ms of the last dispatch with which the configuration became durable. */
  #configRecorded = Number.NEGATIVE_INFINITY;

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    const { store, clock, storeTimeoutMs, telemetry } = parts;
    this.#log = loggerFor("kernel", parts.log);
    this.#refused = new SparseLog(clock, (text) => this.#log.error(text));
    this.#store = new PatientStore(store, {
      clock,
      timeoutMs: storeTimeoutMs,
      onBacklog: () => telemetry.backlogRefused(),
    });
  }

  dispatch(input: HookPayloadInput | Payload | Uint8Array, asked: DispatchOptions): Promise<DispatchResult> {
    const work = this.#dispatch(input, asked);
    this.#track(work);
    return work;
  }

  async #dispatch(input: HookPayloadInput | Payload | Uint8Array, asked: DispatchOptions): Promise<DispatchResult> {
    const { redactor, newId } = this.#parts;
    const payload = payloadFrom(input);
    if (payload.point === "plan-ready") readPlan(payload);
    const options = {
      ...asked,
      session: requireLabel("session", asked.session, redactor),
      turn: requireLabel("turn", asked.turn, redactor),
    };
    const version = versionOf(payload, redactor);
    const id = requireDispatchId(options.id ?? newId());
    if (options.id === undefined) return this.#run(id, version, options);
    await this.#parts.recovered;
    const release = claimId(this.#parts.store, id);
    try {
      const recorded = await recordedResult(this.#store, redactor, id, version);
      if (recorded !== null) return recorded;
      if (release === null) throw stillOpen(id);
      return await this.#run(id, version, options);
    } catch (error) {
      if (!(error instanceof AlreadyStarted)) throw error;
      const other = await recordedResult(this.#store, redactor, id, version);
      if (other === null) throw error.cause;
      return other;
    } finally {
      release?.();
    }
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
    this.#refused.flush();
  }

  async #run(dispatchId: string, input: Version, options: Asked): Promise<DispatchResult> {
    const { session, turn } = options;
    const { clock, redactor } = this.#parts;
    const store = this.#store;
    const found = this.#chainAt(input.payload.point, options.signal);
    const chain = found instanceof Promise ? await found : found;
    const span = this.#parts.telemetry.dispatch(chain.point, session);
    const recorder = new Recorder(
      store,
      dispatchId,
      {
        engineVersion: ENGINE_VERSION,
        writer: store.writer,
        ...(session === undefined ? {} : { session }),
        ...(turn === undefined ? {} : { turn }),
        ...(span.traceparent === undefined ? {} : { traceparent: span.traceparent }),
      },
      clock,
    );
    const begun = clock.now();
    const withConfig = begun - this.#configRecorded > CONFIG_AGE;
    if (withConfig) recorder.attach(this.#parts.configBlob);
    const answers = new ChainAnswers(redactor);
    const live = new LiveDispatch<Payload, ChainAnswer, HookPoint>({
      links: chain.links,
      answers,
      started: this.#startedEvent(dispatchId, chain, input),
      input,
      context: { dispatchId, point: chain.point, session, turn },
      signal: options.signal,
      ownsStart: options.id === undefined ? null : () => this.#ownsStart(recorder),
      recorder,
      clock,
      telemetry: span,
      abortOnStoreFailure: this.#abortsOnStoreFailure(chain),
      onHookError: (error) => this.#report({ ...error, dispatchId }),
      claimDetached: () => this.#claimDetached(),
    });
    const result = await this.#finish({ live, answers, recorder, chain }, options).finally(() => span.end());
    if (withConfig && recorder.failure === null) this.#configRecorded = begun;
    return result;
  }

  async #ownsStart({ stream }: Recorder): Promise<boolean> {
    const found = await this.#store.readStream(stream);
    return found !== null && isOwn(this.#store, found);
  }

  async #finish({ live, answers, recorder, chain }: UnderWay, options: Asked): Promise<DispatchResult> {
    const state = await live.run();
    const { items } = answers;
    const result = (storeError: ErrorCode | null): DispatchResult =>
      resultOf(items === null ? state : { ...state, items }, live.versionOf(state).payload, {
        session: options.session ?? null,
        turn: options.turn ?? null,
        durationMs: live.elapsed(),
        storeError,
      });
    try {
      await recorder.durable();
      return result(null);
    } catch (error) {
      return await this.#unrecorded(result(codeOf(error)), recorder, chain, error);
    } finally {
      if (inFlight(state).length > 0) this.#track(this.#finishLate(live, recorder, chain));
    }
  }

  /** What detached observers come to belongs into the ledger too, and what is lost of it is said. */
  async #finishLate(live: UnderWay["live"], recorder: Recorder, { point }: FrozenChain): Promise<void> {
    const known = recorder.failure;
    const fault = await live.quiet;
    const error = await recorder.written().then(
      () => fault,
      (failure: unknown) => (failure === known ? fault : failure),
    );
    if (error === null) return;
    this.#parts.telemetry.storeFailed(point);
    this.#complain(error, `${recorder.stream}: what came after the decision is not recorded: ${said(error)}`);
  }

  /** The ledger is part of the decision: what it could not keep is not allowed, unless the operator said otherwise. */
  async #unrecorded(
    result: DispatchResult,
    recorder: Recorder,
    chain: FrozenChain,
    error: unknown,
  ): Promise<DispatchResult> {
    const why = this.#redacted(said(error));
    this.#parts.telemetry.storeFailed(chain.point);
    this.#complain(error, `dispatch ${result.dispatchId} is not recorded: ${why}`);
    // Somebody else went on with this dispatch: a fenced writer does not act, whatever the operator said of a store that fails.
    const stale = codeOf(error) === "HL_STORE_CONFLICT";
    if (!stale && !this.#abortsOnStoreFailure(chain)) return result;
    const cause = await this.#mended(recorder.stream, result.dispatchId, stale);
    const ownVerdict = result.status === "aborted" && result.abortCause !== "store_unavailable";
    return ownVerdict ? result : unrecordedResult(result, cause ?? "store_unavailable", why);
  }

  /**
   * A store that is silent keeps the caller waiting no longer for this: what can be mended is mended once it speaks. Whoever closes the
   * kernel waits for that as long as for any other answer: nobody would take back what is decided after all.
   */
  #mended(stream: StreamName, dispatchId: string, stale: boolean): Promise<AbortCause | null> {
    const moment = { engineVersion: ENGINE_VERSION, at: isoTime(this.#parts.clock.wall()) };
    const begin = (): Promise<AbortCause | null> => {
      const mending = mend(this.#store, stream, dispatchId, moment, stale);
      this.#track(mending);
      return mending;
    };
    const unanswered = this.#store.unanswered(stream);
    if (unanswered === null) return this.#store.inTime(begin()).catch(() => null);
    this.#track(this.#store.inTime(unanswered.then(begin)));
    return Promise.resolve(null);
  }

  #complain(error: unknown, text: string): void {
    const line = this.#redacted(text);
    if (codeOf(error) === "HL_STORE_BACKLOG") this.#refused.say(line);
    else this.#log.error(line);
  }

  #startedEvent(dispatchId: string, chain: FrozenChain, input: Version): Started {
    const { settings, configBlob, redactor } = this.#parts;
    return {
      type: "started",
      dispatchId,
      point: chain.point,
      composition: "chain",
      reducerVersion: REDUCER_VERSION,
      flags: redactor.active ? REDACTED : NO_FLAGS,
      vetoBearing: chain.vetoBearing,
      observe: settings.observeConcurrency,
      budgetMs: settings.chainBudgetMs ?? null,
      subscribers: chain.subscribers,
      configDigest: configBlob.digest,
      descriptorDigest: schemaDigest(),
      input: input.ref,
    };
  }

  /** Starting a plugin takes time of its own; a caller that gives up meanwhile is not kept waiting, and nobody is called. */
  #chainAt(point: HookPoint, signal: AbortSignal | undefined): FrozenChain | Promise<FrozenChain> {
    const { chains } = this.#parts;
    if (signal?.aborted === true) return chains.asItStands(point);
    const chain = chains.at(point);
    if (signal === undefined || !(chain instanceof Promise)) return chain;
    return unlessAborted(chain, signal).then((started) => (started === "aborted" ? chains.asItStands(point) : started));
  }

  #abortsOnStoreFailure(chain: FrozenChain): boolean {
    return chain.vetoBearing || this.#parts.settings.onStoreFailure === "abort";
  }

  #claimDetached(): (() => void) | null {
    if (this.#detached >= MAX_DETACHED) return null;
    this.#detached++;
    return () => {
      this.#detached--;
    };
  }

  #report(error: HookErrorRecord & { readonly dispatchId: string }): void {
    const dropped = (thrown: unknown) => this.#log.warn(this.#redacted(`onHookError threw: ${thrownText(thrown)}`));
    try {
      const returned: unknown = this.#parts.onHookError(error);
      if (returned instanceof Promise) returned.catch(dropped);
    } catch (thrown) {
      dropped(thrown);
    }
  }

  #redacted(text: string): string {
    return this.#parts.redactor.text(text);
  }

  #track(work: Promise<unknown>): void {
    const done: Promise<void> = work.then(
      () => {},
      () => {},
    );
    this.#underWay.add(done);
    void done.then(() => this.#underWay.delete(done));
  }
}

const NO_FLAGS: readonly string[] = [];
const REDACTED: readonly string[] = ["redacted"];
