import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createMessageHooks, type MessageHooks, type MessageHooksOptions } from "#src/messages/create.js";
import { definePlugin, type MessagePlugin, type PluginApi } from "#src/messages/plugin.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { decodeEvent } from "#src/store/record/decode.js";
import { FaultyStore, fromNth, REFUSE } from "../support/faulty-store.js";
import { temporaryFolder } from "../support/store-fixtures.js";

const SENDING = { to: "+49", content: "original" };
const CTX = { channelId: "test", sessionKey: "s-1", runId: "r-1" };

let store: EventStore;
const open: MessageHooks[] = [];
beforeEach(() => {
  store = openMemoryStore();
});
afterEach(async () => {
  for (const hooks of open.splice(0)) await hooks.close();
});

async function hooksWith(
  plugins: readonly MessagePlugin[],
  options: Partial<MessageHooksOptions> = {},
): Promise<MessageHooks> {
  const hooks = await createMessageHooks({ store, plugins, ...options });
  open.push(hooks);
  return hooks;
}

function plugin(id: string, register: MessagePlugin["register"]): MessagePlugin {
  return definePlugin({ id, register });
}

async function told(dispatchId: string | null): Promise<string[]> {
  const stream = await store.readStream(`hookdispatch-${dispatchId}`);
  return (stream?.events ?? []).map(({ type, data }) => {
    const decoded = decodeEvent(type, data);
    if (!("event" in decoded)) throw new Error(decoded.found);
    const { event } = decoded;
    return event.type === "outcome" ? `${event.index} ${event.class}` : event.type;
  });
}

function never(): never {
  throw new Error("must not be asked");
}

describe("runs of message_sending", () => {
  it("should give each handler the original, and let the last content win", async () => {
    const seen: string[] = [];
    const { runs } = await hooksWith([
      plugin("a", (api) => {
        api.on("message_sending", (event) => {
          seen.push(event.content);
          return { content: "from a" };
        });
      }),
      plugin("b", (api) => {
        api.on("message_sending", (event) => {
          seen.push(event.content);
          return { content: "" };
        });
      }),
    ]);
    const run = await runs.rewrite(SENDING, CTX);
    expect(seen).toEqual(["original", "original"]);
    expect(run).toMatchObject({ end: "sent", content: "", recorded: true, failures: [] });
    expect(await told(run.dispatchId)).toEqual([
      "started",
      "subscriber-invoked",
      "0 rewritten",
      "subscriber-invoked",
      "1 rewritten",
      "decided",
    ]);
  });

  it("should cancel on true only, and ask nobody after that", async () => {
    const { runs } = await hooksWith([
      plugin("a", (api) => {
        api.on("message_sending", () => ({ cancel: false, cancelReason: "kept" }));
        api.on("message_sending", () => ({ cancel: true, metadata: { rule: 7 }, content: "never sent" }));
        api.on("message_sending", () => {
          throw new Error("asked");
        });
      }),
    ]);
    const run = await runs.rewrite(SENDING, CTX);
    expect(run).toMatchObject({
      end: "cancelled",
      by: "a:2",
      cancelReason: "kept",
      metadata: { rule: 7 },
      failures: [],
    });
  });

  it("should go on behind a handler that fails, and block only where the operator says so", async () => {
    const failing = plugin("a", (api) => {
      api.on("message_sending", async () => {
        throw new Error("boom");
      });
      api.on("message_sending", () => ({ content: "rewritten" }));
    });
    const open = await (await hooksWith([failing])).runs.rewrite(SENDING, CTX);
    expect(open).toMatchObject({ end: "sent", content: "rewritten", failures: [{ subscriber: "a", message: "boom" }] });
    const { runs } = await hooksWith([failing], { hooks: { onFailure: { message_sending: "block" } } });
    expect(await runs.rewrite(SENDING, CTX)).toMatchObject({ end: "blocked", by: "a" });
  });

  it("should hand on what a handler returned as it was then, whatever the handler does to it later", async () => {
    const counted = { seen: { times: 0 } };
    const { runs } = await hooksWith([
      plugin(
        "a",
        (api) =>
          void api.on("message_sending", () => {
            counted.seen.times++;
            return { cancel: true, metadata: counted };
          }),
      ),
    ]);
    const both = [await runs.rewrite(SENDING, CTX), await runs.rewrite(SENDING, CTX)];
    expect(both).toMatchObject([{ metadata: { seen: { times: 1 } } }, { metadata: { seen: { times: 2 } } }]);
  });

  it("should be no run where nobody is to be asked", async () => {
    const { runs } = await hooksWith([]);
    expect(await runs.rewrite(SENDING, CTX)).toMatchObject({ end: "sent", content: "original", dispatchId: null });
  });
});

