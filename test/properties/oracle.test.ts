import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { play } from "../support/driver.js";
import { foretell } from "../support/oracle.js";
import { schedules, scripts } from "../support/oracle-scripts.js";

describe("a dispatch", () => {
  it("should come to what a plain loop over the chain foretells, whatever the races", () => {
    fc.assert(
      fc.property(scripts(), schedules, (script, schedule) => {
        expect(play(script, schedule).result).toStrictEqual(foretell(script));
      }),
      { numRuns: 10_000 },
    );
  });

  it("should do so with many subscribers and wide latencies", () => {
    fc.assert(
      fc.property(scripts({ maxRoles: 24, maxTimeoutMs: 1000 }), schedules, (script, schedule) => {
        expect(play(script, schedule).result).toStrictEqual(foretell(script));
      }),
      { numRuns: 1_000 },
    );
  });
});
