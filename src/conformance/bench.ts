import fc from "fast-check";
import type { Payload } from "../payload/payload.js";
import { answerFault, ask, type CallTimes, type Heard, type Stand } from "./ask.js";
import { type Bench, GRACE_MS } from "./check.js";
import { payloadsOf } from "./payloads.js";
import type { Subject } from "./subject.js";

export type BenchParts = { readonly subject: Subject; readonly seed: number; readonly timeoutMs: number };

export function benchFor(stand: Stand, parts: BenchParts): Bench {
  return new OneStand(stand, parts);
}

class OneStand implements Bench {
  readonly point: Stand["point"];
  readonly mode: Stand["mode"];
  readonly subject: Subject;
  readonly seed: number;
  readonly timeoutMs: number;
  #usual: Payload | undefined;

  constructor({ point, mode }: Stand, { subject, seed, timeoutMs }: BenchParts) {
    this.point = point;
    this.mode = mode;
    this.subject = subject;
    this.seed = seed;
    this.timeoutMs = timeoutMs;
  }

  get usual(): Payload {
    this.#usual ??= fc.sample(payloadsOf(this.point, "full"), { seed: this.seed, numRuns: 1 })[0];
    if (this.#usual === undefined) throw new TypeError("nothing was sampled");
    return this.#usual;
  }

  async ask(payload: Payload, times: Partial<CallTimes> = {}): Promise<Heard> {
    const transport = await this.subject.reach();
    return ask(transport, this, payload, { timeoutMs: this.timeoutMs, graceMs: GRACE_MS, ...times });
  }

  async fault(payload: Payload): Promise<string | null> {
    return answerFault(await this.ask(payload), this);
  }
}

/** ms between two tries, and until nobody tries any more */
const RECOVERY = { everyMs: 50, forMs: 5_000 } as const;

/** Waits until an ordinary payload is answered again, for a while: what a call left behind is no fault of the next one. */
export async function recovered(bench: Bench): Promise<boolean> {
  const end = performance.now() + RECOVERY.forMs;
  while ((await bench.fault(bench.usual)) !== null) {
    if (performance.now() >= end) return false;
    await new Promise((resolve) => setTimeout(resolve, RECOVERY.everyMs));
  }
  return true;
}
