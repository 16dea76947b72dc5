/**
 * One proof a line of the specification's list of faults that other dispatchers had: lines 1 to 13. Those that speak of a
 * subscriber's fault in general (2, 9, 10, 11 over the wire) are the tables beside this file.
 */
import { describe, expect, it } from "vitest";
import type { Payload } from "#src/payload/payload.js";
import { ack, allow, delayed, deny, never, type Part, Rig, recordedIn } from "../support/kernels.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { VirtualClock } from "../support/virtual-clock.js";
import { type Hosted, hosted, parse, said, saying } from "./hosted.js";

/** Adds a message. */
function adding(text: string) {
  return (call: { payload: Payload }) =>
    ({ class: "transformed", payload: saying(...said(call.payload), text) }) as const;
}

describe("line 1: an approval hook at its timeout", () => {
  it("should deny, with that category", async () => {
    const rig = new Rig({ chain: [{ mode: "veto", timeoutMs: 20, does: never }] });
    expect(await rig.dispatch()).toMatchObject({ decision: "deny", hookErrors: [{ category: "TIMEOUT" }] });
  });
});

describe("line 3: two rewrites", () => {
  it("should come to one result, whoever is slower", async () => {
    const results = await Promise.all(
      [
        [1, 50],
        [50, 1],
        [20, 20],
      ].map(async ([first = 0, second = 0]) => {
        const clock = new VirtualClock();
        const rig = new Rig({
          clock,
          point: "pre-model-call",
          chain: [
            { mode: "transform", does: delayed(clock, first, adding("a")) },
            { mode: "transform", does: delayed(clock, second, adding("b")) },
          ],
        });
        return said((await rig.dispatch({}, saying("input"))).payload);
      }),
    );
    expect(results).toStrictEqual(Array.from({ length: 3 }, () => ["input", "a", "b"]));
  });
});

describe("line 4: an empty reply behind a rewrite", () => {
  it("should erase nothing: the chain ends without a payload, and the rewrite is on record", async () => {
    const host: Hosted = {
      one: { "pre-model-call": { transform: ({ messages, ...rest }) => ({ ...rest, messages: messages.slice(1) }) } },
      two: { "pre-model-call": { transform: () => ({}) as never } },
    };
    const hooks = [
      ["one", "transform"],
      ["two", "transform"],
    ] as const;
    const { kernel, store } = await hosted("pre-model-call", hooks, host);
    const result = await kernel.dispatch(saying("secret", "rest"));
    expect(result).toMatchObject({
      abortCause: "hook_error",
      payload: null,
      hookErrors: [{ subscriber: "two", category: "INVALID_RESPONSE" }],
    });
    const { told } = await recordedIn(store, result.dispatchId);
    expect(told).toStrictEqual([
      "started",
      "invoked 0",
      "transformed 0",
      "invoked 1",
      "invalid INVALID_RESPONSE 1",
      "aborted hook_error",
    ]);
    await kernel.close();
  });

  it("should take emptied messages for the rewrite that they are", async () => {
    const host: Hosted = { one: { "pre-model-call": { transform: (payload) => ({ ...payload, messages: [] }) } } };
    const { kernel } = await hosted("pre-model-call", [["one", "transform"]], host);
    expect(said((await kernel.dispatch(saying("a"))).payload)).toStrictEqual([]);
    await kernel.close();
  });
});

describe("line 5: decision and payload", () => {
  it("should be folded apart from one another", async () => {
    const items = [{ id: "1" }, { id: "2" }] as const;
    const rig = new Rig({
      point: "plan-ready",
      policy: [],
      chain: [
        { mode: "transform", does: ({ payload }) => ({ class: "transformed", payload }) },
        { mode: "veto", does: deny },
      ],
    });
    const result = await rig.dispatch({}, { planReady: { plan: { turnId: "t", items } } });
    expect(result.decision).toBe("deny");
    // Policy's "ask" is stamped on what the denier judged, and so on what is handed back.
    expect(result.payload?.view).toMatchObject({
      plan: { items: [{ decision: "PLAN_DECISION_ASK" }, { decision: "PLAN_DECISION_ASK" }] },
    });
    expect(result.planDecisions).toMatchObject([{ policyDecision: "ask" }, { policyDecision: "ask" }]);
  });
});

describe("line 6: with several hooks", () => {
  it("should give each subscriber its own full payload", async () => {
    const rig = new Rig({
      chain: [
        { mode: "observe", does: ack },
        { mode: "observe", does: ack },
        { mode: "veto", does: allow },
        { mode: "veto", does: allow },
      ],
    });
    const { payload } = await rig.dispatch();
    expect(rig.calls).toHaveLength(4);
    for (const { call } of rig.calls) expect(call.payload.bytes).toStrictEqual(payload?.bytes);
  });
});