describe("runs of reply_payload_sending", () => {
  it("should hand each handler what the one before it made, without the host's trust", async () => {
    const seen: unknown[] = [];
    const { runs } = await hooksWith([
      plugin("low", (api) => {
        api.on("reply_payload_sending", ({ payload }) => void seen.push(payload), { priority: -1 });
      }),
      plugin("high", (api) => {
        api.on("reply_payload_sending", ({ payload }) => {
          seen.push(payload);
          return { payload: { text: "new", trustedLocalMedia: true } as object };
        });
      }),
    ]);
    const run = await runs.waterfall({ payload: { text: "old", mediaUrl: "m" }, kind: "final" }, CTX);
    expect(seen).toEqual([{ text: "old", mediaUrl: "m" }, { text: "new" }]);
    expect(run).toMatchObject({ end: "sent", payload: { text: "new" } });
  });

  it.each([
    ["null", null],
    ["a function in it", { text: "x", on: () => {} }],
    ["no object", "text"],
  ])("should count a payload that is %s as a failure", async (_, payload) => {
    const { runs } = await hooksWith([
      plugin("a", (api) => void api.on("reply_payload_sending", () => ({ payload }) as object)),
    ]);
    const run = await runs.waterfall({ payload: { text: "old" }, kind: "final" }, CTX);
    expect(run).toMatchObject({ end: "sent", payload: { text: "old" }, failures: [{ subscriber: "a" }] });
  });
});

