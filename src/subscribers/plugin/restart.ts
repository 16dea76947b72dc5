/** When a plugin that ended may be started again: at once after a first crash, then ever later, then not any more. */

export type RestartPolicy = {
  /** ms of the second wait; each further one is twice as long. */
  readonly firstWaitMs: number;
  /** ms */
  readonly longestWaitMs: number;
  /** Failures in a row after which it is given up. */
  readonly bound: number;
  /** ms after which a run counts as a good one, and failures are counted anew. */
  readonly goodRunMs: number;
};

export const RESTART_POLICY: RestartPolicy = {
  firstWaitMs: 100,
  longestWaitMs: 10_000,
  bound: 10,
  goodRunMs: 10_000,
};

type Standing =
  | { readonly may: "start" }
  /** ms */
  | { readonly may: "wait"; readonly waitMs: number }
  | { readonly may: "not"; readonly failures: number };

/** Counts the failures of one plugin. Times in ms of one monotonic clock. */
export class Restarts {
  readonly #policy: RestartPolicy;
  #failures = 0;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(policy: RestartPolicy) {
    this.#policy = policy;
  }

  at(now: number): Standing {
    if (this.#failures >= this.#policy.bound) return { may: "not", failures: this.#failures };
    const waitMs = Math.ceil(this.#notBefore - now);
    return waitMs > 0 ? { may: "wait", waitMs } : { may: "start" };
  }

  /** It did not come up, or is not what was asked for. */
  didNotStart(now: number): void {
    this.#failed(now, this.#failures);
  }

  /** It was up for `ranMs`. */
  ended(now: number, ranMs: number): void {
    if (ranMs >= this.#policy.goodRunMs) this.#failures = 0;
    this.#failed(now, this.#failures - 1);
  }

  /** Somebody who knows better asks for a start. */
  forget(): void {
    this.#failures = 0;
    this.#notBefore = Number.NEGATIVE_INFINITY;
  }

  #failed(now: number, doublings: number): void {
    const { firstWaitMs, longestWaitMs } = this.#policy;
    this.#failures++;
    this.#notBefore = doublings < 0 ? now : now + Math.min(longestWaitMs, firstWaitMs * 2 ** doublings);
  }
}
