import { describe, expect, it } from "vitest";
import type { Settings } from "#src/config/types.js";
import type { HookPoint } from "#src/core/points.js";
import type { ErrorCode } from "#src/errors.js";
import { recover } from "#src/replay/recover.js";
import { openMemoryStore } from "#src/store/memory.js";
import { type Fault, FaultyStore, fromNth, onlyNth, type Plan, REFUSE } from "../support/faulty-store.js";
import { ack, allow, delayed, deny, isSettled, keep, Later, never, type Part, Rig } from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const LOST_REPLY: Fault = { does: "lose the reply" };

function failing(
  plan: Plan,
  chain: readonly Part[],
  { point = "pre-tool-call" as HookPoint, settings = {} as Partial<Settings>, clock = new VirtualClock() } = {},
) {
  const store = new FaultyStore(openMemoryStore(), plan);
  return { store, clock, rig: new Rig({ store, clock, chain, point, settings }) };
}

/** Three appends: with the calls of the two, and the decision. */
function slowly(clock: VirtualClock, mode: "veto" | "observe"): Part[] {
  const answer = mode === "veto" ? allow : ack;
  return [
    { mode, does: delayed(clock, 5, answer) },
    { mode, does: delayed(clock, 10, answer) },
    ...(mode === "observe" ? [{ mode: "transform", does: keep } as const] : []),
  ];
}

const FAULTS: readonly (readonly [string, Fault])[] = [
  ...(["HL_STORE_UNAVAILABLE", "HL_STORE_FULL", "HL_STORE_LOCKED", "HL_STORE_CONFLICT", "HL_LIMIT_EVENT"] as const).map(
    (code: ErrorCode) => [`refused with ${code}`, { does: "refuse", code } as const] as const,
  ),
  ["written without a reply", LOST_REPLY],
  ["lost without a reply", { does: "lose the request" }],
  ["thrown outside a promise", { does: "throw" }],
  ["rejected with nonsense", { does: "reject with nonsense" }],
];

describe.each(FAULTS)("an append that is %s", (_, fault) => {
  const plans = [
    ["from the first", fromNth(1, fault)],
    ["from the second", fromNth(2, fault)],
    ["from the third", fromNth(3, fault)],
    ["once, the first", onlyNth(1, fault)],
    ["once, the second", onlyNth(2, fault)],
    ["once, the third", onlyNth(3, fault)],
  ] as const;

  it.each(plans)("should never let a veto-bearing dispatch be allowed: %s", async (_when, plan) => {
    for (const onStoreFailure of ["abort", "continue"] as const) {
      const clock = new VirtualClock();
      const { rig } = failing(plan, slowly(clock, "veto"), { clock, settings: { onStoreFailure } });
      const result = await rig.dispatch();
      expect(result).toMatchObject({ status: "aborted", allowed: false, payload: null, recorded: false });
      expect(["store_unavailable", "unconfirmed"]).toContain(result.abortCause);
      expect(result.reason).toMatch(/^HL_/);
      expect(rig.lines).toMatchObject([{ level: "error", provider: "kernel" }]);
      await expectNoAllow(rig, result.dispatchId);
    }
  });

  it.each(plans)("should abort at another point by default: %s", async (_when, plan) => {
    const clock = new VirtualClock();
    const { rig } = failing(plan, slowly(clock, "observe"), { clock, point: "pre-model-call" });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ status: "aborted", payload: null, allowed: false, recorded: false });
    await expectNoAllow(rig, result.dispatchId);
  });

  it.each(plans)("should be flagged where on_store_failure is continue, unless it fences: %s", async (_when, plan) => {
    const clock = new VirtualClock();
    const settings = { onStoreFailure: "continue" as const };
    const { rig } = failing(plan, slowly(clock, "observe"), { clock, point: "pre-model-call", settings });
    const result = await rig.dispatch();
    if (fault.does === "refuse" && fault.code === "HL_STORE_CONFLICT") {
      expect(result).toMatchObject({
        status: "aborted",
        abortCause: "store_unavailable",
        allowed: false,
        payload: null,
      });
      return;
    }
    expect(result).toMatchObject({ status: "decided", decision: "allow", allowed: true, recorded: false });
    expect(result.payload).not.toBeNull();
    expect(rig.calls).toHaveLength(3);
    expect(rig.lines).toHaveLength(1);
  });
});

