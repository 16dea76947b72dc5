import type { Time } from "#src/store/eventstoredb/time.js";

/** Stands still until the test moves it; who pauses goes on at once. */
export class AdapterTime implements Time {
  readonly pauses: number[] = [];
  #now = 0;
  #wall = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wall;
  }

  async pause(ms: number): Promise<void> {
    this.pauses.push(ms);
  }

  pass(ms: number): void {
    this.#now += ms;
    this.#wall += ms;
  }

  /** The machine sleeps: the monotonic clock does not see it. */
  sleep(ms: number): void {
    this.#wall += ms;
  }
}
