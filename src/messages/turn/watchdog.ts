/** A limit on how long a message may be in the host's hands without anybody beginning on it. */

import { type Clock, systemClock } from "../../dispatch/clock.js";
import { HookledgerError } from "../../errors.js";

export type WatchdogOptions = {
  /** ms, finite and > 0 */
  readonly timeoutMs: number;
  readonly clock?: Clock;
};

/** Of one input. Stopped or fired, it stays so. */
export class StartupWatchdog {
  readonly #firing = new AbortController();
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  #disarm: (() => void) | null = null;
  #stopped = false;

  /** Throws a RangeError for a `timeoutMs` that is none. */
  constructor({ timeoutMs, clock = systemClock }: WatchdogOptions) {
    if (!(Number.isFinite(timeoutMs) && timeoutMs > 0)) {
      throw new RangeError(`timeoutMs is a finite number of ms above 0, not ${timeoutMs}`);
    }
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
  }

  /** Aborted, with HL_TURN_STALLED as its reason, when time is up. */
  get signal(): AbortSignal {
    return this.#firing.signal;
  }

  /** Nobody has begun yet, from now on; called again, it changes nothing. */
  start(): void {
    if (this.#stopped) return;
    this.#disarm ??= this.#clock.timer(this.#timeoutMs, () => this.#fire());
  }

  /** Somebody has. */
  stop(): void {
    this.#stopped = true;
    this.#disarm?.();
  }

  #fire(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#firing.abort(
      new HookledgerError("HL_TURN_STALLED", `nobody began on the input within ${this.#timeoutMs} ms`, {
        hint: "It stays the host's, and may come again.",
      }),
    );
  }
}
