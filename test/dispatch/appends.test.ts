import { describe, expect, it } from "vitest";
import type { HookPoint } from "#src/core/points.js";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore } from "../support/faulty-store.js";
import { ack, allow, delayed, isSettled, keep, Later, type Part, Rig } from "../support/kernels.js";
import { blobOf } from "../support/store-fixtures.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

function watched(chain: readonly Part[], point: HookPoint = "pre-tool-call", clock = new VirtualClock()) {
  const store = new FaultyStore(openMemoryStore());
  return { store, clock, rig: new Rig({ chain, point, store, clock }) };
}

describe("appends of a dispatch", () => {
  it("should be one, with a barrier, when the chain settles in microtasks", async () => {
    const { rig, store } = watched([
      { mode: "observe", does: ack },
      { mode: "observe", does: ack },
      { mode: "veto", does: async () => allow },
      { mode: "transform", does: keep },
    ]);
    const { dispatchId } = await rig.dispatch();
    expect(store.requests.map(({ expected, events, barrier }) => [expected, events.length, barrier])).toStrictEqual([
      ["none", 10, true],
    ]);
    expect((await rig.recorded(dispatchId)).diverged).toBeNull();
  });

  it("should chain exact revisions and wait once, however slow the subscribers are", async () => {
    const clock = new VirtualClock();
    const slow = (ms: number) => delayed(clock, ms, allow);
    const { rig, store } = watched(
      [
        { mode: "veto", does: slow(5) },
        { mode: "veto", does: slow(5) },
      ],
      "pre-tool-call",
      clock,
    );
    await rig.dispatch();
    expect(store.requests.map(({ expected, events, barrier }) => [expected, events.length, barrier])).toStrictEqual([
      ["none", 2, false],
      [1, 2, false],
      [3, 2, true],
    ]);
  });

  it("should not wait for acknowledgements before the decision", async () => {
    const clock = new VirtualClock();
    const { rig, store } = watched(
      [
        { mode: "veto", does: delayed(clock, 5, allow) },
        { mode: "veto", does: delayed(clock, 5, allow) },
      ],
      "pre-tool-call",
      clock,
    );
    store.plan = () => ({ does: "acknowledge late" });
    const result = rig.begin();
    await clock.run(() => store.requests.length === 3);
    expect(await isSettled(result)).toBe(false);
    store.release();
    expect((await result).allowed).toBe(true);
  });

  it("should give the session with the first append only", async () => {
    const clock = new VirtualClock();
    const { rig, store } = watched([{ mode: "veto", does: delayed(clock, 5, allow) }], "pre-tool-call", clock);
    await rig.dispatch({ session: "s-1" });
    expect(store.requests.map(({ session }) => session)).toStrictEqual(["s-1", undefined]);
  });

  it("should hand out the result only once the decision is durable", async () => {
    const { rig, store } = watched([{ mode: "veto", does: allow }]);
    store.plan = () => ({ does: "hang" });
    const result = rig.begin();
    expect(await isSettled(result)).toBe(false);
    store.release();
    expect((await result).recorded).toBe(true);
  });

  it("should write what a subscriber's outcome is at the end of the macrotask in which it settled", async () => {
    const first = new Later<typeof allow>();
    const { rig, store } = watched([
      { mode: "veto", does: () => first.promise },
      { mode: "veto", does: () => new Promise(() => {}), timeoutMs: 9 },
    ]);
    const result = rig.begin();
    await settled();
    first.resolve(allow);
    await settled();
    const { events } = (await rig.store.readStream(store.requests[0]!.stream))!;
    expect(events.map(({ type }) => type)).toStrictEqual([
      "started",
      "subscriber-invoked",
      "outcome",
      "subscriber-invoked",
    ]);
    await rig.clock.run();
    await result;
  });

  it("should bear ids that are RFC 9562 UUIDs of version 8, in the order of revisions", async () => {
    const { rig } = watched([{ mode: "veto", does: allow }]);
    const { dispatchId } = await rig.dispatch({ id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    const { raw } = await rig.recorded(dispatchId);
    for (const { id } of raw) {
      expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
    expect(raw.map(({ id }) => id)).toStrictEqual(raw.map(({ id }) => id).toSorted());
    expect(raw.map(({ id }) => Number.parseInt(id.slice(-4), 16))).toStrictEqual([0, 1, 2, 3]);
    const timeMs = Number.parseInt(raw[0]!.id.slice(0, 13).replace("-", ""), 16);
    expect(timeMs).toBe(1_469_922_850_259);
  });
});

describe("write-ahead", () => {
  it("should call a subscriber only once the ledger durably knows that it is called", async () => {
    const { rig, store } = watched([
      { mode: "veto", does: allow },
      { mode: "veto", does: allow, recording: "write-ahead" },
    ]);
    store.plan = () => ({ does: "hang" });
    const result = rig.begin();
    await settled();
    expect(rig.calls.map(({ id }) => id)).toStrictEqual(["veto"]);
    expect(store.requests.map(({ events, barrier }) => [events.at(-1)!.type, barrier])).toStrictEqual([
      ["subscriber-invoked", true],
    ]);
    store.release();
    await settled();
    expect(rig.calls).toHaveLength(2);
    store.release();
    expect((await result).allowed).toBe(true);
    expect(store.requests.map(({ barrier }) => barrier)).toStrictEqual([true, true]);
  });

  it("should start the subscriber's time with the call, not with the wait", async () => {
    const clock = new VirtualClock();
    const { rig, store } = watched(
      [{ mode: "veto", recording: "write-ahead", timeoutMs: 10, does: delayed(clock, 9, allow) }],
      "pre-tool-call",
      clock,
    );
    store.plan = (nth) => (nth === 1 ? { does: "hang" } : null);
    const result = rig.begin();
    await settled();
    clock.block(100);
    store.release();
    await clock.run();
    const { dispatchId, allowed } = await result;
    expect(allowed).toBe(true);
    const { metadata } = await rig.recorded(dispatchId);
    expect(metadata.at(-1)!.offsetNs).toBe(109e6);
  });

  it("should let concurrent observers wait side by side", async () => {
    const { rig, store } = watched([
      { mode: "observe", does: ack, recording: "write-ahead" },
      { mode: "observe", does: ack },
      { mode: "observe", does: ack, recording: "write-ahead" },
      { mode: "veto", does: allow },
    ]);
    const { dispatchId, allowed } = await rig.dispatch();
    expect(allowed).toBe(true);
    expect(rig.calls.map(({ id }) => id)).toStrictEqual(["observe-1", "observe", "observe-2", "veto-3"]);
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told.slice(0, 4)).toStrictEqual(["started", "invoked 0", "invoked 1", "invoked 2"]);
    expect(diverged).toBeNull();
    expect(store.requests.at(-1)!.barrier).toBe(true);
  });

  it("should call and record a detached observer whose turn comes after the decision", async () => {
    const store = new FaultyStore(openMemoryStore());
    const rig = new Rig({
      store,
      settings: { observeConcurrency: "detached" },
      chain: [{ mode: "observe", does: ack, recording: "write-ahead" }],
    });
    store.plan = (nth) => (nth === 1 ? { does: "acknowledge late" } : null);
    const result = rig.begin();
    await settled();
    expect(rig.calls).toHaveLength(0);
    store.release();
    const { dispatchId, allowed } = await result;
    await rig.dispatcher.idle();
    expect(allowed).toBe(true);
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told).toStrictEqual(["started", "invoked 0", "decided allow by kernel:default", "ack 0"]);
    expect(diverged).toBeNull();
  });
});

describe("the configuration", () => {
  it("should be archived with the first dispatch, and not again", async () => {
    const { rig, store } = watched([{ mode: "veto", does: allow }]);
    const { dispatchId } = await rig.dispatch();
    await rig.dispatch();
    expect(store.requests.map(({ blobs }) => blobs?.map(({ digest }) => digest))).toStrictEqual([
      [rig.configBlob.digest],
      undefined,
    ]);
    expect(await blobOf(rig.store, rig.configBlob.digest)).toStrictEqual(rig.configBlob.bytes);
    const [started] = (await rig.recorded(dispatchId)).events;
    expect(started).toMatchObject({ configDigest: rig.configBlob.digest });
  });

  it("should be archived again after ten minutes: somebody may have removed all that referred to it", async () => {
    const { rig, store, clock } = watched([{ mode: "veto", does: allow }]);
    const minutes = 60_000;
    for (const pause of [0, 6, 4, 1, 10, 9]) {
      clock.block(pause * minutes);
      await rig.dispatch();
    }
    expect(store.requests.map(({ blobs }) => blobs?.length ?? 0)).toStrictEqual([1, 0, 0, 1, 0, 1]);
  });

  it("should be sent again until a dispatch was durably recorded", async () => {
    const { rig, store } = watched([{ mode: "observe", does: ack }], "session-start");
    store.plan = (nth) => (nth < 3 ? { does: "refuse", code: "HL_STORE_FULL" } : null);
    for (let i = 0; i < 4; i++) await rig.dispatch();
    expect(store.requests.map(({ blobs }) => blobs?.length ?? 0)).toStrictEqual([1, 1, 1, 0]);
  });

  it("should be named by the dispatches that ran beside the first, too", async () => {
    const { rig, store } = watched([{ mode: "veto", does: allow }]);
    const results = await Promise.all([rig.begin(), rig.begin(), rig.begin()]);
    expect(store.requests.map(({ blobs }) => blobs?.length)).toStrictEqual([1, 1, 1]);
    for (const { dispatchId } of results) expect((await rig.recorded(dispatchId)).diverged).toBeNull();
  });
});
