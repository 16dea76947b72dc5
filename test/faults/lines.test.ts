/**
 * One proof a line of the specification's list of faults that other dispatchers had. The lines that speak of a subscriber's
 * fault in general (1, 2, 9, 10, 11, 16 over the wire) are the tables beside this file; 14, 15 and 25 speak of plugin subprocesses.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfig } from "#src/config/load.js";
import { createKernel, type KernelOptions } from "#src/dispatch/kernel.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import { recover } from "#src/replay/recover.js";
import { replayStream } from "#src/replay/replay.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { FaultyStore, fromNth, REFUSE } from "../support/faulty-store.js";
import { ack, allow, delayed, deny, never, type Part, Rig, recordedIn } from "../support/kernels.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
let folder: string;
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hookledger-lines-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function hcl(text: string): Promise<string> {
  const path = join(folder, `${files++}.hcl`);
  await writeFile(path, text);
  return path;
}

type Hosted = { readonly [name: string]: HookHandlers };

/** One host provider a name, each with the hook of the mode it is paired with. */
async function hosted(
  point: string,
  hooks: readonly (readonly [name: string, mode: string])[],
  host: Hosted,
  options: Partial<KernelOptions> & { readonly settings?: string; readonly timeoutMs?: number } = {},
) {
  const { settings = "", timeoutMs, ...rest } = options;
  const providers = hooks.map(([name]) => `  ${name} = { source = "host" }\n`).join("");
  const timeout = timeoutMs === undefined ? "" : `  timeout_ms = ${timeoutMs}\n`;
  const blocks = hooks.map(
    ([name, mode]) => `hook "${point}" {\n  provider = "${name}"\n  mode = "${mode}"\n${timeout}}\n`,
  );
  const config = await hcl(`required_providers {\n${providers}}\n${blocks.join("")}settings {\n${settings}\n}\n`);
  const store: EventStore = typeof rest.store === "object" ? rest.store : openMemoryStore();
  return { store, kernel: await createKernel({ config, host, ...rest, store }) };
}

const { model } = INPUTS["pre-model-call"].preModelCall;
function saying(...texts: readonly string[]): Payload {
  return payloadFromView({
    preModelCall: {
      messages: texts.map((text) => ({ role: "ROLE_USER", content: [{ text: { text } }], id: text })),
      model,
    },
  });
}
function said(payload: Payload | null): string[] {
  const { messages } = (payload?.view ?? { messages: [] }) as { messages: { id: string }[] };
  return messages.map(({ id }) => id);
}
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
    expect(await loadConfig(await hcl(text("")))).toMatchObject({
      ok: true,
      warnings: [{ message: expect.stringContaining("transform") }],
    });
    expect(await loadConfig(await hcl(text("strict = true")))).toMatchObject({ ok: false });
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

describe("line 16: signals that contradict each other", () => {
  it("should deny", async () => {
    const veto = () => ({ decision: "allow", deny: true, reason: "blocked" }) as never;
    const { kernel } = await hosted("pre-tool-call", [["gate", "veto"]], { gate: { "pre-tool-call": { veto } } });
    expect(await kernel.dispatch(INPUTS["pre-tool-call"])).toMatchObject({ decision: "deny", allowed: false });
    await kernel.close();
  });
});

describe("line 17: an allow behind a deny", () => {
  it("should loosen nothing, and not even be asked for", async () => {
    const rig = new Rig({
      chain: [
        { mode: "veto", does: deny },
        { mode: "veto", does: allow },
        { mode: "observe", does: ack },
      ],
    });
    expect(await rig.dispatch()).toMatchObject({ decision: "deny", decidedBy: "veto" });
    expect(rig.calls).toHaveLength(1);
  });
});

describe("line 18: a timeout", () => {
  it("should keep its name everywhere: it is nobody's refusal", async () => {
    const rig = new Rig({ chain: [{ mode: "veto", timeoutMs: 20, does: never }] });
    const result = await rig.dispatch();
    const { verdict, events } = await rig.recorded(result.dispatchId);
    for (const { reason, hookErrors } of [result, verdict]) {
      expect(reason).toBe("TIMEOUT: no answer within 20 ms");
      expect(hookErrors).toMatchObject([{ category: "TIMEOUT" }]);
    }
    expect(rig.hookErrors).toMatchObject([{ category: "TIMEOUT" }]);
    expect(events.map(({ type }) => type)).toContain("timeout");
  });
});

