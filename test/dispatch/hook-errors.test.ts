import { describe, expect, it } from "vitest";
import type { ChainAnswer } from "#src/dispatch/chain.js";
import { ack, allow, delayed, keep, never, type Part, Rig } from "../support/kernels.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

function failing(message: string): ChainAnswer {
  return { class: "failed", error: { category: "UNKNOWN", message } };
}

const invalid: ChainAnswer = { class: "invalid", error: { category: "INVALID_RESPONSE", message: "nonsense" } };

describe("hook errors", () => {
  it("should be returned in chain order and reported as they happen, each once", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      chain: [
        { mode: "observe", id: "slow", does: delayed(clock, 30, failing("slow")) },
        { mode: "observe", id: "quick", does: delayed(clock, 10, failing("quick")) },
        { mode: "observe", id: "hung", timeoutMs: 20, does: never },
        { mode: "veto", id: "gate", does: invalid },
      ],
    });
    const { hookErrors, dispatchId, decidedBy } = await rig.dispatch();
    expect(hookErrors.map(({ subscriber }) => subscriber)).toStrictEqual(["slow", "quick", "hung", "gate"]);
    expect(rig.hookErrors.map(({ subscriber }) => subscriber)).toStrictEqual(["quick", "hung", "slow", "gate"]);
    expect(rig.hookErrors.every((error) => error.dispatchId === dispatchId)).toBe(true);
    expect(hookErrors.map(({ mode, category }) => `${mode} ${category}`)).toStrictEqual([
      "observe UNKNOWN",
      "observe UNKNOWN",
      "observe TIMEOUT",
      "veto INVALID_RESPONSE",
    ]);
    expect(decidedBy).toBe("gate");
    expect((await rig.recorded(dispatchId)).verdict.hookErrors).toStrictEqual(hookErrors);
  });

  it("should not come of an explicit DENY", async () => {
    const rig = new Rig({ chain: [{ mode: "veto", does: { class: "deny" } }] });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ decision: "deny", reason: null, hookErrors: [] });
    expect(rig.hookErrors).toHaveLength(0);
  });

  it("should be no more than a report for who runs in the shadow", async () => {
    const chain: Part[] = [
      { mode: "veto", shadow: true, does: { class: "deny" } },
      { mode: "transform", shadow: true, does: failing("no") },
      { mode: "veto", skip: "switched off", does: { class: "deny" } },
    ];
    const rig = new Rig({ chain });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ allowed: true, hookErrors: [{ subscriber: "transform-1" }] });
    expect(rig.calls).toHaveLength(2);
    expect((await rig.recorded(result.dispatchId)).events[0]).toMatchObject({
      subscribers: [{ shadow: true }, { shadow: true }, { skip: "switched off" }],
    });
  });

  it.each<[string, () => void]>([
    [
      "throws",
      () => {
        throw new Error("the callback broke");
      },
    ],
    [
      "throws what cannot be read",
      () => {
        throw Object.create(null, {
          message: {
            get: () => {
              throw 1;
            },
          },
        });
      },
    ],
    [
      "rejects",
      async () => {
        throw new Error("the callback broke");
      },
    ],
  ])("should change nothing when the callback %s", async (_, onHookError) => {
    const stray: unknown[] = [];
    const note = (reason: unknown) => stray.push(reason);
    process.on("unhandledRejection", note);
    const chain: Part[] = [
      { mode: "observe", does: failing("no") },
      { mode: "veto", does: allow },
    ];
    const rig = new Rig({ chain, parts: { onHookError } });
    const quiet = new Rig({ chain });
    const result = await rig.dispatch();
    const expected = await quiet.dispatch();
    await settled();
    process.off("unhandledRejection", note);
    expect(stray).toStrictEqual([]);
    expect(result.hookErrors).toStrictEqual(expected.hookErrors);
    expect(result.allowed).toBe(true);
    expect((await rig.recorded(result.dispatchId)).raw.map(({ data }) => data)).toStrictEqual(
      (await quiet.recorded(expected.dispatchId)).raw.map(({ data }) => data),
    );
    expect(rig.lines).toMatchObject([{ level: "warn", provider: "kernel" }]);
  });

  it("should change nothing when the log breaks, too", async () => {
    const breaks = () => {
      throw new Error("broken");
    };
    const rig = new Rig({
      chain: [{ mode: "observe", does: failing("no") }],
      parts: { onHookError: breaks, log: breaks },
    });
    expect(await rig.dispatch()).toMatchObject({ allowed: true });
  });
});

describe("a chain", () => {
  it("should be the same list in every dispatch, recorded whole", async () => {
    const rig = new Rig({
      chain: [
        { mode: "observe", does: ack },
        { mode: "veto", does: allow },
      ],
    });
    const [one, two] = [await rig.dispatch(), await rig.dispatch()];
    const [a, b] = [await rig.recorded(one.dispatchId), await rig.recorded(two.dispatchId)];
    expect(a.events[0]).toMatchObject({ subscribers: rig.chain.subscribers });
    expect(b.raw[0]!.data).toBe(a.raw[0]!.data.replace(one.dispatchId, two.dispatchId));
  });

  it("should hand its decision over with the digest of what was judged", async () => {
    const rig = new Rig({
      chain: [
        { mode: "transform", does: keep },
        { mode: "veto", does: allow },
      ],
    });
    const result = await rig.dispatch();
    const { events } = await rig.recorded(result.dispatchId);
    const judged = events.find((event) => event.type === "subscriber-invoked" && event.index === 1);
    expect(events.at(-1)).toMatchObject({ type: "decided", payload: result.payload?.ref.digest });
    expect(judged).toMatchObject({ saw: result.payload?.ref.digest });
  });
});

describe("a fault of the dispatcher itself", () => {
  it.each<[string, Part["mode"], ChainAnswer]>([
    ["an answer of another mode", "veto", { class: "ack" }],
    ["an allow of an observer", "observe", { class: "allow" }],
  ])("should reject the dispatch, and allow nothing: %s", async (_, mode, does) => {
    const rig = new Rig({
      chain: [
        { mode: "observe", does: never },
        { mode, does },
      ],
    });
    await expect(rig.dispatch()).rejects.toMatchObject({ code: "HL_INTERNAL" });
    await rig.dispatcher.idle();
    expect(rig.calls[0]!.call.signal.aborted).toBe(true);
  });

  it("should be said when it comes after the decision", async () => {
    const clock = new VirtualClock();
    const rig = new Rig({
      clock,
      settings: { observeConcurrency: "detached" },
      chain: [{ mode: "observe", does: delayed(clock, 5, allow) }],
    });
    const { allowed } = await rig.dispatch();
    expect(allowed).toBe(true);
    await rig.dispatcher.idle();
    expect(rig.lines).toMatchObject([{ level: "error", message: expect.stringContaining("HL_INTERNAL") }]);
  });
});
