import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { createMessageHooks, type MessageHooks } from "#src/messages/create.js";
import { definePlugin, type MessagePlugin } from "#src/messages/plugin.js";
import { MessagePlugins } from "#src/messages/registry.js";

const CTX = { channelId: "test" };
const SENT = { to: "x", content: "y", success: true };

const open: MessageHooks[] = [];
afterEach(async () => {
  for (const hooks of open.splice(0)) await hooks.close();
});

async function hooksWith(...plugins: readonly MessagePlugin[]): Promise<MessageHooks> {
  const hooks = await createMessageHooks({ store: "memory:", plugins });
  open.push(hooks);
  return hooks;
}

function registry(): { readonly plugins: MessagePlugins; readonly lines: string[] } {
  const lines: string[] = [];
  return { plugins: new MessagePlugins(({ provider, message }) => lines.push(`${provider}: ${message}`)), lines };
}

function plugin(id: string, register: MessagePlugin["register"]): MessagePlugin {
  return { id, register };
}

describe("definePlugin", () => {
  it("should hand back the plugin", () => {
    const mine = plugin("mine", () => {});
    expect(definePlugin(mine)).toBe(mine);
  });

  it.each([
    ["no object", null, "it is no object"],
    ["no id", { register() {} }, '"undefined" is no id'],
    ["an id of the kernel's", { id: "kernel", register() {} }, '"kernel" is no id'],
    ["an odd id", { id: "Mine!", register() {} }, '"Mine!" is no id'],
    ["no register", { id: "mine" }, 'plugin "mine": it has no function register'],
    ["a version that no record takes", { id: "mine", version: "\ud800", register() {} }, 'plugin "mine": its version'],
    ["an odd version", { id: "mine", version: 1, register() {} }, 'plugin "mine": its version is no well-formed text'],
  ])("should refuse %s", (_, given, message) => {
    expect(() => definePlugin(given as MessagePlugin)).toThrow(
      expect.objectContaining({ code: "HL_PLUGIN", message: expect.stringContaining(message) }),
    );
  });
});

describe("registering handlers", () => {
  it.each([
    [
      "an unknown hook",
      (api: { on: (...args: unknown[]) => void }) => api.on("message_sendng", () => {}),
      '"message_sendng" is no hook',
    ],
    [
      "a handler that is no function",
      (api: { on: (...args: unknown[]) => void }) => api.on("message_sent", "x"),
      "is no function",
    ],
    [
      "a register that throws",
      () => {
        throw new Error("boom");
      },
      "register() threw: boom",
    ],
  ])("should refuse %s, with the plugin's id, and leave nothing of it", (_, register, message) => {
    const { plugins } = registry();
    expect(() => plugins.load(plugin("bad", register as MessagePlugin["register"]))).toThrow(
      expect.objectContaining({ code: "HL_PLUGIN", message: expect.stringMatching(/^plugin "bad": /) }),
    );
    expect(() => plugins.load(plugin("bad", register as MessagePlugin["register"]))).toThrow(message);
    expect([plugins.ids, plugins.handlers("message_sent")]).toEqual([[], []]);
  });

  it.each([
    ["a priority that is no number", { priority: "high" }, "priority is no number"],
    ["a timeout of nothing", { timeoutMs: 0 }, "timeoutMs is no number"],
    ["a timeout without end", { timeoutMs: Number.POSITIVE_INFINITY }, "timeoutMs is no number"],
    ["an unknown option", { prioritty: 1 }, 'has no option "prioritty"'],
    ["an option of another hook", { eligibleTriggers: ["user"] }, 'has no option "eligibleTriggers"'],
    ["options that are none", 7, "its options are no object"],
  ])("should report %s with the plugin's id, and register the handler without it", (_, options, message) => {
    const { plugins, lines } = registry();
    plugins.load(plugin("odd", (api) => void api.on("message_sent", () => {}, options as object)));
    expect(lines).toEqual([expect.stringContaining(`odd: message_sent`)]);
    expect(lines[0]).toContain(message);
    expect(plugins.handlers("message_sent")).toMatchObject([{ plugin: "odd", priority: 0, timeoutMs: null }]);
  });

  it.each([
    ["holes", Object.assign([], { 1: "user", length: 2 })],
    ["unknown values", ["user", "moon"]],
    ["nothing", []],
    ["no list", "user"],
    ["other types", ["user", 1]],
  ])("should report a list of eligible triggers that has %s, and restrict nothing", async (_, eligibleTriggers) => {
    const { plugins, lines } = registry();
    plugins.load(plugin("odd", (api) => void api.on("before_agent_reply", () => {}, { eligibleTriggers } as object)));
    expect(plugins.handlers("before_agent_reply")).toMatchObject([{ eligible: null }]);
    expect(lines).toEqual([expect.stringContaining("eligibleTriggers is no list of known values")]);
  });

  it("should call by descending priority, and in the order of registration where it is equal", () => {
    const { plugins } = registry();
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("a", "b", "c"), fc.integer({ min: -2, max: 2 })), { maxLength: 12 }),
        (all) => {
          for (const id of ["a", "b", "c"]) plugins.unload(id);
          const expected = all
            .map(([id, priority], place) => ({ id, priority, place }))
            .filter(({ id }, place) => all.findIndex(([other]) => other === id) <= place)
            .sort((x, y) => y.priority - x.priority);
          const apis = new Map<string, Parameters<MessagePlugin["register"]>[0]>();
          for (const id of ["a", "b", "c"]) plugins.load(plugin(id, (api) => void apis.set(id, api)));
          for (const [id, priority] of all) apis.get(id)?.on("message_sent", () => {}, { priority });
          expect(plugins.handlers("message_sent").map((one) => [one.plugin, one.priority])).toEqual(
            expected.map(({ id, priority }) => [id, priority]),
          );
        },
      ),
    );
  });
});

