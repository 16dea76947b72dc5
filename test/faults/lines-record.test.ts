/**
 * One proof a line of the specification's list of faults that other dispatchers had: lines 16 to 30. What the ledger owes (28, 29)
 * is also searched for beside the dispatcher's tests; 14, 15 and 25 speak of plugin subprocesses.
 */
import { describe, expect, it } from "vitest";
import { recover } from "#src/replay/recover.js";
import { replayStream } from "#src/replay/replay.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { FaultyStore, fromNth, REFUSE } from "../support/faulty-store.js";
import { ack, allow, deny, never, type Part, Rig, recordedIn } from "../support/kernels.js";
import { blobOf } from "../support/store-fixtures.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { Observatory } from "../support/tracing.js";
import { settled } from "../support/virtual-clock.js";
import { type Hosted, hosted, said, saying } from "./hosted.js";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

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
    const observatory = new Observatory();
    const { meter } = observatory;
    const gate: HookHandlers = { "pre-tool-call": { veto } };
    const { kernel, store } = await hosted("pre-tool-call", [["gate", "veto"]], { gate }, { meter });
    const result = await kernel.dispatch(INPUTS["pre-tool-call"]);
    expect(result).toMatchObject({ decision: "deny", hookErrors: [] });
    expect((await recordedIn(store, result.dispatchId)).told).toHaveLength(4);
    await kernel.close();
    const counted = (await observatory.metrics()).get("hookledger.hook.extra_answers")!;
    expect(counted.points.map(({ value }) => value)).toStrictEqual([2]);
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
        await copy(after, stream, events, await blobOf(ledger, crashed.configBlob.digest));
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
