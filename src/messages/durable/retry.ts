/** When a delivery that is known not to have gone out is tried again. */

export type RetryPolicy = {
  /** Attempts in all, the first included; 8 by default, at least 1. */
  readonly maxAttempts: number;
  /** ms before the second attempt, doubled for each one after; 1 000 by default. */
  readonly baseMs: number;
  /** ms that lie between two attempts at most, unless the channel asks for more; 300 000 by default. */
  readonly capMs: number;
};

const DEFAULTS: RetryPolicy = { maxAttempts: 20, baseMs: 1000, capMs: 300_000 };

/** ms; what a channel may ask for. */
export const MAX_RETRY_AFTER_MS = 3_600_000;

/** Throws a RangeError on a bound that is no finite number >= 0, or no attempt at all. */
export function retryPolicy(given: Partial<RetryPolicy> = {}): RetryPolicy {
  const policy = { ...DEFAULTS, ...given };
  for (const [name, value] of Object.entries(policy)) {
    const least = name === "maxAttempts" ? 1 : 0;
    if (!(Number.isFinite(value) && value >= least)) throw new RangeError(`retry.${name} is ${value}`);
  }
  return policy;
}

/**
 * Whole ms before the next attempt, between half of the doubled base and all of it: those who failed together do not come back together.
 * `attempts`: made so far, >= 1. `random`: in [0, 1).
 */
export function backOff(
  attempts: number,
  retryAfterMs: number,
  { baseMs, capMs }: RetryPolicy,
  random: () => number,
): number {
  const doubled = Math.min(capMs, baseMs * 2 ** Math.min(attempts - 1, 50));
  const asked = Number.isFinite(retryAfterMs) ? Math.min(Math.max(retryAfterMs, 0), MAX_RETRY_AFTER_MS) : 0;
  return Math.ceil(Math.max(asked, doubled * (0.5 + random() / 2)));
}