describe("loading a plugin again", () => {
  it("should replace its handlers, never stack them: one call a message after 100 times", async () => {
    let calls = 0;
    const hooks = await hooksWith();
    for (let i = 0; i < 100; i++) {
      hooks.plugins.load(plugin("mine", (api) => void api.on("message_sent", () => void calls++)));
    }
    await hooks.runs.notify("message_sent", SENT, CTX);
    expect(calls).toBe(1);
  });

  it("should keep its place among handlers of the same priority", () => {
    const { plugins } = registry();
    const on = (id: string) => plugin(id, (api) => void api.on("message_sent", () => {}));
    for (const id of ["a", "b", "a"]) plugins.load(on(id));
    expect(plugins.handlers("message_sent").map((one) => one.plugin)).toEqual(["a", "b"]);
  });

  it("should keep the handlers it had where the new ones cannot be registered", () => {
    const { plugins } = registry();
    plugins.load(plugin("a", (api) => void api.on("message_sent", () => {})));
    const broken = plugin("a", (api) => {
      api.on("message_sent", () => {});
      throw new Error("halfway");
    });
    expect(() => plugins.load(broken)).toThrow("halfway");
    expect(plugins.handlers("message_sent")).toHaveLength(1);
  });

  it("should make nothing of what an earlier registration does later", () => {
    const { plugins } = registry();
    const apis: Parameters<MessagePlugin["register"]>[0][] = [];
    for (let i = 0; i < 2; i++) plugins.load(plugin("a", (api) => void apis.push(api)));
    apis[0]?.on("message_sent", () => {});
    expect(plugins.handlers("message_sent")).toEqual([]);
    apis[1]?.on("message_sent", () => {});
    expect(plugins.handlers("message_sent")).toHaveLength(1);
  });
});

describe("an asynchronous register()", () => {
  it("should leave no rejection unhandled, and tell whose it was; what it registered stays", async () => {
    const { plugins, lines } = registry();
    const slow = async (api: Parameters<MessagePlugin["register"]>[0]): Promise<void> => {
      api.on("message_sent", () => {});
      await Promise.reject(new Error("no network"));
    };
    plugins.load(plugin("a", slow));
    await new Promise((resolve) => setImmediate(resolve));
    expect(lines).toEqual(['a: plugin "a": register() rejected: no network']);
    expect(plugins.handlers("message_sent")).toHaveLength(1);
  });
});

