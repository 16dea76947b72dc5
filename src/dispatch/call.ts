/** One call of one subscriber, with its deadline. Settled once: the answer, or the deadline, or nobody any more. */
import type { Subscriber } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import { type Fault, failed, thrownText } from "../subscribers/fault.js";
import type { Invocation } from "../subscribers/port.js";
import type { ChainAnswer, ChainTransport } from "./chain.js";
import type { Clock } from "./clock.js";
import type { SubscriberTelemetry } from "./telemetry.js";

export type CallContext<N extends string = HookPoint> = {
  readonly dispatchId: string;
  readonly point: N;
  readonly session: string | undefined;
  readonly turn: string | undefined;
};

/** `lateMs`: by how much the deadline was noticed late (a blocked event loop). */
export type CallSettlement<A = ChainAnswer> =
  | { readonly kind: "answer"; readonly answer: A }
  | { readonly kind: "deadline"; readonly lateMs: number };

/** How a subscriber's failures are named: a handler's as those of nobody in particular. */
export function callMode({ mode }: Subscriber): Invocation["mode"] {
  switch (mode) {
    case "policy":
      return "veto";
    case "handler":
      return "observe";
    case "observe":
    case "transform":
    case "veto":
      return mode;
  }
}

export class Call<P, A extends { readonly class: string }, N extends string> implements Invocation<P, N> {
  readonly dispatchId: string;
  readonly point: N;
  readonly mode: Invocation["mode"];
  readonly payload: P;
  readonly subscriptionId: string | undefined;
  readonly session: string | undefined;
  readonly turn: string | undefined;
  readonly traceparent: string | undefined;
  readonly timeoutMs: number;
  readonly #span: SubscriberTelemetry;
  readonly #clock: Clock;
  #startedAt = 0;
  #disarm: () => void = () => {};
  #abort: AbortController | null = null;
  #over = false;
  #cancelled = false;
  #onAbort: (() => void) | null = null;

  constructor(
    context: CallContext<N>,
    subscriber: Subscriber,
    payload: P,
    timeoutMs: number,
    span: SubscriberTelemetry,
    clock: Clock,
  ) {
    this.dispatchId = context.dispatchId;
    this.point = context.point;
    this.mode = callMode(subscriber);
    this.payload = payload;
    this.subscriptionId = subscriber.subscriptionId;
    this.session = context.session;
    this.turn = context.turn;
    this.traceparent = span.traceparent;
    this.#span = span;
    this.timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** Made when somebody asks for it: most handlers never do. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled) this.#abort.abort();
    return this.#abort.signal;
  }

  get onAbort(): Invocation["onAbort"] {
    return (cancel) => {
      if (this.#cancelled) cancel();
      else this.#onAbort = cancel;
    };
  }

  get remainingMs(): Invocation["remainingMs"] {
    return () => Math.max(0, this.timeoutMs - this.#elapsed());
  }

  get extra(): () => void {
    return () => this.#span.extra();
  }

  /** Calls, and reports exactly one settlement, never before this returns; none after `cancel`. */
  start(transport: ChainTransport<P, A | Fault, N>, settled: (settlement: CallSettlement<A | Fault>) => void): void {
    this.#startedAt = this.#clock.now();
    const settle = (answer: A | Fault): void => {
      if (this.#over) {
        if (answer.class !== "failed" && answer.class !== "invalid") this.#span.extra();
        return;
      }
      const lateMs = this.#elapsed() - this.timeoutMs;
      this.#end();
      if (lateMs >= 0) this.#signalAbort();
      settled(lateMs >= 0 ? { kind: "deadline", lateMs } : { kind: "answer", answer });
    };
    this.#arm(this.timeoutMs, settled);
    reach(transport, this).then(settle, (error: unknown) => settle(failed(this.mode, thrownText(error))));
  }

  /** Nobody waits any more: whatever comes is dropped. */
  cancel(): void {
    this.#end();
    this.#signalAbort();
  }

  #arm(ms: number, settled: (settlement: CallSettlement<A | Fault>) => void): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#disarm = this.#clock.timer(ms, () => {
      const lateMs = this.#elapsed() - this.timeoutMs;
      if (lateMs < 0) {
        this.#arm(-lateMs, settled);
        return;
      }
      this.cancel();
      settled({ kind: "deadline", lateMs });
    });
  }

  #end(): void {
    this.#over = true;
    this.#disarm();
  }

  #signalAbort(): void {
    this.#cancelled = true;
    this.#onAbort?.();
    this.#abort?.abort();
  }

  #elapsed(): number {
    return this.#clock.now() - this.#startedAt;
  }
}

/** What a transport throws outside its promise is a failure like any other. */
function reach<P, A, N extends string>(transport: ChainTransport<P, A, N>, call: Invocation<P, N>): Promise<A> {
  try {
    return transport.invoke(call);
  } catch (error) {
    return Promise.reject(error);
  }
}
