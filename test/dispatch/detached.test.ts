import { describe, expect, it } from "vitest";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore, fromNth, REFUSE } from "../support/faulty-store.js";
import {
  ack,
  allow,
  broken,
  delayed,
  deny,
  isSettled,
  keep,
  Later,
  never,
  type Part,
  Rig,
} from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const detached = { observeConcurrency: "detached" } as const;

describe("detached observers", () => {
  it("should be invoked before those behind them start, and not be waited for", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      settings: detached,
      chain: [
        { mode: "observe", does: delayed(clock, 50, ack) },
        { mode: "observe", does: delayed(clock, 40, ack) },
        { mode: "veto", does: allow },
      ],
    });
    const { dispatchId, allowed } = await rig.begin();
    expect(allowed).toBe(true);
    expect(clock.now()).toBe(0);
    await clock.run();
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told).toStrictEqual([
      "started",
      "invoked 0",
      "invoked 1",
      "invoked 2",
      "allow 2",
      "decided allow by kernel:default",
      "ack 1",
      "ack 0",
    ]);
    expect(diverged).toBeNull();
  });

  it("should be waited for, and be in the ledger, when the dispatcher says that it is idle", async () => {
    const answer = new Later<typeof ack>();
    const store = new FaultyStore(openMemoryStore());
    const rig = new Rig({ store, settings: detached, chain: [{ mode: "observe", does: () => answer.promise }] });
    await rig.begin();
    const idle = rig.dispatcher.idle();
    expect(await isSettled(idle)).toBe(false);
    answer.resolve(ack);
    await idle;
    // Whoever is told "idle" closes the store at once.
    const written = store.requests.flatMap(({ events }) => events.map(({ type }) => type));
    expect(written).toStrictEqual(["started", "subscriber-invoked", "decided", "outcome"]);
  });

  it("should be bounded by their own timeouts", async () => {
    const rig = new Rig({ settings: detached, chain: [{ mode: "observe", does: never, timeoutMs: 77 }] });
    const { dispatchId } = await rig.begin();
    const idle = rig.dispatcher.idle();
    await rig.clock.run();
    expect(await isSettled(idle)).toBe(true);
    expect(rig.clock.now()).toBe(77);
    expect((await rig.recorded(dispatchId)).told.at(-1)).toBe("timeout 0 after 77");
    expect(rig.hookErrors).toMatchObject([{ dispatchId, subscriber: "observe", category: "TIMEOUT" }]);
  });

  it.each<[string, Part]>([
    ["a deny", { mode: "veto", does: deny }],
    ["an abort", { mode: "transform", does: broken }],
  ])("should run on behind %s by the chain", async (_, last) => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      settings: detached,
      chain: [{ mode: "observe", does: delayed(clock, 9, ack) }, last],
    });
    const result = await rig.begin();
    expect(result.allowed).toBe(false);
    expect(rig.calls[0]!.call.signal.aborted).toBe(false);
    await clock.run();
    const { told, diverged, verdict } = await rig.recorded(result.dispatchId);
    expect(told.at(-1)).toBe("ack 0");
    expect(verdict.allowed).toBe(false);
    expect(diverged).toBeNull();
  });

  it("should report a failure that comes late, once", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      settings: detached,
      chain: [{ mode: "observe", does: delayed(clock, 9, broken) }],
    });
    const result = await rig.begin();
    expect(result.hookErrors).toStrictEqual([]);
    await clock.run();
    expect(rig.hookErrors).toStrictEqual([
      {
        dispatchId: result.dispatchId,
        subscriber: "observe",
        mode: "observe",
        category: "UNKNOWN",
        message: "it broke",
      },
    ]);
    expect((await rig.recorded(result.dispatchId)).verdict.hookErrors).toHaveLength(1);
  });

  it("should say so when what they came to could not be written", async () => {
    const clock = new VirtualClock();
    const store = new FaultyStore(openMemoryStore(), fromNth(2, REFUSE));
    const rig = new Rig({
      clock,
      store,
      settings: detached,
      chain: [{ mode: "observe", does: delayed(clock, 9, ack) }],
    });
    const result = await rig.begin();
    expect(result).toMatchObject({ allowed: true, recorded: true });
    await clock.run();
    await rig.dispatcher.idle();
    expect(rig.lines).toMatchObject([{ level: "error", provider: "kernel" }]);
    expect(rig.lines[0]!.message).toContain("HL_STORE_UNAVAILABLE");
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
  });

  it("should see the payload as it was at their place", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      point: "pre-model-call",
      settings: detached,
      chain: [
        { mode: "observe", does: delayed(clock, 5, ack) },
        { mode: "transform", does: keep },
      ],
    });
    await rig.dispatch();
    expect(rig.calls[0]!.call.payload).toBe(rig.calls[1]!.call.payload);
  });

  it("should not be called beyond 1 024 in flight, which is an error of theirs and no verdict", async () => {
    const many: Part[] = Array.from({ length: 200 }, () => ({ mode: "observe", does: never }));
    const rig = new Rig({ settings: detached, chain: many });
    const results = await Promise.all(Array.from({ length: 6 }, () => rig.begin()));
    expect(rig.calls).toHaveLength(1024);
    for (const { allowed } of results) expect(allowed).toBe(true);
    const last = results.at(-1)!;
    expect(last.hookErrors).toHaveLength(176);
    expect(last.hookErrors[0]).toMatchObject({
      category: "UNKNOWN",
      message: expect.stringContaining("HL_LIMIT_OBSERVERS"),
    });
    expect((await rig.recorded(last.dispatchId)).diverged).toBeNull();
    await rig.clock.run();
    const [next] = await Promise.all([rig.begin()]);
    expect(next!.hookErrors).toHaveLength(0);
    await rig.clock.run();
  });

  it("should name a refused shadow's failure by its mode", async () => {
    const observers: Part[] = Array.from({ length: 255 }, () => ({ mode: "observe", does: never }));
    const rig = new Rig({ settings: detached, chain: [...observers, { mode: "veto", shadow: true, does: never }] });
    const results = await Promise.all(Array.from({ length: 5 }, () => rig.begin()));
    expect(results.at(-1)!.hookErrors.at(-1)).toMatchObject({ mode: "veto", category: "VETO_FAILED" });
    expect((await rig.recorded(results.at(-1)!.dispatchId)).diverged).toBeNull();
    await rig.clock.run();
  });

  it("should give their places back when the caller cancels", async () => {
    const caller = new AbortController();
    const many: Part[] = Array.from({ length: 255 }, () => ({ mode: "observe", does: never }));
    const chain: Part[] = [...many, { mode: "veto", does: never }];
    const rig = new Rig({ settings: detached, chain });
    const cancelled = Array.from({ length: 4 }, () => rig.begin({ signal: caller.signal }));
    await settled();
    caller.abort();
    await Promise.all(cancelled);
    const next = rig.begin();
    await settled();
    expect(rig.calls).toHaveLength(5 * 256);
    await rig.clock.run();
    await next;
  });
});
