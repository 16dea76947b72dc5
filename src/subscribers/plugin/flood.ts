/** How much of what a plugin writes reaches the log: a bound in each second, and one line about what was left out. */

import type { LifeClock } from "./time.js";

const WINDOW_MS = 1_000;
/** bytes */
const WINDOW_COST = 1024 * 1024;
/** bytes that a line costs beside its own */
const LINE_COST = 128;

export class FloodGate {
  readonly #clock: LifeClock;
  readonly #say: (message: string) => void;
  #since = Number.NEGATIVE_INFINITY;
  #cost = 0;
  #bytes = 0;
  #cancel: (() => void) | null = null;

  constructor(clock: LifeClock, say: (message: string) => void) {
    this.#clock = clock;
    this.#say = say;
  }

  /** Once one line is left out, all are for the rest of the second. */
  get shut(): boolean {
    return this.#cancel !== null && this.#clock.now() - this.#since < WINDOW_MS;
  }

  /** Whether a line of so many bytes may pass; if not, it is counted. */
  admits(bytes: number): boolean {
    if (this.shut) return this.#leaveOut(bytes);
    const now = this.#clock.now();
    if (now - this.#since >= WINDOW_MS) {
      this.flush();
      this.#since = now;
      this.#cost = 0;
    }
    this.#cost += bytes + LINE_COST;
    if (this.#cost <= WINDOW_COST) return true;
    this.#cancel = this.#clock.timer(this.#since + WINDOW_MS - now, () => this.flush(), "background");
    return this.#leaveOut(bytes);
  }

  /** Counts what is not even looked at. */
  leaveOut(bytes: number): void {
    this.#bytes += bytes;
  }

  /** Says now what was left out, if anything was. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = null;
    if (this.#bytes === 0) return;
    const message = `${this.#bytes} bytes of output left out: more came within a second than is logged`;
    this.#bytes = 0;
    this.#say(message);
  }

  #leaveOut(bytes: number): false {
    this.leaveOut(bytes);
    return false;
  }
}