describe("line 19: a resume", () => {
  it("should not fire hooks twice under one id", async () => {
    const store = openMemoryStore();
    const chain: Part[] = [{ mode: "veto", does: allow }];
    const rigs = [new Rig({ store, chain }), new Rig({ store, chain }), new Rig({ store, chain })];
    for (const rig of rigs) expect(await rig.dispatch({ id: ID })).toMatchObject({ allowed: true });
    expect(rigs.map(({ calls }) => calls.length)).toStrictEqual([1, 0, 0]);
    expect((await rigs[0]!.recorded(ID)).told).toHaveLength(4);
  });
});

describe("line 20: a handler that takes itself away", () => {
  it("should make no other skip: the chain is frozen", async () => {
    const called: string[] = [];
    const host: { [name: string]: HookHandlers } = {
      one: {
        "pre-tool-call": {
          observe() {
            called.push("one");
            delete host["one"];
            delete host["two"];
            host["three"] = {};
          },
        },
      },
      two: { "pre-tool-call": { observe: () => called.push("two") } },
      three: { "pre-tool-call": { veto: () => "deny" } },
    };
    const hooks = [
      ["one", "observe"],
      ["two", "observe"],
      ["three", "veto"],
    ] as const;
    const { kernel } = await hosted("pre-tool-call", hooks, host);
    for (let i = 0; i < 2; i++) {
      expect(await kernel.dispatch(INPUTS["pre-tool-call"])).toMatchObject({ decision: "deny", decidedBy: "three" });
    }
    expect(called).toStrictEqual(["one", "two", "one", "two"]);
    await kernel.close();
  });
});

describe("line 21: a handler that settles twice", () => {
  it("should have answered once", async () => {
    const settlesTwice = (resolve: (verdict: string) => void, reject: (error: Error) => void) => {
      resolve("deny");
      resolve("allow");
      reject(new Error("and it failed"));
      throw new Error("and threw");
    };
    const veto = () => {
      const answer: object = {};
      Reflect.set(answer, "then", settlesTwice);
      return answer as PromiseLike<"deny">;
    };
    const { kernel, store } = await hosted("pre-tool-call", [["gate", "veto"]], {
      gate: { "pre-tool-call": { veto } },
    });
    const result = await kernel.dispatch(INPUTS["pre-tool-call"]);
    expect(result).toMatchObject({ decision: "deny", hookErrors: [] });
    expect((await recordedIn(store, result.dispatchId)).told).toHaveLength(4);
    await kernel.close();
  });
});

describe("line 22: an edit in place", () => {
  it("should reach nobody: only what is returned counts", async () => {
    const seen: unknown[] = [];
    const host: Hosted = {
      edits: {
        "pre-model-call": {
          transform(payload) {
            Reflect.set(payload.messages, 0, { role: "ROLE_USER", content: [], id: "evil" });
            Reflect.set(payload, "messages", []);
            return payload;
          },
        },
      },
      looks: { "pre-model-call": { observe: (payload) => seen.push(payload.messages.map(({ id }) => id)) } },
    };
    const { kernel } = await hosted(
      "pre-model-call",
      [
        ["edits", "transform"],
        ["looks", "observe"],
      ],
      host,
    );
    const result = await kernel.dispatch(saying("a"));
    expect(said(result.payload)).toStrictEqual(["a"]);
    expect(seen).toStrictEqual([["a"]]);
    await kernel.close();
  });
});

describe("line 23: a decision", () => {
  it("should be on record before the caller knows it, and the call before a subscriber with effects acts", async () => {
    const store = new FaultyStore(openMemoryStore());
    const recorded: string[][] = [];
    const look = async () => {
      const found = await store.readStream(`hookdispatch-${ID}`);
      recorded.push((found?.events ?? []).map(({ type }) => type));
    };
    const rig = new Rig({
      store,
      chain: [
        {
          mode: "veto",
          recording: "write-ahead",
          does: async () => {
            await look();
            return allow;
          },
        },
      ],
    });
    await rig.dispatch({ id: ID });
    await look();
    expect(recorded).toStrictEqual([
      ["started", "subscriber-invoked"],
      ["started", "subscriber-invoked", "outcome", "decided"],
    ]);
  });
});

