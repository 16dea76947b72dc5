import fc from "fast-check";
import type { Payload } from "../payload/payload.js";
import { crashed, thrownText } from "../subscribers/fault.js";
import type { SubscriberTransport } from "../subscribers/port.js";
import { answerFault, ask, type CallTimes, type Heard, type Stand } from "./ask.js";
import { type Bench, GRACE_MS } from "./check.js";
import { payloadsOf } from "./payloads.js";
import type { Subject } from "./subject.js";

export type BenchParts = {
  readonly subject: Subject;
  readonly seed: number;
  /** ms that a call has */
  readonly timeoutMs: number;
  /** ms that a subscriber has to end a call that is over, GRACE_MS by default */
  readonly graceMs?: number;
};

export function benchFor(stand: Stand, parts: BenchParts): Bench {
  return new OneStand(stand, parts);
}

/** Payloads that are tried, and ms for them: each may cost a start. */
const ORDINARY = 12;
const SETTLING_MS = 3_000;

class OneStand implements Bench {
  readonly point: Stand["point"];
  readonly mode: Stand["mode"];
  readonly subject: Subject;
  readonly seed: number;
  readonly timeoutMs: number;
  readonly #graceMs: number;
  #usual: Payload | undefined;

  constructor({ point, mode }: Stand, { subject, seed, timeoutMs, graceMs = GRACE_MS }: BenchParts) {
    this.point = point;
    this.mode = mode;
    this.subject = subject;
    this.seed = seed;
    this.timeoutMs = timeoutMs;
    this.#graceMs = graceMs;
  }

  get usual(): Payload {
    this.#usual ??= this.#ordinary()[0];
    if (this.#usual === undefined) throw new TypeError("nothing was sampled");
    return this.#usual;
  }

  async settle(): ReturnType<Bench["settle"]> {
    const end = performance.now() + SETTLING_MS;
    for (const payload of this.#ordinary()) {
      if (performance.now() >= end) break;
      const heard = await this.ask(payload);
      if (heard.kind === "silence" || heard.late) return "silence";
      if (answerFault(heard, this) !== null) continue;
      this.#usual = payload;
      return "answered";
    }
    return "fault";
  }

  /** Who answers now, or why nobody does. */
  async #reached(): Promise<SubscriberTransport | string> {
    try {
      return await this.subject.reach();
    } catch (error) {
      return thrownText(error);
    }
  }

  /** Smallest first. */
  #ordinary(): readonly Payload[] {
    const payloads = fc.sample(payloadsOf(this.point, "full"), { seed: this.seed, numRuns: ORDINARY });
    return payloads.toSorted((a, b) => a.bytes.length - b.bytes.length);
  }

  async ask(payload: Payload, times: Partial<CallTimes> = {}): Promise<Heard> {
    const transport = await this.#reached();
    if (typeof transport === "string") return { kind: "answer", answer: crashed(transport), late: false };
    return ask(transport, this, payload, { timeoutMs: this.timeoutMs, graceMs: this.#graceMs, ...times });
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
