import { performance } from "node:perf_hooks";
import { clearImmediate, clearTimeout, setImmediate, setTimeout } from "node:timers";

/** Time as the dispatcher needs it; injected, so that tests own it. */
export interface Clock {
  /** Monotonic ms, with fractions. */
  now(): number;
  /** Wall clock, ms since 1970. For display and ids, never for order or deadlines. */
  wall(): number;
  /** Calls `fire` once, not before `ms` have passed by and large; `now` decides what that means. Returns the cancellation. */
  timer(ms: number, fire: () => void): () => void;
  /** Calls `run` once the current macrotask and all its microtasks are done. Returns the cancellation. */
  defer(run: () => void): () => void;
}

const monotonic = performance.now.bind(performance);
const { now: wallClock } = Date;

/** As the process began with it: a module that puts other timers on the global object moves no deadline. */
export const systemClock: Clock = {
  now: () => monotonic(),
  wall: () => wallClock(),
  timer(ms, fire) {
    const handle = setTimeout(fire, ms);
    return () => clearTimeout(handle);
  },
  defer(run) {
    const handle = setImmediate(run);
    return () => clearImmediate(handle);
  },
};

let lastMs = Number.NaN;
let lastText = "";

/** ISO 8601 of a wall-clock ms. Many events share one; printing costs more than all else that an event needs of time. */
export function isoTime(wallMs: number): string {
  const ms = Math.floor(wallMs);
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString();
    lastMs = ms;
  }
  return lastText;
}