describe("claims and notifications", () => {
  it("should return the first handled result as it is, and ask nobody after it", async () => {
    const result = { handled: true, text: "hi", extra: new Map() };
    const { runs } = await hooksWith([
      plugin("a", (api) => void api.on("before_dispatch", () => ({ handled: false, text: "dropped" }))),
      plugin("b", (api) => void api.on("before_dispatch", () => result)),
      plugin("c", (api) => {
        api.on("before_dispatch", () => {
          throw new Error("asked");
        });
      }),
    ]);
    const run = await runs.claim("before_dispatch", { content: "x" }, {});
    expect(run).toMatchObject({ end: "claimed", by: "b", failures: [] });
    expect(run.end === "claimed" && run.result).toBe(result);
  });

  it.each([
    ["throws", { has: () => never() }],
    ["denies everything", { has: () => false }],
    ["cannot be listed", { ownKeys: () => never() }],
  ])(
    "should return a handled result as it is, and record it, also where it %s when it is looked into",
    async (_, trap) => {
      const result = new Proxy({ handled: true, text: "mine" }, trap);
      const { runs } = await hooksWith([plugin("a", (api) => void api.on("before_dispatch", () => result))]);
      const run = await runs.claim("before_dispatch", { content: "x" }, {});
      expect(run).toMatchObject({ end: "claimed", by: "a", recorded: true });
      expect(run.end === "claimed" && run.result === result).toBe(true);
      expect(await told(run.dispatchId)).toEqual(["started", "subscriber-invoked", "0 claimed", "decided"]);
    },
  );

  it("should give each handler its own copy of the context as well", async () => {
    const rooms = ["1"];
    const owner = { pluginId: "a", rooms };
    const seen: unknown[] = [];
    const { runs } = await hooksWith([
      plugin("a", (api) => {
        api.on("inbound_claim", (_, { pluginBinding }) => {
          Object.assign(pluginBinding ?? {}, { pluginId: "b" });
          Object.assign(pluginBinding?.["rooms"] ?? {}, { 1: "2" });
        });
        api.on("inbound_claim", (_, { pluginBinding }) => void seen.push(pluginBinding));
      }),
    ]);
    const event = { content: "x", channel: "test", isGroup: false };
    await runs.claim("inbound_claim", event, { ...CTX, pluginBinding: owner });
    expect(seen).toEqual([{ pluginId: "a", rooms: ["1"] }]);
    expect([owner, rooms]).toEqual([{ pluginId: "a", rooms }, ["1"]]);
  });

  it("should start everybody before anybody is waited for", async () => {
    const order: string[] = [];
    const handler = (name: string) => async () => {
      order.push(`${name} starts`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
    };
    const { runs } = await hooksWith([
      plugin("a", (api) => void api.on("message_sent", handler("a"))),
      plugin("b", (api) => void api.on("message_sent", handler("b"))),
    ]);
    await runs.notify("message_sent", { to: "x", content: "y", success: true }, CTX);
    expect(order).toEqual(["a starts", "b starts", "a ends", "b ends"]);
  });

  it("should record runs that replay and verify, also of what has no JSON form", async () => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    const { runs } = await hooksWith([
      plugin(
        "a",
        (api) => void api.on("before_dispatch", () => ({ handled: true, cyclic, big: 1n, bytes: Buffer.of(1) })),
      ),
    ]);
    await runs.claim("before_dispatch", { content: "x", ...{ cyclic, no: Number.NaN } }, {});
    for await (const part of verifyAll(store, undefined, 1)) expect(part).toMatchObject({ checked: 1, open: 0 });
  });
});

describe("a handler that fails", () => {
  it("should be told to the log with its hook, its id and what it said, redacted", async () => {
    const lines: string[] = [];
    const failing = plugin("a", (api) => {
      api.on("message_sent", () => {
        throw new Error("no entry for hunter2");
      });
      api.on("message_sent", () => Promise.reject(new Error("gone")));
    });
    const log: MessageHooksOptions["log"] = ({ level, message }) => lines.push(`${level} ${message}`);
    const { runs } = await hooksWith([failing], { log, secrets: ["hunter2"] });
    await runs.notify("message_sent", { to: "x", content: "y", success: true }, CTX);
    expect(lines).toEqual([
      "warn message_sent: handler a failed (UNKNOWN): no entry for [redacted]",
      "warn message_sent: handler a:2 failed (UNKNOWN): gone",
    ]);
  });

  it.each(["resolves", "rejects"])(
    "should count for nothing when it %s after its time, and leave nothing unhandled",
    async (how) => {
      const unhandled: unknown[] = [];
      const note = (reason: unknown): void => void unhandled.push(reason);
      process.on("unhandledRejection", note);
      let settle = (): void => {};
      const { runs } = await hooksWith([
        plugin("a", (api) => {
          api.on(
            "message_sending",
            () =>
              new Promise((resolve, reject) => {
                settle = () => (how === "resolves" ? resolve({ cancel: true }) : reject(new Error("late")));
              }),
            { timeoutMs: 1 },
          );
          api.on("message_sending", () => ({ content: "next" }));
        }),
      ]);
      const run = await runs.rewrite(SENDING, CTX);
      const before = await told(run.dispatchId);
      settle();
      await new Promise((resolve) => setImmediate(resolve));
      process.off("unhandledRejection", note);
      expect(run).toMatchObject({ end: "sent", content: "next", failures: [{ subscriber: "a", category: "TIMEOUT" }] });
      expect([unhandled, await told(run.dispatchId)]).toEqual([[], before]);
    },
  );
});

