import { describe, expect, it } from "vitest";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore } from "../support/faulty-store.js";
import { ack, allow, delayed, isSettled, Later, never, Rig } from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const CANCELLED = { status: "aborted", abortCause: "cancelled", allowed: false, decision: null, payload: null };

describe("the caller's cancellation", () => {
  it("should invoke nobody when it came before the dispatch, and be recorded", async () => {
    const rig = new Rig({ chain: [{ mode: "veto", does: allow }] });
    const result = await rig.dispatch({ signal: AbortSignal.abort() });
    expect(result).toMatchObject({ ...CANCELLED, hookErrors: [], reason: null, recorded: true });
    expect(rig.calls).toHaveLength(0);
    const { told, diverged } = await rig.recorded(result.dispatchId);
    expect(told).toStrictEqual(["started", "aborted cancelled"]);
    expect(diverged).toBeNull();
  });

  it.each(["observe", "transform", "veto"] as const)(
    "should end a chain in the middle of a call in %s",
    async (mode) => {
      const caller = new AbortController();
      const rig = new Rig({ chain: [{ mode, does: never }] });
      const result = rig.begin({ signal: caller.signal });
      await settled();
      caller.abort();
      expect(await result).toMatchObject({ ...CANCELLED, hookErrors: [] });
      expect(rig.calls[0]!.call.signal.aborted).toBe(true);
      const { told, diverged } = await rig.recorded((await result).dispatchId);
      expect(told).toStrictEqual(["started", "invoked 0", "aborted cancelled with 0"]);
      expect(diverged).toBeNull();
      expect(rig.hookErrors).toStrictEqual([]);
    },
  );

  it("should drop an answer that comes after it", async () => {
    const caller = new AbortController();
    const answer = new Later<typeof allow>();
    const rig = new Rig({ chain: [{ mode: "veto", does: () => answer.promise }] });
    const result = rig.begin({ signal: caller.signal });
    await settled();
    caller.abort();
    answer.resolve(allow);
    const { dispatchId } = await result;
    await settled();
    expect((await rig.recorded(dispatchId)).told.at(-1)).toBe("aborted cancelled with 0");
  });

  it("should not call a write-ahead subscriber that waited for the ledger", async () => {
    const caller = new AbortController();
    const store = new FaultyStore(openMemoryStore(), (nth) => (nth === 1 ? { does: "hang" } : null));
    const rig = new Rig({ store, chain: [{ mode: "veto", does: allow, recording: "write-ahead" }] });
    const result = rig.begin({ signal: caller.signal });
    await settled();
    caller.abort();
    store.release();
    expect(await result).toMatchObject(CANCELLED);
    await settled();
    expect(rig.calls).toHaveLength(0);
    const { told, diverged } = await rig.recorded((await result).dispatchId);
    expect(told).toStrictEqual(["started", "invoked 0", "aborted cancelled with 0"]);
    expect(diverged).toBeNull();
    expect(await isSettled(rig.dispatcher.idle())).toBe(true);
  });

  it("should win over a deadline of the same instant", async () => {
    const caller = new AbortController();
    const rig = new Rig({ chain: [{ mode: "veto", does: never, timeoutMs: 10 }] });
    rig.clock.first(10, () => caller.abort());
    expect(await rig.dispatch({ signal: caller.signal })).toMatchObject({ ...CANCELLED, hookErrors: [] });
  });

  it("should win over an answer of the same instant", async () => {
    const caller = new AbortController();
    const clock = new VirtualClock();
    const rig = new Rig({ clock, chain: [{ mode: "veto", timeoutMs: 20, does: delayed(clock, 10, allow) }] });
    clock.first(10, () => caller.abort());
    expect(await rig.dispatch({ signal: caller.signal })).toMatchObject(CANCELLED);
  });

  it("should change nothing once the chain has come to its decision", async () => {
    const caller = new AbortController();
    const store = new FaultyStore(openMemoryStore(), () => ({ does: "hang" }));
    const rig = new Rig({ store, chain: [{ mode: "veto", does: allow }] });
    const result = rig.begin({ signal: caller.signal });
    await settled();
    caller.abort();
    store.release();
    expect(await result).toMatchObject({ status: "decided", allowed: true });
    expect((await rig.recorded((await result).dispatchId)).told.at(-1)).toBe("decided allow by kernel:default");
  });

  it("should leave detached observers to their own deadline once the decision is made", async () => {
    const caller = new AbortController();
    const rig = new Rig({
      settings: { observeConcurrency: "detached" },
      chain: [{ mode: "observe", does: never, timeoutMs: 50 }],
    });
    const { dispatchId } = await rig.begin({ signal: caller.signal });
    caller.abort();
    expect(rig.calls[0]!.call.signal.aborted).toBe(false);
    await rig.clock.run();
    expect((await rig.recorded(dispatchId)).told.at(-1)).toBe("timeout 0 after 50");
  });

  it("should abort observers in flight, detached ones too", async () => {
    const caller = new AbortController();
    const rig = new Rig({
      settings: { observeConcurrency: "detached" },
      chain: [
        { mode: "observe", does: never },
        { mode: "observe", does: never },
        { mode: "veto", does: never },
      ],
    });
    const result = rig.begin({ signal: caller.signal });
    await settled();
    caller.abort();
    const { dispatchId } = await result;
    expect(rig.calls.map(({ call }) => call.signal.aborted)).toStrictEqual([true, true, true]);
    expect((await rig.recorded(dispatchId)).told.at(-1)).toBe("aborted cancelled with 0,1,2");
    expect(await isSettled(rig.dispatcher.idle())).toBe(true);
  });

  it("should be heard when a subscriber itself makes it happen", async () => {
    const caller = new AbortController();
    const rig = new Rig({
      chain: [
        {
          mode: "observe",
          does: () => {
            caller.abort();
            return ack;
          },
        },
        { mode: "veto", does: allow },
      ],
    });
    expect(await rig.dispatch({ signal: caller.signal })).toMatchObject(CANCELLED);
    expect(rig.calls.map(({ id }) => id)).toStrictEqual(["observe"]);
  });

  it("should be heard when it happens while a failure is reported", async () => {
    const caller = new AbortController();
    const failed = { class: "failed", error: { category: "UNKNOWN", message: "it broke" } } as const;
    const rig = new Rig({
      chain: [
        { mode: "observe", does: failed },
        { mode: "veto", does: allow },
      ],
      parts: { onHookError: () => caller.abort() },
    });
    const result = await rig.dispatch({ signal: caller.signal });
    expect(result).toMatchObject(CANCELLED);
    expect(result.hookErrors).toHaveLength(1);
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
  });

  it("should leave no listener behind", async () => {
    const caller = new AbortController();
    const { signal } = caller;
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners += 1;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners = 0;
      remove(...args);
    };
    const rig = new Rig({ chain: [{ mode: "veto", does: allow }] });
    await rig.dispatch({ signal });
    expect(listeners).toBe(0);
  });
});
