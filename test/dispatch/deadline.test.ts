import { describe, expect, it } from "vitest";
import type { HookPoint } from "#src/core/points.js";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore } from "../support/faulty-store.js";
import { ack, allow, delayed, isSettled, keep, never, Rig } from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

describe("a deadline", () => {
  it.each([
    ["veto", "pre-tool-call", "decided deny by veto", null],
    ["transform", "pre-model-call", "aborted hook_error", "hook_error"],
    ["observe", "session-start", "decided allow by kernel:default", null],
  ] as const)("should be a failure of its subscriber in %s", async (mode, point, conclusion, abortCause) => {
    const rig = new Rig({ point, chain: [{ mode, does: never, timeoutMs: 30 }] });
    const result = await rig.dispatch();
    expect(result.abortCause).toBe(abortCause);
    expect(result.hookErrors).toStrictEqual([
      { subscriber: mode, mode, category: "TIMEOUT", message: "no answer within 30 ms" },
    ]);
    const { told, diverged } = await rig.recorded(result.dispatchId);
    expect(told).toStrictEqual(["started", "invoked 0", "timeout 0 after 30", conclusion]);
    expect(diverged).toBeNull();
    expect(rig.calls[0]!.call.signal.aborted).toBe(true);
  });

  it("should be met by an answer that comes one instant before it, and not by one at it", async () => {
    for (const [ms, allowed] of [
      [29.999, true],
      [30, false],
    ] as const) {
      const clock = new VirtualClock();
      const rig = new Rig({ clock, chain: [{ mode: "veto", timeoutMs: 30, does: delayed(clock, ms, allow) }] });
      expect((await rig.dispatch()).allowed).toBe(allowed);
    }
  });

  it("should pass by the clock, though a blocked event loop kept the timer from firing", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      chain: [
        {
          mode: "veto",
          timeoutMs: 30,
          does: () => {
            clock.block(500);
            return allow;
          },
        },
      ],
    });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ allowed: false, decidedBy: "veto", reason: "TIMEOUT: no answer within 30 ms" });
    const { told, metadata } = await rig.recorded(result.dispatchId);
    expect(told[2]).toBe("timeout 0 after 30");
    expect(metadata.map(({ lagMs }) => lagMs)).toStrictEqual([undefined, undefined, 470, undefined]);
    expect(metadata[2]!.offsetNs).toBe(500e6);
  });

  it("should tell how late the timer itself fired", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({ clock, chain: [{ mode: "veto", does: never, timeoutMs: 30 }] });
    const result = rig.begin();
    await settled();
    clock.block(45);
    await clock.run();
    const { metadata } = await rig.recorded((await result).dispatchId);
    expect(metadata[2]!.lagMs).toBe(15);
  });

  it("should not pass because a timer fired early", async () => {
    class Hasty extends VirtualClock {
      fired = 0;
      override timer(ms: number, fire: () => void): () => void {
        const early = () => {
          this.fired += 1;
          fire();
        };
        return super.timer(ms > 4 ? ms - 3 : ms, early);
      }
    }
    const clock = new Hasty();
    const rig = new Rig({ clock, chain: [{ mode: "veto", does: never, timeoutMs: 10 }] });
    const { dispatchId } = await rig.dispatch();
    expect(clock.fired).toBe(2);
    const { metadata, told } = await rig.recorded(dispatchId);
    expect(told[2]).toBe("timeout 0 after 10");
    expect(metadata[2]!.offsetNs).toBe(10e6);
  });

  it("should leave no timer armed behind an answer", async () => {
    let armed = 0;
    class Counting extends VirtualClock {
      override timer(ms: number, fire: () => void): () => void {
        armed += 1;
        const disarm = super.timer(ms, fire);
        return () => {
          armed -= 1;
          disarm();
        };
      }
    }
    const rig = new Rig({ clock: new Counting(), chain: [{ mode: "veto", does: allow }] });
    await rig.begin();
    expect(armed).toBe(0);
  });

  it("should tell a subscriber what is left of it", async () => {
    const clock = new VirtualClock();
    const left: number[] = [];
    const rig = new Rig({
      clock,
      chain: [
        {
          mode: "veto",
          timeoutMs: 100,
          does: (call) => {
            left.push(call.remainingMs());
            clock.block(60);
            left.push(call.remainingMs());
            clock.block(60);
            left.push(call.remainingMs());
            return allow;
          },
        },
      ],
    });
    await rig.dispatch();
    expect(left).toStrictEqual([100, 40, 0]);
  });

  it("should let a late answer change nothing", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({ clock, chain: [{ mode: "veto", timeoutMs: 30, does: delayed(clock, 31, allow) }] });
    const result = await rig.dispatch();
    expect(result.allowed).toBe(false);
    expect((await rig.recorded(result.dispatchId)).told).toHaveLength(4);
  });
});

