/**
 * One live dispatch: asks the machine what to do, does it, records what happened, and asks again. All decisions are the
 * machine's; this file knows time, callers and the store.
 */
import type { Digest, DispatchEvent, Outcome, Started, Subscriber } from "../core/events.js";
import { next } from "../core/machine.js";
import { type HookErrorRecord, hookErrorOf } from "../core/result.js";
import { type Begun, type Concluded, inFlight, isAbandoned } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import { type Fault, failed } from "../subscribers/fault.js";
import { Call, type CallContext, type CallSettlement, callMode } from "./call.js";
import type { Link } from "./chain.js";
import { type Clock, isoTime } from "./clock.js";
import type { Attachment, Recorder } from "./recorder.js";
import type { DispatchTelemetry, SubscriberTelemetry } from "./telemetry.js";
import { attachmentOf, type Version } from "./version.js";

/** How answers of one kind are written down. */
export interface Answers<P, A> {
  /** `seen`: what the subscriber was given. Redacted copies are recorded; a `made` payload is what the next ones may see. */
  recorded(subscriber: Subscriber, answer: A | Fault, seen: Version<P>): RecordedAnswer<P>;
}

export type RecordedAnswer<P> = {
  readonly outcome: Outcome;
  readonly made: Version<P> | null;
  /** Bytes of what the outcome refers to, the made payload's among them. */
  readonly attachments: readonly Attachment[];
};

type LiveOptions<P, A, N extends string> = {
  readonly links: readonly Link<P, A | Fault, N>[];
  readonly started: Started;
  readonly input: Version<P>;
  readonly answers: Answers<P, A>;
  readonly context: CallContext<N>;
  readonly signal: AbortSignal | undefined;
  /** Where the id is the caller's: is what stands in the ledger our start, and not an equal one of somebody else? */
  readonly ownsStart: (() => Promise<boolean>) | null;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly telemetry: DispatchTelemetry;
  /** Does a store failure end this dispatch? Always at veto-bearing points. */
  readonly abortOnStoreFailure: boolean;
  readonly onHookError: (error: HookErrorRecord) => void;
  /** Claims a place among the detached observers in flight, or says that there is none. */
  readonly claimDetached: () => (() => void) | null;
};

type Running<P, A extends Classed, N extends string> = {
  readonly subscriber: Subscriber;
  readonly version: Version<P>;
  readonly call: Call<P, A, N>;
  readonly span: SubscriberTelemetry;
  readonly release: () => void;
};

/** Somebody else began a dispatch under this id first; nobody was called. */
export class AlreadyStarted extends Error {
  override readonly name = "AlreadyStarted";
  constructor(cause: HookledgerError) {
    super(cause.message, { cause });
  }
}

const TOO_MANY_DETACHED = "not called: too many detached observers in flight (HL_LIMIT_OBSERVERS)";
const UNWRITTEN = "not called: that it is called could not be written down";
const NONE: readonly Attachment[] = [];

type Classed = { readonly class: string };

export class LiveDispatch<P, A extends Classed, N extends string> {
  readonly #options: LiveOptions<P, A, N>;
  readonly #begunAt: number;
  readonly #wallAt: number;
  readonly #running = new Map<number, Running<P, A, N>>();
  readonly #versions = new Map<number, Version<P>>();
  /** As the caller's own signal does it. */
  readonly cancel = (): void => this.#step(() => this.#stop("cancelled"));
  #crashed = false;
  #resolveConcluded: (state: Concluded) => void = () => {};
  #rejectConcluded: (fault: unknown) => void = () => {};
  #resolveQuiet: (fault: unknown) => void = () => {};
  /** Resolves when no observer of this dispatch is awaited any more: with null, or with the fault of ours that ended the waiting. */
  readonly quiet = new Promise<unknown>((resolve) => {
    this.#resolveQuiet = resolve;
  });

  constructor(options: LiveOptions<P, A, N>) {
    this.#options = options;
    this.#begunAt = options.clock.now();
    this.#wallAt = options.clock.wall();
  }