describe("line 7: a gate in front of a rewrite", () => {
  const text = (settings: string) => `
required_providers { a = { source = "host" } }
hook "plan-ready" {
  provider = "a"
  mode     = "veto"
  id       = "gate"
}
hook "plan-ready" {
  provider = "a"
  mode     = "transform"
  id       = "rewrite"
}
settings { ${settings} }
`;
  it("should be warned of, and refused under strict", async () => {
    expect(await parse(text(""))).toMatchObject({
      ok: true,
      warnings: [{ message: expect.stringContaining("transform") }],
    });
    expect(await parse(text("strict = true"))).toMatchObject({ ok: false });
  });

  it("should record with each verdict the digest that it judged", async () => {
    const rig = new Rig({
      point: "pre-model-call",
      chain: [
        { mode: "observe", does: ack },
        { mode: "transform", does: adding("b") },
        { mode: "observe", does: ack },
      ],
    });
    const result = await rig.dispatch({}, saying("a"));
    const { events } = await rig.recorded(result.dispatchId);
    const saw = events.flatMap((event) => (event.type === "subscriber-invoked" ? [event.saw] : []));
    expect(saw).toStrictEqual([saying("a"), saying("a"), saying("a", "b")].map(({ ref }) => ref.digest));
    expect(events.at(-1)).toMatchObject({ type: "decided", payload: saying("a", "b").ref.digest });
  });
});

describe("line 8: four ignorable hooks that use up the time", () => {
  const observers: Part[] = Array.from({ length: 4 }, () => ({ mode: "observe", timeoutMs: 1000, does: never }));
  const chain: Part[] = [...observers, { mode: "veto", does: allow }];

  it("should never change the outcome, one behind the other or side by side", async () => {
    for (const [observeConcurrency, takesMs] of [
      ["sequential", 4000],
      ["concurrent", 1000],
    ] as const) {
      const rig = new Rig({ settings: { observeConcurrency }, chain });
      expect(await rig.dispatch()).toMatchObject({ allowed: true, durationMs: takesMs });
    }
  });

  it("should be bounded by the chain's budget, all timeouts being on record", async () => {
    const rig = new Rig({ settings: { observeConcurrency: "sequential", chainBudgetMs: 1500 }, chain });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ allowed: false, decidedBy: "observe-1", durationMs: 1500 });
    const [started] = (await rig.recorded(result.dispatchId)).events;
    expect(started).toMatchObject({ budgetMs: 1500, subscribers: chain.map(() => ({ timeoutMs: 1000 })) });
  });
});

describe("line 11: no verdict", () => {
  it.each(["a missing key", "no answer in time", "nothing at all"])("should not be read as safe: %s", async (what) => {
    const verdicts = { "a missing key": {}, "nothing at all": undefined } as const;
    const veto = () =>
      (what === "no answer in time" ? new Promise(() => {}) : verdicts[what as keyof typeof verdicts]) as never;
    const { kernel } = await hosted(
      "pre-tool-call",
      [["gate", "veto"]],
      { gate: { "pre-tool-call": { veto } } },
      { timeoutMs: 30 },
    );
    expect(await kernel.dispatch(INPUTS["pre-tool-call"])).toMatchObject({ decision: "deny", decidedBy: "gate" });
    await kernel.close();
  });
});

describe("line 12: a hook that would never be called", () => {
  it.each([
    ["a mis-spelt point", "pre-tool-cal", "veto"],
    ["a mis-spelt mode", "pre-tool-call", "vetoo"],
    ["a veto where none counts", "post-tool-call", "veto"],
    ["a point that is served elsewhere", "context-assemble", "observe"],
  ])("should be a configuration error: %s", async (_, point, mode) => {
    await expect(hosted(point, [["a", mode]], { a: {} })).rejects.toMatchObject({ code: "HL_CONFIG" });
  });

  it("should be a load error where its handler is not there", async () => {
    await expect(hosted("pre-tool-call", [["a", "veto"]], { a: {} })).rejects.toMatchObject({
      code: "HL_SUBSCRIBER_LOAD",
    });
  });

  it("should stand in the record with the reason why it is skipped", async () => {
    const rig = new Rig({
      chain: [
        { mode: "veto", does: deny, skip: "not installed" },
        { mode: "veto", does: allow },
      ],
    });
    const result = await rig.dispatch();
    expect(result.allowed).toBe(true);
    const { events, told } = await rig.recorded(result.dispatchId);
    expect(events[0]).toMatchObject({ subscribers: [{ id: "veto", skip: "not installed" }, { id: "veto-1" }] });
    expect(told[1]).toBe("invoked 1");
  });
});

describe("line 13: a hook without a timeout", () => {
  it("should get the default one", async () => {
    const clock = new VirtualClock();
    const veto = () => new Promise<never>(() => {});
    const { kernel, store } = await hosted(
      "pre-tool-call",
      [["gate", "veto"]],
      { gate: { "pre-tool-call": { veto } } },
      { clock },
    );
    const result = kernel.dispatch(INPUTS["pre-tool-call"]);
    await clock.run();
    expect(await result).toMatchObject({ decision: "deny", reason: "TIMEOUT: no answer within 5000 ms" });
    expect((await recordedIn(store, (await result).dispatchId)).told[2]).toBe("timeout 0 after 5000");
    await kernel.close();
  });
});
