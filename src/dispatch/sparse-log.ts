/** What may happen thousands of times a second is said once a second, with how often it was left out. */
import type { Clock } from "./clock.js";

/** ms */
const INTERVAL = 1000;

export class SparseLog {
  readonly #clock: Clock;
  readonly #say: (text: string) => void;
  #quietUntil = Number.NEGATIVE_INFINITY;
  #leftOut = 0;

  constructor(clock: Clock, say: (text: string) => void) {
    this.#clock = clock;
    this.#say = say;
  }

  say(text: string): void {
    const now = this.#clock.now();
    if (now < this.#quietUntil) {
      this.#leftOut++;
      return;
    }
    this.#quietUntil = now + INTERVAL;
    const leftOut = this.#take();
    this.#say(leftOut === 0 ? text : `${text} (and ${leftOut} more since the last such line)`);
  }

  /** Says how often it was left out last. */
  flush(): void {
    const leftOut = this.#take();
    if (leftOut > 0) this.#say(`${leftOut} more since the last such line`);
  }

  #take(): number {
    const leftOut = this.#leftOut;
    this.#leftOut = 0;
    return leftOut;
  }
}
