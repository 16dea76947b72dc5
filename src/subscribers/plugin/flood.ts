/** How much of what a plugin writes reaches the log: a bound in each second, and one line about what was left out. */

import type { LifeClock } from "./time.js";

const WINDOW_MS = 1_000;
const WINDOW_BYTES = 1024 * 1024;

export class FloodGate {
  readonly #clock: LifeClock;
  readonly #say: (message: string) => void;
  #since = Number.NEGATIVE_INFINITY;
  #passed = 0;
  #lines = 0;
  #bytes = 0;
  #cancel: (() => void) | null = null;

  constructor(clock: LifeClock, say: (message: string) => void) {
    this.#clock = clock;
    this.#say = say;
  }

  /** Whether a line of so many bytes may pass. */
  admits(bytes: number): boolean {
    const now = this.#clock.now();
    if (now - this.#since >= WINDOW_MS) {
      this.flush();
      this.#since = now;
      this.#passed = 0;
    }
    if (this.#passed + bytes <= WINDOW_BYTES) {
      this.#passed += bytes;
      return true;
    }
    this.#lines++;
    this.#bytes += bytes;
    this.#cancel ??= this.#clock.timer(this.#since + WINDOW_MS - now, () => this.flush(), "background");
    return false;
  }

  /** Says now what was left out, if anything was. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#lines === 0) return;
    const message = `${this.#lines} lines (${this.#bytes} bytes) left out: more than ${WINDOW_BYTES} bytes in a second`;
    this.#lines = 0;
    this.#bytes = 0;
    this.#say(message);
  }
}