describe("a ledger that fails", () => {
  it("should change nothing of what any run comes to, and be flagged", async () => {
    const { runs } = await hooksWith(
      [
        plugin("a", (api) => {
          api.on("before_dispatch", () => ({ handled: true, text: "mine" }));
          api.on("message_sending", () => ({ cancel: true }));
          api.on("reply_payload_sending", () => ({ payload: { text: "new" } }));
          api.on("message_sent", () => {});
        }),
      ],
      { store: new FaultyStore(store, fromNth(1, REFUSE)) },
    );
    const flagged = { recorded: false, storeError: expect.any(String), failures: [] };
    expect([
      await runs.claim("before_dispatch", { content: "x" }, {}),
      await runs.rewrite(SENDING, CTX),
      await runs.waterfall({ payload: { text: "old" }, kind: "final" }, CTX),
      await runs.notify("message_sent", { to: "x", content: "y", success: true }, CTX),
    ]).toMatchObject([
      { ...flagged, end: "claimed", result: { text: "mine" } },
      { ...flagged, end: "cancelled", by: "a" },
      { ...flagged, end: "sent", payload: { text: "new" } },
      { ...flagged, end: "notified" },
    ]);
  });
});

describe("what the operator says", () => {
  it.each<[string, object, string]>([
    ["a time for no hook", { timeouts: { message_sendng: 5 } }, 'hooks.timeouts: "message_sendng" is no hook'],
    ["a failure of no hook", { onFailure: { message_sendng: "block" } }, '"message_sendng" is no sending hook'],
    ["a failure that cannot block", { onFailure: { message_sent: "block" } }, '"message_sent" is no sending hook'],
    ["a failure of a member of every object", { onFailure: { constructor: "block" } }, '"constructor" is no sending'],
    ["a failure that is neither", { onFailure: { message_sending: "Block" } }, 'neither "continue" nor "block"'],
  ])("should be refused where it is %s", async (_, hooks, message) => {
    await expect(hooksWith([], { hooks })).rejects.toMatchObject({
      code: "HL_CONFIG",
      message: expect.stringContaining(message),
    });
  });

  it("should count as it was said, whatever becomes of the object, and not at all where it is null", async () => {
    const onFailure: { message_sending?: "block" } = { message_sending: "block" };
    const { runs } = await hooksWith(
      [plugin("a", (api) => void api.on("message_sending", () => Promise.reject(new Error("boom"))))],
      { hooks: { onFailure, ...JSON.parse('{"timeouts": null}') } },
    );
    delete onFailure.message_sending;
    expect(await runs.rewrite(SENDING, CTX)).toMatchObject({ end: "blocked" });
  });
});

describe("a host without a store", () => {
  it("should be told so when it starts", async () => {
    const options: Partial<MessageHooksOptions> = {};
    await expect(createMessageHooks(options as MessageHooksOptions)).rejects.toMatchObject({
      code: "HL_CONFIG",
      message: "there is no store",
    });
  });
});

describe("the time that a handler has", () => {
  const SOME = { timeoutMs: 200, timeouts: { message_sending: 100 } };
  it.each<[string, NonNullable<MessageHooksOptions["hooks"]>, number | undefined, number | null]>([
    ["the operator's for the hook before the operator's for all, and that before its own", SOME, 300, 100],
    ["the operator's for all hooks before its own", { timeoutMs: 200 }, 300, 200],
    ["its own before the hook's", {}, 300, 300],
    ["the hook's where nobody says anything", {}, undefined, 15_000],
    ["at most 600 000 ms", { timeoutMs: 600_001, timeouts: { message_sending: 600_000 } }, 300, 600_000],
    ["whatever counts where the rest is none", { timeoutMs: -1, timeouts: { message_sending: Number.NaN } }, 300, 300],
    ["whatever counts, infinity being none", { timeoutMs: Number.POSITIVE_INFINITY }, 0, 15_000],
  ])("should be %s", async (_, hooks, timeoutMs, expected) => {
    const options = timeoutMs === undefined ? {} : { timeoutMs };
    const { runs } = await hooksWith([plugin("a", (api) => void api.on("message_sending", () => null, options))], {
      hooks,
    });
    expect(await timeoutIn((await runs.rewrite(SENDING, CTX)).dispatchId)).toBe(expected);
  });

  it("should be without a limit for hooks that do not send", async () => {
    const { runs } = await hooksWith([plugin("a", (api) => void api.on("before_dispatch", () => null))]);
    expect(await timeoutIn((await runs.claim("before_dispatch", { content: "x" }, {})).dispatchId)).toBeNull();
  });
});