/** Whatever is in the ledger replays and verifies; and once recovered, nothing in it says allow. */
async function expectNoAllow(rig: Rig, dispatchId: string): Promise<void> {
  if (!(await rig.isRecorded(dispatchId))) return;
  expect((await rig.recorded(dispatchId)).diverged).toBeNull();
  if (rig.store instanceof FaultyStore) rig.store.plan = () => null;
  for await (const _ of recover(rig.store, { dryRun: false, now: 0 })) {
    // Its own writer is alive: nothing may be closed here.
    expect(_).toMatchObject({ kind: "skipped" });
  }
  expect((await rig.recorded(dispatchId)).verdict.allowed).toBe(false);
}

describe("a store that fails", () => {
  it("should not be asked to call anybody any more, once that is known", async () => {
    const clock = new VirtualClock();
    const { rig } = failing(fromNth(1, REFUSE), slowly(clock, "veto"), { clock });
    await rig.dispatch();
    expect(rig.calls.map(({ id }) => id)).toStrictEqual(["veto"]);
  });

  it("should keep a write-ahead subscriber from being called", async () => {
    const { rig } = failing(fromNth(1, REFUSE), [{ mode: "veto", does: allow, recording: "write-ahead" }]);
    const result = await rig.dispatch();
    expect(rig.calls).toHaveLength(0);
    expect(result).toMatchObject({ status: "aborted", abortCause: "store_unavailable", hookErrors: [] });
  });

  it("should not keep it from being called where the operator said continue", async () => {
    const settings = { onStoreFailure: "continue" as const };
    const chain: Part[] = [{ mode: "observe", does: ack, recording: "write-ahead" }];
    const { rig } = failing(fromNth(1, REFUSE), chain, { point: "session-end", settings });
    expect(await rig.dispatch()).toMatchObject({ status: "decided", allowed: true, recorded: false });
    expect(rig.calls).toHaveLength(1);
  });

  it("should never make anybody wait for a detached write-ahead observer that is not called", async () => {
    const settings = { observeConcurrency: "detached" as const };
    const chain: Part[] = [{ mode: "observe", does: ack, recording: "write-ahead" }];
    const { rig } = failing(fromNth(1, REFUSE), chain, { settings });
    expect(await rig.dispatch()).toMatchObject({ status: "aborted", recorded: false });
    expect(await isSettled(rig.dispatcher.idle())).toBe(true);
    expect(rig.calls).toHaveLength(0);
  });
});

