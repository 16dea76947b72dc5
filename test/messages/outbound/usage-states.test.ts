import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UsageState } from "#src/messages/facts.js";
import { MAX_USAGE_STATES, USAGE_STATE_TTL_MS, UsageStates } from "#src/messages/outbound/usage-states.js";
import { VirtualClock } from "../../support/virtual-clock.js";
import { CONTEXT, scene } from "./scene.js";

const STATE: UsageState = { model: "m", usage: { input: 1, output: 2 } };

async function seenWith(more: object, context = CONTEXT) {
  const seen: (UsageState | undefined)[] = [];
  const usage = new UsageStates(new VirtualClock());
  usage.put("r-1", STATE);
  const { deliverOne } = await scene(
    (api) => void api.on("reply_payload_sending", (e) => void seen.push(e.usageState)),
    {
      context,
    },
  );
  await deliverOne({ text: "x" }, { usage, ...more });
  return seen;
}

describe("usageState", () => {
  it("should be in the events of reply_payload_sending of exactly its run", async () => {
    expect(await seenWith({})).toEqual([STATE]);
  });

  it("should be omitted in durable delivery and recovered replay", async () => {
    expect(await seenWith({ durable: true })).toEqual([undefined]);
  });

  it.each([
    ["no run", {}],
    ["an empty run", { runId: "" }],
    ["another run", { runId: "r-10" }],
    ["a run of another case", { runId: "R-1" }],
  ])("should be omitted for a reply that is of %s", async (_, run) => {
    expect(await seenWith({}, { channelId: "test", ...run })).toEqual([undefined]);
  });

  it("should be omitted where nobody keeps any", async () => {
    expect(await seenWith({ usage: undefined })).toEqual([undefined]);
  });

  it("should be kept for 5 minutes", () => {
    const clock = new VirtualClock();
    const states = new UsageStates(clock);
    states.put("r", STATE);
    clock.block(USAGE_STATE_TTL_MS - 1);
    expect(states.of("r")).toEqual(STATE);
    clock.block(1);
    expect(states.of("r")).toBeUndefined();
    states.put("other", STATE);
    expect(states.size).toBe(1);
  });

  it("should not be consumed by reading, nor kept any longer", () => {
    const clock = new VirtualClock();
    const states = new UsageStates(clock);
    states.put("r", STATE);
    clock.block(USAGE_STATE_TTL_MS - 1);
    expect([states.of("r"), states.of("r")]).toEqual([STATE, STATE]);
    clock.block(1);
    expect(states.of("r")).toBeUndefined();
  });

  it("should be kept for 1 024 runs, the oldest evicted first", () => {
    const states = new UsageStates(new VirtualClock());
    for (let n = 0; n <= MAX_USAGE_STATES; n++) {
      states.put(`r-${n}`, STATE);
      states.of("r-0");
    }
    expect([states.size, states.of("r-0"), states.of("r-1")]).toEqual([1024, undefined, STATE]);
  });

  it("should be young again when it is put anew", () => {
    const states = new UsageStates(new VirtualClock());
    states.put("r-0", STATE);
    for (let n = 1; n < MAX_USAGE_STATES; n++) states.put(`r-${n}`, STATE);
    states.put("r-0", { model: "new" });
    states.put("one more", STATE);
    expect([states.of("r-0"), states.of("r-1")]).toEqual([{ model: "new" }, undefined]);
  });

  it("should be a snapshot", () => {
    const states = new UsageStates(new VirtualClock());
    const state = { model: "before" };
    states.put("r", state);
    state.model = "after";
    expect(states.of("r")).toEqual({ model: "before" });
  });

  it("should be forgotten where it cannot be copied", () => {
    const states = new UsageStates(new VirtualClock());
    states.put("r", STATE);
    states.put("r", { model: () => {} } as never);
    expect(states.of("r")).toBeUndefined();
  });

  it("should be what a plain list of all that was put says", () => {
    const step = fc.oneof(
      fc.record({ put: fc.integer({ min: 0, max: 1200 }), times: fc.integer({ min: 1, max: 900 }) }),
      fc.record({ pass: fc.integer({ min: 0, max: USAGE_STATE_TTL_MS }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const clock = new VirtualClock();
        const states = new UsageStates(clock);
        let log: { run: string; at: number }[] = [];
        for (const taken of steps) {
          if ("pass" in taken) clock.block(taken.pass);
          else {
            for (let n = 0; n < taken.times; n++) {
              const run = `r-${(taken.put + n) % 1200}`;
              states.put(run, { model: run });
              log.push({ run, at: clock.now() });
            }
            const latest = new Map(log.map((entry) => [entry.run, entry]));
            log = log.filter((entry) => latest.get(entry.run) === entry).slice(-1024);
          }
          expect(states.size).toBeLessThanOrEqual(1024);
        }
        const kept = new Set(log.filter(({ at }) => clock.now() - at < USAGE_STATE_TTL_MS).map(({ run }) => run));
        for (let n = 0; n < 1200; n++) expect(states.of(`r-${n}`) !== undefined).toBe(kept.has(`r-${n}`));
      }),
      { numRuns: 25 },
    );
  });
});