/** ms of the first handler, as it is recorded. */
async function timeoutIn(dispatchId: string | null): Promise<number | null | undefined> {
  const [first] = (await store.readStream(`hookdispatch-${dispatchId}`))?.events ?? [];
  const decoded = first === undefined ? null : decodeEvent(first.type, first.data);
  if (decoded === null || !("event" in decoded) || decoded.event.type !== "started") throw new Error("no start");
  return decoded.event.subscribers[0]?.timeoutMs;
}

describe("closing and starting again", () => {
  it("should not wait for ever for a handler that never ends", async () => {
    const lines: string[] = [];
    const hung = plugin("hung", (api) => void api.on("message_received", () => new Promise(() => {})));
    const hooks = await createMessageHooks({
      store,
      plugins: [hung],
      closeTimeoutMs: 20,
      log: ({ message }) => lines.push(message),
    });
    const run = hooks.runs.notify("message_received", { from: "x", content: "y" }, CTX);
    await hooks.close();
    expect(lines).toEqual(["1 runs have not ended within 20 ms, and are aborted"]);
    const { end, dispatchId } = await run;
    expect([end, await told(dispatchId)]).toEqual(["aborted", ["started", "subscriber-invoked", "aborted"]]);
  });

  it("should close what a crash has left open", async () => {
    const folder = temporaryFolder();
    const path = join(folder.path, "ledger.db");
    const script = `
      import { createMessageHooks } from ${JSON.stringify(new URL("../../dist/messages/index.js", import.meta.url).href)};
      const hang = { id: "hung", register: (api) => void api.on("message_sent", () => new Promise(() => {})) };
      const { runs } = await createMessageHooks({ store: "sqlite:${path}", plugins: [hang] });
      void runs.notify("message_sent", { to: "x", content: "y", success: true }, { channelId: "c" });
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 200);`;
    expect(spawnSync(process.execPath, ["--input-type=module", "-e", script]).signal).toBe("SIGKILL");
    const hooks = await createMessageHooks({ store: `sqlite:${path}` });
    expect(await hooks.recovered).toHaveLength(1);
    await hooks.close();
    folder.remove();
  });

  it("should leave a caller that gives up no longer waiting for a ledger that is silent", async () => {
    const silent = new FaultyStore(openMemoryStore(), fromNth(1, { does: "hang" }));
    const { runs, close } = await createMessageHooks({
      store: silent,
      recoverOnStart: false,
      closeTimeoutMs: 1,
      plugins: [plugin("a", (api) => void api.on("message_sending", () => ({ content: "b" })))],
    });
    const abort = new AbortController();
    const run = runs.rewrite(SENDING, CTX, { signal: abort.signal });
    setImmediate(() => abort.abort());
    expect(await run).toMatchObject({ end: "sent", content: "b", recorded: false });
    await close();
  });

  it("should refuse more handlers of one hook than a run can name", async () => {
    const hooks = await hooksWith([]);
    const many = (count: number) => (api: PluginApi) => {
      for (let i = 0; i < count; i++) api.on("message_sent", () => {});
    };
    hooks.plugins.load(plugin("a", many(200)));
    expect(() => hooks.plugins.load(plugin("b", many(57)))).toThrow("there are 256 handlers of message_sent already");
    hooks.plugins.load(plugin("b", many(56)));
    hooks.plugins.load(plugin("a", many(200)));
    expect(await hooks.runs.notify("message_sent", { to: "x", content: "y", success: true }, CTX)).toMatchObject({
      end: "notified",
      recorded: true,
    });
  });
});
