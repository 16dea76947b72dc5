import fc from "fast-check";
import type { Payload } from "../../payload/payload.js";
import { verdictOf } from "../ask.js";
import { type Bench, type Check, EVERY_MODE } from "../check.js";
import { payloadsOf } from "../payloads.js";

const CALLS = 64;
/** ms for asking one after the other; with whom is slow, only what was asked by then is compared. */
const ALONE_MS = 5_000;

export const concurrency: Check = {
  name: "concurrency",
  why: "Sessions run side by side: an answer that belongs to another call allows what nobody looked at.",
  rule: `${CALLS} calls at a time are each answered as they are one after the other.`,
  takes: "payload",
  modes: EVERY_MODE,
  share: 0.02,
  arbitrary: ({ point }) => payloadsOf(point, "full"),
  async judge(bench, payload) {
    const payloads = [payload, ...crowdOf(bench)];
    const alone: (string | null)[] = [];
    const end = performance.now() + ALONE_MS;
    for (const one of payloads) {
      if (performance.now() >= end) break;
      alone.push(verdictOf(await bench.ask(one)));
    }
    const together = await Promise.all(payloads.map(async (one) => verdictOf(await bench.ask(one))));
    for (const [place, one] of payloads.entries()) {
      const [expected = null, found = null] = [alone[place], together[place]];
      if (expected === null || found === expected || (await isUnsteady(bench, one, expected))) continue;
      return `among ${CALLS} calls at a time, one was answered ${found ?? "not at all"}; asked alone, ${expected}`;
    }
    return null;
  },
};

/** Who stands beside the payload in question: the same for every run, so that what fails can be made smaller and tried again. */
function crowdOf({ point, seed }: Bench): readonly Payload[] {
  return fc.sample(payloadsOf(point, "full"), { seed, numRuns: CALLS - 1 });
}

/** Then it says nothing that its answers differ. */
async function isUnsteady(bench: Bench, payload: Payload, before: string): Promise<boolean> {
  const again = [verdictOf(await bench.ask(payload)), verdictOf(await bench.ask(payload))];
  return again.some((verdict) => verdict !== before);
}
