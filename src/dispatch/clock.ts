import { performance } from "node:perf_hooks";

/** Time as the dispatcher needs it; injected, so that tests own it. */
export interface Clock {
  /** Monotonic ms, with fractions. */
  now(): number;
  /** Wall clock, ms since 1970. For display and ids, never for order or deadlines. */
  wall(): number;
  /** Calls `fire` once, not before `ms` have passed by and large; `now` decides what that means. Returns the cancellation. */
  timer(ms: number, fire: () => void): () => void;
  /** Calls `run` once the current macrotask and all its microtasks are done. */
  defer(run: () => void): void;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
  timer(ms, fire) {
    const handle = setTimeout(fire, ms);
    return () => clearTimeout(handle);
  },
  defer(run) {
    setImmediate(run);
  },
};
