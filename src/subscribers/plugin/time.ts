/** Time as a plugin's process needs it; injected, so that tests own it. */
export interface LifeClock {
  /** Monotonic ms. */
  now(): number;
  /** Calls `fire` once, after `ms`. One in the `background` does not keep this process up. Returns the cancellation. */
  timer(ms: number, fire: () => void, background?: "background"): () => void;
}

const monotonic = performance.now.bind(performance);

export const systemClock: LifeClock = {
  now: () => monotonic(),
  timer(ms, fire, background) {
    const handle = setTimeout(fire, ms);
    if (background !== undefined) handle.unref();
    return () => clearTimeout(handle);
  },
};

/** Resolves as soon as `settled` does (true), or after `ms` (false). Never rejects: neither may `settled`. */
export function within(clock: LifeClock, ms: number, settled: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = clock.timer(ms, () => resolve(false));
    void settled.then(() => {
      cancel();
      resolve(true);
    });
  });
}
