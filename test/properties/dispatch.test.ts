import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { foretell } from "../support/oracle.js";
import { schedules, scripts } from "../support/oracle-scripts.js";
import { admitted, stage } from "../support/stage.js";

describe("the live dispatcher", () => {
  it("should come to what a plain loop foretells, under every permutation of latencies, and record what verifies", async () => {
    await fc.assert(
      fc.asyncProperty(scripts().map(admitted), schedules, async (script, schedule) => {
        const { live, told, diverged, replayed } = await stage(script, schedule);
        expect(told).toStrictEqual(foretell(script));
        expect(diverged).toBeNull();
        expect(replayed.allowed).toBe(live.allowed);
        expect(replayed.decidedBy).toBe(live.decidedBy);
        expect(replayed.planDecisions).toStrictEqual(live.planDecisions);
      }),
      { numRuns: 2_000 },
    );
  });
});
