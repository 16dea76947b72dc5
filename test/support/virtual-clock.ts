/** A clock that stands still until the test moves it. Timers fire in order of time, then of arming. */
import type { Clock } from "#src/dispatch/clock.js";

type Timer = { readonly at: number; readonly order: number; readonly fire: () => void };

export class VirtualClock implements Clock {
  readonly #pick: (count: number) => number;
  #now = 0;
  #order = 0;
  readonly #timers = new Set<Timer>();

  /** `pick` chooses who fires first among timers of one instant; by default the one armed first. */
  constructor(pick: (count: number) => number = () => 0) {
    this.#pick = pick;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return 1_700_000_000_000 + this.#now;
  }

  timer(ms: number, fire: () => void): () => void {
    const timer = { at: this.#now + ms, order: this.#order++, fire };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Like a timer, and before all others of that instant. */
  first(ms: number, fire: () => void): void {
    this.#timers.add({ at: this.#now + ms, order: -1, fire });
  }

  defer(run: () => void): () => void {
    const handle = setImmediate(run);
    return () => clearImmediate(handle);
  }

  /** Time passes with the event loop blocked: no timer fires. */
  block(ms: number): void {
    this.#now += ms;
  }

  /** Fires whatever is due next, in time order, letting all promises settle in between, until `done` or nothing is armed. */
  async run(done: () => boolean = () => false): Promise<void> {
    for (;;) {
      await settled();
      if (done()) return;
      const next = this.#next();
      if (next === undefined) return;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.fire();
    }
  }

  #next(): Timer | undefined {
    const at = Math.min(...Array.from(this.#timers, (timer) => timer.at));
    const due = [...this.#timers].filter((timer) => timer.at === at).sort((a, b) => a.order - b.order);
    return due[0]?.order === -1 ? due[0] : due[this.#pick(due.length)];
  }
}

/** All promise reactions and deferred work that are under way. */
export async function settled(): Promise<void> {
  for (let round = 0; round < 3; round++) await new Promise((resolve) => setImmediate(resolve));
}
