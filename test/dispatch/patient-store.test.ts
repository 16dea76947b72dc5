import { describe, expect, it } from "vitest";
import type { HookPoint } from "#src/core/points.js";
import type { Clock } from "#src/dispatch/clock.js";
import { within } from "#src/dispatch/patient-store.js";
import { HookledgerError } from "#src/errors.js";
import { openMemoryStore } from "#src/store/memory.js";
import { type Fault, FaultyStore, onlyNth } from "../support/faulty-store.js";
import { ack, allow, isSettled, type Part, Rig, type StageOptions } from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const HANG: Fault = { does: "hang" };
const VETO: Part = { mode: "veto", does: allow };

function silentFrom(nth: number, chain: readonly Part[], options: StageOptions = {}) {
  const clock = new VirtualClock();
  const store = new FaultyStore(openMemoryStore(), (n) => (n >= nth ? HANG : null));
  return { store, clock, rig: new Rig({ ...options, store, clock, chain }) };
}

describe("a store that does not answer an append", () => {
  it("should be waited for 30 s and not longer, and then not be believed", async () => {
    const { rig, clock } = silentFrom(1, [VETO]);
    const result = rig.begin();
    clock.timer(29_999, () => {});
    await clock.run(() => clock.now() === 29_999);
    expect(await isSettled(result)).toBe(false);
    await clock.run(() => clock.now() > 29_999);
    expect(clock.now()).toBe(30_000);
    expect(await result).toMatchObject({
      status: "aborted",
      abortCause: "store_unavailable",
      allowed: false,
      recorded: false,
      storeError: "HL_STORE_AMBIGUOUS",
      reason: "HL_STORE_AMBIGUOUS: the ledger has not answered within 30000 ms",
    });
    expect(rig.lines).toHaveLength(1);
  });

  it.each(["hang", "acknowledge late"] as const)("should be mended once it speaks: %s", async (does) => {
    const { rig, store, clock } = silentFrom(1, [VETO]);
    store.plan = onlyNth(1, { does });
    const result = rig.begin();
    await clock.run();
    const { dispatchId, allowed } = await result;
    expect(allowed).toBe(false);
    expect(store.requests).toHaveLength(1);
    store.release();
    await settled();
    await rig.dispatcher.idle();
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told.slice(-2)).toEqual(["decided allow by kernel:default", "aborted unconfirmed"]);
    expect(diverged).toBeNull();
  });

  it.each(["hang", "acknowledge late"] as const)("should be mended before the dispatcher ends: %s", async (does) => {
    const { rig, store, clock } = silentFrom(1, [VETO]);
    store.plan = onlyNth(1, { does });
    const result = rig.begin();
    await clock.run(() => clock.now() === 30_000);
    const { dispatchId } = await result;
    const idle = rig.dispatcher.idle();
    store.release();
    await idle;
    expect((await rig.recorded(dispatchId)).told.at(-1)).toBe("aborted unconfirmed");
  });

  it("should keep the dispatcher from ending no longer than the caller from its answer", async () => {
    const { rig, clock } = silentFrom(1, [VETO]);
    const result = rig.begin();
    await clock.run(() => clock.now() === 30_000);
    await result;
    const idle = rig.dispatcher.idle();
    expect(await isSettled(idle)).toBe(false);
    await clock.run();
    expect(clock.now()).toBe(60_000);
    expect(await isSettled(idle)).toBe(true);
  });

  it("should never have what it writes late follow what was mended", async () => {
    // The first is refused, the second, behind it, is held back and would fit behind one event more.
    const { rig, store, clock } = silentFrom(1, [{ mode: "observe", does: ack, recording: "write-ahead" }, VETO], {
      settings: { observeConcurrency: "detached" },
    });
    const faults = new Map<number, Fault>([
      [2, { does: "refuse", code: "HL_STORE_UNAVAILABLE" }],
      [3, HANG],
    ]);
    store.plan = (nth) => faults.get(nth) ?? null;
    const result = rig.begin({ id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    result.catch(() => {});
    await clock.run();
    store.release();
    await clock.run();
    await rig.dispatcher.idle();
    const { dispatchId } = await result;
    expect((await rig.recorded(dispatchId)).diverged).toBeNull();
  });

  it("should let a dispatch go on where the operator said continue", async () => {
    const point: HookPoint = "session-end";
    const { rig } = silentFrom(1, [{ mode: "observe", does: ack }], {
      point,
      settings: { onStoreFailure: "continue" },
    });
    expect(await rig.dispatch()).toMatchObject({
      status: "decided",
      recorded: false,
      storeError: "HL_STORE_AMBIGUOUS",
    });
  });

  it("should keep a write-ahead subscriber from being called", async () => {
    const { rig } = silentFrom(1, [{ ...VETO, recording: "write-ahead" }]);
    expect(await rig.dispatch()).toMatchObject({ status: "aborted", storeError: "HL_STORE_AMBIGUOUS" });
    expect(rig.calls).toHaveLength(0);
  });

  it("should keep the caller as long again at most when it falls silent while it is mended", async () => {
    const { rig, store, clock } = silentFrom(2, [VETO]);
    store.plan = (nth) => (nth === 1 ? { does: "lose the reply" } : HANG);
    const result = rig.begin();
    await clock.run(() => clock.now() > 30_000);
    expect(await isSettled(result)).toBe(true);
    expect(await result).toMatchObject({ status: "aborted", allowed: false });
    store.plan = () => null;
    store.release();
    await clock.run();
    await rig.dispatcher.idle();
    expect((await rig.recorded((await result).dispatchId)).told.at(-1)).toBe("aborted unconfirmed");
  });
});

describe("a store that does not answer a read", () => {
  it("should fail a dispatch with an id of the caller's", async () => {
    const { rig, store } = silentFrom(9, [VETO]);
    store.beforeRead = () => new Promise(() => {});
    await expect(rig.dispatch({ id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" })).rejects.toMatchObject({
      code: "HL_STORE_UNAVAILABLE",
    });
  });

  it("should leave what it may have written to recovery", async () => {
    const { rig, store } = silentFrom(9, [VETO]);
    store.plan = onlyNth(1, { does: "lose the reply" });
    store.beforeRead = () => new Promise(() => {});
    expect(await rig.dispatch()).toMatchObject({ status: "aborted", abortCause: "store_unavailable" });
  });
});

describe("within a time", () => {
  const late = () => new HookledgerError("HL_STORE_UNAVAILABLE", "late");

  /** Timers and deferred work that the test fires by hand. */
  function manual() {
    const timers: (() => void)[] = [];
    const deferred: (() => void)[] = [];
    const clock: Clock = {
      now: () => 0,
      wall: () => 0,
      timer: (_ms, fire) => {
        timers.push(fire);
        return () => timers.splice(timers.indexOf(fire), 1);
      },
      defer: (run) => {
        deferred.push(run);
        return () => deferred.splice(deferred.indexOf(run), 1);
      },
    };
    return { clock, timers, deferred };
  }

  it("should hear an answer that arrived while the event loop was blocked before it believes the timer", async () => {
    const { clock, timers, deferred } = manual();
    let answer: (value: string) => void = () => {};
    const heard = within(new Promise<string>((resolve) => (answer = resolve)), clock, 5, late);
    timers[0]?.();
    answer("yes");
    expect(await heard).toBe("yes");
    expect(deferred).toEqual([]);
  });

  it("should leave no timer behind", async () => {
    const { clock, timers } = manual();
    await within(Promise.resolve(), clock, 5, late);
    await expect(within(Promise.reject(new Error("no")), clock, 5, late)).rejects.toThrow("no");
    expect(timers).toEqual([]);
  });
});