describe("line 24: a ledger that takes nothing", () => {
  it("should have a cause of its own, and say so", async () => {
    const store = new FaultyStore(openMemoryStore(), fromNth(1, { does: "refuse", code: "HL_STORE_FULL" }));
    const rig = new Rig({ store, chain: [{ mode: "veto", does: allow }] });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ abortCause: "store_unavailable", hookErrors: [], recorded: false });
    expect(result.reason).toContain("HL_STORE_FULL");
    expect(rig.lines).toMatchObject([{ level: "error", message: expect.stringContaining("HL_STORE_FULL") }]);
  });
});

describe("lines 26 and 27: a crash in the middle of a call", () => {
  it("should leave a record that replays, calls nobody, and says that an answer is missing; recovery closes it, and nothing is done again", async () => {
    const ledger = openMemoryStore();
    const store = new FaultyStore(ledger);
    const effects: string[] = [];
    const effect: Part = {
      mode: "veto",
      recording: "write-ahead",
      does: () => {
        effects.push("done");
        return allow;
      },
    };
    const crashed = new Rig({ store, chain: [effect, { mode: "veto", does: never }] });
    // The process dies: nothing more is written.
    const lost = crashed.begin({ id: ID });
    lost.catch(() => {});
    store.plan = (nth) => (nth > 2 ? REFUSE : null);
    await settled();
    expect(effects).toHaveLength(1);

    const after = openMemoryStore();
    for await (const page of ledger.readStreams({ order: "oldest" })) {
      for (const { stream, events } of page)
        await copy(after, stream, events, await ledger.readBlob(crashed.configBlob.digest));
    }
    const found = (await after.readStream(`hookdispatch-${ID}`))!;
    const replayed = replayStream(found);
    expect(replayed).toMatchObject({ verdict: { status: "open", allowed: false, decision: null } });
    const next = new Rig({ store: after, chain: [effect] });
    await expect(next.begin({ id: ID })).rejects.toMatchObject({ code: "HL_DISPATCH_OPEN" });
    const closed = [];
    for await (const each of recover(after, { dryRun: false, now: 0 })) closed.push(each);
    expect(closed).toMatchObject([{ kind: "closed", status: "aborted", cause: "recovered" }]);
    expect(await next.dispatch({ id: ID })).toMatchObject({ abortCause: "recovered", allowed: false });
    expect(effects).toHaveLength(1);
    expect((await next.recorded(ID)).diverged).toBeNull();
    await crashed.clock.run();
  });

  type Events = NonNullable<Awaited<ReturnType<EventStore["readStream"]>>>["events"];
  async function copy(to: EventStore, stream: `hookdispatch-${string}`, events: Events, config: Uint8Array | null) {
    const first = JSON.parse(events[0]!.data) as { configDigest: `sha256:${string}` };
    const drafts = events.map(({ id, type, data, metadata }) => {
      const { chain: _, payloads, ...rest } = JSON.parse(metadata);
      const draft = { id, type: type as "started", data, metadata: JSON.stringify(rest) };
      return payloads === undefined ? draft : { ...draft, payloads: JSON.stringify(payloads) };
    });
    const blobs = config === null ? [] : [{ digest: first.configDigest, bytes: config }];
    await to.append({ stream, expected: "none", events: drafts, barrier: true, blobs });
  }
});

describe("line 30: an error's stack and place", () => {
  it("should be in no record, so that two machines record the same", async () => {
    const at = (path: string) => () => {
      const error = new Error("it broke");
      error.stack = `Error: it broke\n    at ${path}:1:1`;
      throw error;
    };
    const texts = await Promise.all(
      ["/home/one/a.js", "C:\\two\\b.js"].map(async (path) => {
        const { kernel, store } = await hosted(
          "pre-tool-call",
          [["gate", "veto"]],
          { gate: { "pre-tool-call": { veto: at(path) } } },
          { newId: () => ID },
        );
        await kernel.dispatch(INPUTS["pre-tool-call"]);
        await kernel.close();
        return (await recordedIn(store, ID)).raw.map(({ data }) => data);
      }),
    );
    expect(texts[0]!.slice(1)).toStrictEqual(texts[1]!.slice(1));
    expect(texts.join()).not.toMatch(/home|two/);
  });
});
