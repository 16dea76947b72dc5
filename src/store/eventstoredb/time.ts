import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";

/** Time as the adapter needs it; injected, so that tests own it. */
export interface Time {
  /** Monotonic ms. May stand still while the machine sleeps. */
  now(): number;
  /** Wall clock, ms since 1970. May jump. */
  wall(): number;
  pause(ms: number): Promise<void>;
}

export const systemTime: Time = {
  now: () => performance.now(),
  wall: () => Date.now(),
  async pause(ms) {
    await pause(ms);
  },
};

/** When something was so, by both clocks. */
export type Moment = { readonly now: number; readonly wall: number };

export function momentOf(time: Time): Moment {
  return { now: time.now(), wall: time.wall() };
}

/** ms since then, by whichever clock says more: the one stands still in a sleeping machine, the other can be set back. */
export function msSince(time: Time, then: Moment): number {
  return Math.max(time.now() - then.now, time.wall() - then.wall);
}

export function earlier(a: Moment, b: Moment): Moment {
  return { now: Math.min(a.now, b.now), wall: Math.min(a.wall, b.wall) };
}
