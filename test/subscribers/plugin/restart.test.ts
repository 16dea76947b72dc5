import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type RestartPolicy, Restarts } from "#src/subscribers/plugin/restart.js";

const POLICY: RestartPolicy = { firstWaitMs: 100, longestWaitMs: 1000, bound: 6, goodRunMs: 5000 };

describe("Restarts", () => {
  it("should let a plugin start that has never failed", () => {
    expect(new Restarts(POLICY).at(0)).toEqual({ may: "start" });
  });

  it("should let a plugin start again at once after its first crash, then ever later, then not any more", () => {
    const restarts = new Restarts(POLICY);
    const waits: unknown[] = [];
    for (let crash = 0; crash < 6; crash++) {
      restarts.ended(1000, 10);
      const standing = restarts.at(1000);
      waits.push(standing.may === "wait" ? standing.waitMs : standing.may);
    }
    expect(waits).toEqual(["start", 100, 200, 400, 800, "not"]);
  });

  it("should make one that does not come up wait from the first time on", () => {
    const restarts = new Restarts(POLICY);
    restarts.didNotStart(0);
    expect(restarts.at(0)).toEqual({ may: "wait", waitMs: 100 });
    expect(restarts.at(99.5)).toEqual({ may: "wait", waitMs: 1 });
    expect(restarts.at(100)).toEqual({ may: "start" });
  });

  it("should count anew after a good run", () => {
    const restarts = new Restarts(POLICY);
    for (let crash = 0; crash < 5; crash++) restarts.ended(0, 10);
    restarts.ended(60_000, 5000);
    expect(restarts.at(60_000)).toEqual({ may: "start" });
    restarts.ended(60_000, 4999);
    expect(restarts.at(60_000)).toEqual({ may: "wait", waitMs: 100 });
  });

  it("should start again what was given up when somebody asks for it", () => {
    const restarts = new Restarts(POLICY);
    for (let crash = 0; crash < 6; crash++) restarts.ended(0, 10);
    expect(restarts.at(1e9)).toEqual({ may: "not", failures: 6 });
    restarts.forget();
    expect(restarts.at(0)).toEqual({ may: "start" });
  });

  it("should never let more than the bound of starts happen without a good run, and never wait longer than the longest", () => {
    const step = fc.record({ gapMs: fc.nat(3000), ranMs: fc.nat(4999), comesUp: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const restarts = new Restarts(POLICY);
        let now = 0;
        let starts = 0;
        for (const { gapMs, ranMs, comesUp } of steps) {
          now += gapMs;
          const standing = restarts.at(now);
          if (standing.may === "wait") expect(standing.waitMs).toBeLessThanOrEqual(POLICY.longestWaitMs);
          if (standing.may !== "start") continue;
          starts++;
          if (comesUp) restarts.ended(now, ranMs);
          else restarts.didNotStart(now);
        }
        expect(starts).toBeLessThanOrEqual(POLICY.bound);
      }),
    );
  });
});
