/** One call of a subscriber as a kernel makes it, with the clock that a kernel keeps. */

import type { HookMode } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import { changedImmutable } from "../payload/admission.js";
import type { Answer } from "../payload/answer.js";
import type { Payload } from "../payload/payload.js";
import { failed, thrownText } from "../subscribers/fault.js";
import type { Invocation, SubscriberTransport } from "../subscribers/port.js";

/** What a subscriber serves, and a check is run for. */
export type Stand = { readonly point: HookPoint; readonly mode: HookMode };

export type CallTimes = {
  /** ms until the deadline */
  readonly timeoutMs: number;
  /** ms that a subscriber has to end the call once it is over; then nobody waits any more */
  readonly graceMs: number;
  /** ms until the caller cancels */
  readonly cancelAfterMs?: number;
};

export type Heard =
  | { readonly kind: "answer"; readonly answer: Answer; readonly late: boolean }
  /** The call had not ended `afterMs` after it was over. */
  | { readonly kind: "silence"; readonly afterMs: number };

const NAMES = { dispatchId: "01C0NF0RMANCE0000000000000", session: "conformance", turn: "1" } as const;

/** Never rejects, and ends within `timeoutMs` and `graceMs`. */
export async function ask(
  transport: SubscriberTransport,
  { point, mode }: Stand,
  payload: Payload,
  times: CallTimes,
): Promise<Heard> {
  const clock = new Clock(times);
  const call: Invocation = {
    ...NAMES,
    point,
    mode,
    payload,
    subscriptionId: undefined,
    traceparent: undefined,
    timeoutMs: times.timeoutMs,
    signal: clock.abort.signal,
    onAbort: (cancel) => clock.onAbort(cancel),
    remainingMs: () => clock.remainingMs(),
  };
  const answering = reach(transport, call).then((answer): Heard => {
    return { kind: "answer", answer, late: clock.isLate };
  });
  const silence = clock.silence.then((): Heard => ({ kind: "silence", afterMs: times.graceMs }));
  try {
    return await Promise.race([answering, silence]);
  } finally {
    clock.stop();
  }
}

async function reach(transport: SubscriberTransport, call: Invocation): Promise<Answer> {
  try {
    return await transport.invoke(call);
  } catch (error) {
    return failed(call.mode, thrownText(error));
  }
}

/** Of one call: when it is over, by deadline or cancelling, and when nobody waits any more. */
class Clock {
  readonly abort = new AbortController();
  readonly silence: Promise<void>;
  readonly #deadline: number;
  readonly #endsAtDeadline: boolean;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor({ timeoutMs, graceMs, cancelAfterMs }: CallTimes) {
    const overMs = Math.min(timeoutMs, cancelAfterMs ?? timeoutMs);
    this.#endsAtDeadline = overMs === timeoutMs;
    this.#deadline = performance.now() + timeoutMs;
    this.#timers.push(setTimeout(() => this.abort.abort(), overMs));
    this.silence = new Promise((resolve) => {
      this.#timers.push(setTimeout(resolve, overMs + graceMs));
    });
  }

  /** A timer may fire a moment before its time, and what it aborts then ended at the deadline all the same. */
  get isLate(): boolean {
    return this.remainingMs() <= 0 || (this.#endsAtDeadline && this.abort.signal.aborted);
  }

  remainingMs(): number {
    return Math.max(0, this.#deadline - performance.now());
  }

  onAbort(cancel: () => void): void {
    const { signal } = this.abort;
    if (signal.aborted) cancel();
    else signal.addEventListener("abort", cancel, { once: true });
  }

  stop(): void {
    for (const timer of this.#timers) clearTimeout(timer);
  }
}

/** Why what was heard is no answer; null when it is one. A changed immutable field is an answer here: it has a check of its own. */
export function answerFault(heard: Heard, { timeoutMs }: Pick<CallTimes, "timeoutMs">): string | null {
  if (heard.kind === "silence") return `no answer within ${timeoutMs} ms, nor ${heard.afterMs} ms after that`;
  const { answer, late } = heard;
  const hasCrashed = answer.class === "failed" && answer.error.category === "PROCESS_CRASHED";
  if (late && !hasCrashed) return `no answer within ${timeoutMs} ms`;
  if (answer.class !== "failed" && answer.class !== "invalid") return null;
  if (changedImmutable(answer) !== undefined) return null;
  return `${answer.error.category}: ${answer.error.message}`;
}

/** Equal for answers that a kernel would act upon alike; null where there is nothing to act upon. */
export function verdictOf(heard: Heard): string | null {
  if (heard.kind === "silence" || heard.late) return null;
  const { answer } = heard;
  switch (answer.class) {
    case "ack":
    case "allow":
    case "deny":
      return answer.class;
    case "transformed":
      return `a payload of ${answer.payload.ref.size} bytes (${answer.payload.ref.digest.slice(0, 19)}…)`;
    case "failed":
    case "invalid":
      return null;
  }
}