describe("a plugin whose object changes later", () => {
  it("should be known by the id that it was loaded with", () => {
    const { plugins } = registry();
    const changing = { ...plugin("a", (api) => void api.on("message_sent", () => {})), version: "1" };
    const { register } = changing;
    changing.register = (api) => {
      Object.assign(changing, { id: "kernel:policy", version: 7 });
      register(api);
    };
    plugins.load(changing);
    expect([plugins.ids, plugins.unload("kernel:policy")]).toEqual([["a"], false]);
    expect(plugins.handlers("message_sent")).toMatchObject([{ id: "a", plugin: "a", version: "1" }]);
  });
});

describe("a log that throws", () => {
  it("should not keep a plugin from being loaded", () => {
    const plugins = new MessagePlugins(() => {
      throw new Error("disk full");
    });
    plugins.load(plugin("a", (api) => void api.on("message_sent", () => {}, { priority: Number.NaN })));
    expect(plugins.handlers("message_sent")).toMatchObject([{ priority: 0 }]);
  });
});

describe("unloading a plugin", () => {
  it("should leave none of its handlers behind, and those of others alone", () => {
    const { plugins } = registry();
    const handler = (): void => {};
    for (const id of ["a", "b"]) plugins.load(plugin(id, (api) => void api.on("message_sent", handler)));
    expect(plugins.handlers("message_sent").map((one) => one.plugin)).toEqual(["a", "b"]);
    expect([plugins.unload("a"), plugins.unload("a")]).toEqual([true, false]);
    expect(plugins.handlers("message_sent").map((one) => one.plugin)).toEqual(["b"]);
    expect(plugins.isLoaded("a")).toBe(false);
  });
});

describe("a run under way", () => {
  it("should call both of two plugins with identical handlers", async () => {
    let calls = 0;
    const handler = (): void => void calls++;
    const { runs } = await hooksWith(
      plugin("a", (api) => void api.on("message_sent", handler)),
      plugin("b", (api) => void api.on("message_sent", handler)),
    );
    await runs.notify("message_sent", SENT, CTX);
    expect(calls).toBe(2);
  });

  it("should go on with the handlers it began with, whoever takes themselves out or comes in", async () => {
    const called: string[] = [];
    const { runs, plugins } = await hooksWith(
      plugin("once", (api) => {
        const off = api.on("message_sending", () => {
          called.push("once");
          off();
          api.on("message_sending", () => void called.push("late"));
          plugins.unload("last");
        });
      }),
      plugin("last", (api) => void api.on("message_sending", () => void called.push("last"))),
    );
    await runs.rewrite({ to: "x", content: "y" }, CTX);
    expect(called).toEqual(["once", "last"]);
    await runs.rewrite({ to: "x", content: "y" }, CTX);
    expect(called).toEqual(["once", "last", "late"]);
  });
});

describe("hasHooks", () => {
  it("should answer what a run would do", async () => {
    const { runs } = await hooksWith(
      plugin("acp", (api) => void api.on("reply_dispatch", () => null, { eligibleDispatchKinds: ["acp"] })),
      plugin("cron", (api) => void api.on("before_agent_reply", () => null, { eligibleTriggers: ["cron"] })),
    );
    expect([
      runs.hasHooks("reply_dispatch", { dispatchKind: "acp" }),
      runs.hasHooks("reply_dispatch", { dispatchKind: "agent" }),
      runs.hasHooks("reply_dispatch", {}),
      runs.hasHooks("reply_dispatch", { dispatchKind: "moon" as "acp" }),
    ]).toEqual([true, false, true, true]);
    expect([
      runs.hasHooks("before_agent_reply", { trigger: "cron" }),
      runs.hasHooks("before_agent_reply", { trigger: "user" }),
      runs.hasHooks("before_agent_reply", {}),
      runs.hasHooks("message_sent", {}),
      runs.hasHooks("before_agent_reply", { trigger: "cron" }, { onlyPlugin: "acp" }),
    ]).toEqual([true, false, false, false, false]);
    expect(await runs.claim("before_agent_reply", { cleanedBody: "x" }, { trigger: "user" })).toMatchObject({
      end: "declined",
      dispatchId: null,
    });
  });
});