describe("a decision that the ledger may or may not hold", () => {
  it("should be taken back as unconfirmed when it is there after all", async () => {
    const { rig } = failing(onlyNth(1, LOST_REPLY), [{ mode: "veto", does: allow }]);
    const result = await rig.dispatch();
    expect(result).toMatchObject({ status: "aborted", abortCause: "unconfirmed", allowed: false, recorded: false });
    const { told, diverged, verdict } = await rig.recorded(result.dispatchId);
    expect(told).toStrictEqual([
      "started",
      "invoked 0",
      "allow 0",
      "decided allow by kernel:default",
      "aborted unconfirmed",
    ]);
    expect(diverged).toBeNull();
    expect(verdict.allowed).toBe(false);
  });

  it("should be taken back also when it is a deny: the caller knows no verdict", async () => {
    const { rig } = failing(onlyNth(1, LOST_REPLY), [{ mode: "veto", does: deny }]);
    const result = await rig.dispatch();
    expect(result).toMatchObject({ status: "aborted", abortCause: "unconfirmed", allowed: false });
    expect((await rig.recorded(result.dispatchId)).told.slice(-2)).toStrictEqual([
      "decided deny by veto",
      "aborted unconfirmed",
    ]);
  });

  it("should be taken back though the taking back loses its reply too", async () => {
    const { rig } = failing((nth) => (nth <= 2 ? LOST_REPLY : null), [{ mode: "veto", does: allow }]);
    const result = await rig.dispatch();
    expect(result.abortCause).toBe("unconfirmed");
    expect((await rig.recorded(result.dispatchId)).told.at(-1)).toBe("aborted unconfirmed");
  });

  it("should be taken back though a late append got in between", async () => {
    const store = openMemoryStore();
    const faulty = new FaultyStore(store, onlyNth(2, { does: "lose the request" }));
    const clock = new VirtualClock();
    const rig = new Rig({ store: faulty, clock, chain: [{ mode: "veto", does: delayed(clock, 5, allow) }] });
    // The lost request arrives when the kernel has read the stream back.
    let reads = 0;
    faulty.beforeRead = () => {
      if (++reads === 1) queueMicrotask(() => void store.append(faulty.requests[1]!));
    };
    const result = await rig.dispatch();
    expect(result.allowed).toBe(false);
    const { told, verdict } = await rig.recorded(result.dispatchId);
    expect(told.at(-1)).toBe("aborted unconfirmed");
    expect(verdict.allowed).toBe(false);
  });

  it("should name the detached observers that were in flight when it is taken back", async () => {
    const settings = { observeConcurrency: "detached" as const };
    const { rig, clock } = failing(onlyNth(1, LOST_REPLY), [{ mode: "observe", does: never, timeoutMs: 7 }], {
      settings,
    });
    const result = rig.begin();
    await settled();
    const { dispatchId, abortCause } = await result;
    expect(abortCause).toBe("unconfirmed");
    expect(await isSettled(rig.dispatcher.idle())).toBe(false);
    await clock.run();
    expect(await isSettled(rig.dispatcher.idle())).toBe(true);
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told.at(-1)).toBe("aborted unconfirmed with 0");
    expect(diverged).toBeNull();
  });

  it("should be closed as store_unavailable when only a part of the log is there", async () => {
    const clock = new VirtualClock();
    const { rig } = failing(onlyNth(2, REFUSE), slowly(clock, "veto"), { clock });
    const { dispatchId, abortCause } = await rig.dispatch();
    expect(abortCause).toBe("store_unavailable");
    const { told, diverged } = await rig.recorded(dispatchId);
    expect(told).toStrictEqual(["started", "invoked 0", "aborted store_unavailable with 0"]);
    expect(diverged).toBeNull();
  });

  it("should be left to recovery when the ledger cannot be read back", async () => {
    const { rig, store } = failing(onlyNth(1, LOST_REPLY), [{ mode: "veto", does: allow }]);
    store.beforeRead = () => {
      throw new Error("gone");
    };
    expect(await rig.dispatch()).toMatchObject({ abortCause: "store_unavailable", allowed: false });
  });
});

describe("a stale process", () => {
  it("should not act when somebody else closed its dispatch, nor touch what they wrote", async () => {
    const { rig, store } = failing(
      () => null,
      [
        { mode: "veto", does: () => gate.promise },
        { mode: "veto", does: allow, recording: "write-ahead" },
      ],
    );
    const gate = new Later<typeof allow>();
    const result = rig.begin({ id: ID });
    await settled();
    const { events } = (await store.readStream(`hookdispatch-${ID}`))!;
    await openAndAbort(store, events.length);
    gate.resolve(allow);
    await rig.clock.run();
    expect(await result).toMatchObject({ status: "aborted", abortCause: "recovered", allowed: false, recorded: false });
    expect(rig.calls.map(({ id }) => id)).toStrictEqual(["veto"]);
    const { told, diverged } = await rig.recorded(ID);
    expect(told).toStrictEqual(["started", "invoked 0", "aborted recovered with 0"]);
    expect(diverged).toBeNull();
  });

  async function openAndAbort(store: FaultyStore, at: number): Promise<void> {
    const { appendLate } = await import("#src/store/record/late-append.js");
    const stream = (await store.readStream(`hookdispatch-${ID}`))!;
    expect(stream.events).toHaveLength(at);
    const moment = { engineVersion: "0.0.0", at: new Date(0).toISOString() };
    await appendLate(store, stream, ID, [{ type: "aborted", cause: "recovered", inFlight: [0] }], moment);
  }
});

describe("a store that does not answer", () => {
  it("should keep the caller waiting only as long as it is silent, and record the dispatch whole", async () => {
    const { rig, store } = failing(() => ({ does: "hang" }), [{ mode: "veto", does: allow }]);
    const result = rig.begin();
    expect(await isSettled(result)).toBe(false);
    store.plan = () => null;
    store.release();
    expect(await result).toMatchObject({ allowed: true, recorded: true });
  });
});