describe("the chain's budget", () => {
  const AT: readonly HookPoint[] = ["pre-tool-call", "pre-model-call"];

  it.each(AT)("should end the running subscriber and call no other: %s", async (point) => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      point,
      settings: { chainBudgetMs: 100 },
      chain: [
        { mode: "transform", does: delayed(clock, 70, keep) },
        { mode: "transform", does: never },
        { mode: "observe", does: ack },
      ],
    });
    const result = await rig.dispatch();
    const { told, diverged, events, metadata } = await rig.recorded(result.dispatchId);
    expect(told.slice(-2)).toStrictEqual([
      "timeout 1 after 30",
      point === "pre-tool-call" ? "decided deny by transform-1" : "aborted hook_error",
    ]);
    expect(events[0]).toMatchObject({ budgetMs: 100 });
    expect(metadata.at(-1)!.offsetNs).toBe(100e6);
    expect(diverged).toBeNull();
    expect(result).toMatchObject({ allowed: false, hookErrors: [{ subscriber: "transform-1", category: "TIMEOUT" }] });
    expect(rig.calls).toHaveLength(2);
  });

  it.each(AT)("should be noticed between two calls, and the next not be called: %s", async (point) => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      point,
      settings: { chainBudgetMs: 100 },
      parts: { onHookError: () => clock.block(100) },
      chain: [
        { mode: "observe", does: { class: "failed", error: { category: "UNKNOWN", message: "no" } } },
        { mode: "transform", does: keep },
      ],
    });
    const result = await rig.dispatch();
    expect(rig.calls.map(({ id }) => id)).toStrictEqual(["observe"]);
    const { told, diverged } = await rig.recorded(result.dispatchId);
    expect(told.slice(3, 5)).toStrictEqual(["invoked 1", "timeout 1 after 0"]);
    expect(diverged).toBeNull();
    expect(result.allowed).toBe(false);
  });

  it("should run out for observers like for anybody, naming the first of the chain", async () => {
    const clock = new VirtualClock((count) => count - 1);
    const rig = new Rig({
      clock,
      settings: { chainBudgetMs: 50 },
      chain: [
        { mode: "observe", does: delayed(clock, 10, ack) },
        { mode: "observe", does: never },
        { mode: "observe", does: never },
        { mode: "veto", does: allow },
      ],
    });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ allowed: false, decision: "deny", decidedBy: "observe-1" });
    expect(rig.calls).toHaveLength(3);
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
  });

  it("should not be spent by a subscriber whose own timeout is the shorter", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      settings: { chainBudgetMs: 100 },
      chain: [
        { mode: "observe", does: never, timeoutMs: 40 },
        { mode: "veto", does: delayed(clock, 59, allow) },
      ],
    });
    expect(await rig.dispatch()).toMatchObject({ allowed: true });
  });

  it("should not shorten a detached observer's time", async () => {
    const rig = new Rig({
      settings: { chainBudgetMs: 20, observeConcurrency: "detached" },
      chain: [{ mode: "observe", does: never, timeoutMs: 500 }],
    });
    const { dispatchId, allowed } = await rig.dispatch();
    expect(allowed).toBe(true);
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told.at(-1)).toBe("timeout 0 after 500");
    expect(diverged).toBeNull();
  });

  it("should be recorded in whole ms, whatever fraction of one is left", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      settings: { chainBudgetMs: 10 },
      chain: [
        { mode: "observe", does: delayed(clock, 9.4, ack) },
        { mode: "veto", does: never, timeoutMs: 1 },
      ],
    });
    const result = await rig.dispatch();
    expect(result.allowed).toBe(false);
    const { told, diverged } = await rig.recorded(result.dispatchId);
    expect(told.slice(-2)).toStrictEqual(["timeout 1 after 0", "decided deny by veto-1"]);
    expect(diverged).toBeNull();
  });

  it("should count what write-ahead waits for", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(openMemoryStore(), (nth) => (nth === 1 ? { does: "hang" } : null));
    const rig = new Rig({
      clock,
      store,
      settings: { chainBudgetMs: 10 },
      chain: [{ mode: "veto", does: allow, recording: "write-ahead" }],
    });
    const result = rig.begin();
    await settled();
    clock.block(10);
    store.release();
    expect(await result).toMatchObject({ allowed: false, hookErrors: [{ category: "TIMEOUT" }] });
    expect(rig.calls).toHaveLength(0);
    expect(await isSettled(rig.dispatcher.idle())).toBe(true);
  });
});
