/** The latest usage of runs, for `reply_payload_sending`: best effort, forgotten soon. */

import { type Clock, systemClock } from "../../dispatch/clock.js";
import type { UsageState } from "../facts.js";

/** ms */
export const USAGE_STATE_TTL_MS = 5 * 60_000;
export const MAX_USAGE_STATES = 1024;

type Kept = { readonly state: UsageState; readonly until: number };

export class UsageStates {
  readonly #clock: Pick<Clock, "now">;
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Pick<Clock, "now"> = systemClock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Keeps a copy. A state that cannot be copied, or belongs to no run, is not kept, and neither is the one before it. */
  put(runId: string, state: UsageState): void {
    const now = this.#clock.now();
    this.#kept.delete(runId);
    const copy = copied(state);
    if (runId !== "" && copy !== null) this.#kept.set(runId, { state: copy, until: now + USAGE_STATE_TTL_MS });
    for (const [oldest, { until }] of this.#kept) {
      if (until > now && this.#kept.size <= MAX_USAGE_STATES) break;
      this.#kept.delete(oldest);
    }
  }

  /** Of exactly this run. Reading does not consume it. */
  of(runId: string | undefined): UsageState | undefined {
    const kept = runId === undefined ? undefined : this.#kept.get(runId);
    return kept !== undefined && this.#clock.now() < kept.until ? kept.state : undefined;
  }
}

function copied(state: UsageState): UsageState | null {
  try {
    return structuredClone(state);
  } catch {
    return null;
  }
}
