import { type Moment, msSince, type Time } from "./time.js";

/** What was so a while ago: forgotten with age, and the oldest first where there is too much. */
export class Recent {
  readonly #time: Time;
  readonly #maxAgeMs: number;
  readonly #maxEntries: number;
  readonly #entries = new Map<string, Moment>();

  constructor(time: Time, { maxAgeMs, maxEntries }: { readonly maxAgeMs: number; readonly maxEntries: number }) {
    this.#time = time;
    this.#maxAgeMs = maxAgeMs;
    this.#maxEntries = maxEntries;
  }

  /** When it was so; undefined if that is too long ago, or not known. */
  get(key: string): Moment | undefined {
    const then = this.#entries.get(key);
    if (then === undefined) return undefined;
    if (msSince(this.#time, then) <= this.#maxAgeMs) return then;
    this.#entries.delete(key);
    return undefined;
  }

  add(key: string, then: Moment): void {
    this.#entries.delete(key);
    this.#entries.set(key, then);
    if (this.#entries.size <= this.#maxEntries) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}