  /**
   * Runs the chain to its conclusion, which is recorded and not yet durable. Call once. Throws AlreadyStarted, HL_INTERNAL, and,
   * where it must be the first under its id, whatever the store throws when that cannot be read back.
   */
  async run(): Promise<Concluded> {
    const { started, input, signal, ownsStart } = this.#options;
    this.#record(started, [attachmentOf(input)]);
    if (ownsStart !== null) await this.#requireOwnStart(ownsStart);
    return new Promise((resolve, reject) => {
      this.#resolveConcluded = resolve;
      this.#rejectConcluded = reject;
      this.#step(() => {
        if (signal?.aborted) this.#stop("cancelled");
        else signal?.addEventListener("abort", this.cancel, { once: true });
      });
    });
  }

  /** ms since the dispatch began */
  elapsed(): number {
    return this.#options.clock.now() - this.#begunAt;
  }

  /** The payload that a state goes on with. */
  versionOf({ author }: Begun): Version<P> {
    return this.#madeBy(author);
  }

  #madeBy(author: number | null): Version<P> {
    return (author === null ? undefined : this.#versions.get(author)) ?? this.#options.input;
  }

  /** A start that could not be written is left to what the operator says of store failures. */
  async #requireOwnStart(ownsStart: () => Promise<boolean>): Promise<void> {
    const { recorder } = this.#options;
    try {
      await recorder.durable();
    } catch (error) {
      if (error instanceof HookledgerError && error.code === "HL_STORE_CONFLICT") throw new AlreadyStarted(error);
      return;
    }
    if (await ownsStart()) return;
    throw new AlreadyStarted(new HookledgerError("HL_STORE_CONFLICT", `${recorder.stream} was begun by somebody else`));
  }

  /** Does something of a callback's and goes on with the chain. What goes wrong in here is our own fault, and nobody is left waiting. */
  #step(work: () => void): void {
    if (this.#crashed) return;
    try {
      work();
      this.#pump();
    } catch (fault) {
      this.#crashed = true;
      this.#letGo();
      this.#rejectConcluded(fault);
      this.#resolveQuiet(fault);
    }
  }

  #pump(): void {
    while (!this.#crashed) {
      const state = this.#state();
      if (state.kind === "open" && this.#mayNotGoOn()) {
        this.#stop("store_unavailable");
        continue;
      }
      const step = next(state);
      switch (step.kind) {
        case "wait":
          return;
        case "settled":
          this.#resolveQuiet(null);
          return;
        case "conclude":
          this.#record(step.event);
          this.#conclude();
          break;
        case "invoke":
          this.#invoke(step.indexes[0] ?? 0, step.payload);
          break;
      }
    }
  }

  /** A conflict fences: somebody else has taken this dispatch over. Any other store failure is for the operator to judge. */
  #mayNotGoOn(): boolean {
    const { failure } = this.#options.recorder;
    return failure !== null && (this.#options.abortOnStoreFailure || failure.code === "HL_STORE_CONFLICT");
  }

  #invoke(index: number, saw: Digest): void {
    const link = this.#options.links[index];
    if (link === undefined) throw new HookledgerError("HL_INTERNAL", `no link ${index} in the chain`);
    const state = this.#state();
    const version = this.#madeBy(state.kind === "open" ? state.rules.author(state) : state.author);
    this.#record({ type: "subscriber-invoked", index, saw });
    const span = this.#options.telemetry.subscriber(link.subscriber);
    if (link.recording === "barrier") this.#call(link, version, span);
    else void this.#callDurably(link, version, span);
  }

  /** Write-ahead: the subscriber acts only once the ledger knows that it was called. */
  async #callDurably(link: Link<P, A | Fault, N>, version: Version<P>, span: SubscriberTelemetry): Promise<void> {
    const mayCall = await this.#options.recorder.durable().then(
      () => true,
      () => !this.#mayNotGoOn(),
    );
    this.#step(() => {
      if (mayCall) this.#call(link, version, span);
      else if (this.#state().kind === "open") span.end(null);
      else this.#settleUncalled(link.subscriber, span, failed(callMode(link.subscriber), UNWRITTEN));
    });
  }

  #call({ subscriber, transport }: Link<P, A | Fault, N>, version: Version<P>, span: SubscriberTelemetry): void {
    if (isAbandoned(this.#state())) {
      span.end(null);
      return;
    }
    const { context, clock } = this.#options;
    const detached = this.#isDetached(subscriber);
    const timeoutMs = this.#timeoutOf(subscriber, detached);
    if (timeoutMs <= 0) {
      this.#record({ type: "timeout", index: subscriber.index, budgetMs: 0 });
      this.#settled(subscriber, span);
      return;
    }
    const release = detached ? this.#options.claimDetached() : () => {};
    if (release === null) {
      this.#settleUncalled(subscriber, span, failed(callMode(subscriber), TOO_MANY_DETACHED));
      return;
    }
    const call = new Call<P, A, N>(context, subscriber, version.payload, timeoutMs, span, clock);
    const running: Running<P, A, N> = { call, span, release, subscriber, version };
    this.#running.set(subscriber.index, running);
    call.start(transport, (settlement) => this.#step(() => this.#settle(running, settlement)));
  }

  /** ms; what is left of the chain budget, if that is less than the subscriber's own. */
  #timeoutOf({ timeoutMs }: Subscriber, detached: boolean): number {
    const own = timeoutMs ?? Number.POSITIVE_INFINITY;
    const { budgetMs } = this.#options.started;
    return budgetMs === null || detached ? own : Math.min(own, budgetMs - this.elapsed());
  }

  #isDetached(subscriber: Subscriber): boolean {
    const state = this.#state();
    return state.rules.detached(state.started, subscriber);
  }

  #settle(running: Running<P, A, N>, settlement: CallSettlement<A | Fault>): void {
    const { subscriber, call, span } = running;
    if (!this.#running.has(subscriber.index)) return;
    if (settlement.kind === "deadline") {
      const budgetMs = Math.floor(call.timeoutMs);
      const lagMs = Math.round(settlement.lateMs);
      this.#record({ type: "timeout", index: subscriber.index, budgetMs }, NONE, lagMs > 0 ? lagMs : undefined);
    } else this.#recordAnswer(subscriber, settlement.answer, running.version);
    this.#running.delete(subscriber.index);
    running.release();
    this.#settled(subscriber, span);
  }

  #settleUncalled(subscriber: Subscriber, span: SubscriberTelemetry, fault: Fault): void {
    this.#recordAnswer(subscriber, fault, this.#options.input);
    this.#settled(subscriber, span);
  }

  #settled(subscriber: Subscriber, span: SubscriberTelemetry): void {
    const error = hookErrorOf(subscriber, this.#state().slots[subscriber.index]);
    span.end(error);
    if (error !== null) this.#options.onHookError(error);
  }

  #recordAnswer(subscriber: Subscriber, answer: A | Fault, seen: Version<P>): void {
    const { outcome, made, attachments } = this.#options.answers.recorded(subscriber, answer, seen);
    if (made !== null) this.#versions.set(subscriber.index, made);
    this.#record(outcome, attachments);
  }

  /** Ends the chain from outside; nobody in flight is awaited. */
  #stop(cause: "cancelled" | "store_unavailable"): void {
    const state = this.#state();
    if (state.kind !== "open") return;
    const running = inFlight(state);
    this.#record({ type: "aborted", cause, ...(running.length === 0 ? {} : { inFlight: running }) });
    this.#letGo();
    this.#conclude();
  }

  #letGo(): void {
    this.#options.signal?.removeEventListener("abort", this.cancel);
    const abandoned = [...this.#running.values()];
    this.#running.clear();
    for (const { call, span, release } of abandoned) {
      call.cancel();
      span.end(null);
      release();
    }
  }

  #conclude(): void {
    this.#options.signal?.removeEventListener("abort", this.cancel);
    const state = this.#state();
    if (state.kind !== "open") this.#resolveConcluded(state);
  }

  #record(event: DispatchEvent, attachments: readonly Attachment[] = NONE, lagMs?: number): void {
    const offsetMs = this.elapsed();
    const at = isoTime(this.#wallAt + offsetMs);
    const offsetNs = Math.round(offsetMs * 1e6);
    this.#options.recorder.record(event, lagMs === undefined ? { at, offsetNs } : { at, offsetNs, lagMs }, attachments);
  }

  #state(): Begun {
    const { state } = this.#options.recorder;
    if (state.kind === "new") throw new HookledgerError("HL_INTERNAL", "the dispatch has not started");
    return state;
  }
}
