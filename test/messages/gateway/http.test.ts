/** Messages in and replies out over real HTTP, whatever channels and plugins do meanwhile. */
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { MESSAGE_HOOKS, type MessageHookName } from "#src/messages/hooks.js";
import type { PluginApi } from "#src/messages/plugin.js";
import { httpScene } from "./http-scene.js";
import { hang, plugin } from "./scene.js";

const HOOKS = Object.keys(MESSAGE_HOOKS) as MessageHookName[];

describe("duplicates", () => {
  it("should be answered once, however many come at once, and after", async () => {
    const { post, server, completions } = await httpScene();
    const answers = await Promise.all(Array.from({ length: 30 }, () => post()));
    answers.push(await post());
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
    expect(answers.filter(({ body }) => body.end === "answered")).toHaveLength(1);
    expect(answers.filter(({ body }) => body.end === "duplicate")).toHaveLength(30);
    expect([server.requests, completions.length]).toEqual([1, 1]);
  });
});

describe("webhooks out of order", () => {
  it("should each be answered once, one at a time in a conversation, in the order in which they came", async () => {
    let underWay = 0;
    let most = 0;
    const order: string[] = [];
    const { post, server } = await httpScene({
      agent: async ({ message: { messageId = "", body } }) => {
        most = Math.max(most, ++underWay);
        order.push(messageId);
        await new Promise(setImmediate);
        underWay--;
        return { text: `${body}` };
      },
    });
    const numbers = [7, 3, 9, 1, 8, 2, 6, 4, 5];
    const texts = numbers.map((n) => `message ${n}`);
    const posts = [...numbers, ...numbers].map((n) => post({ id: `m-${n}`, text: `message ${n}`, at: n }));
    const answers = await Promise.all(posts);
    expect(answers.filter(({ body }) => body.end === "answered")).toHaveLength(9);
    expect(most).toBe(1);
    expect(server.texts).toEqual(order.map((id) => `message ${id.slice(2)}`));
    expect([...server.texts].sort()).toEqual([...texts].sort());
  });
});

describe("a channel", () => {
  it("should hold up its own conversation alone where it is slow", async () => {
    const held: (() => void)[] = [];
    const { post, server } = await httpScene();
    server.instead = async (_, text) => {
      if (text.includes("slow")) await new Promise<void>((resolve) => void held.push(resolve));
      return false;
    };
    const slow = post({ text: "slow" });
    const behind = post({ id: "m-2", text: "behind" });
    expect(await post({ id: "m-3", conversation: "c-2", text: "quick" })).toMatchObject({ status: 200 });
    await expect.poll(() => held.length).toBe(1);
    expect(server.texts).toEqual(["You said: quick"]);
    held[0]?.();
    await Promise.all([slow, behind]);
    expect(server.texts).toEqual(["You said: quick", "You said: slow", "You said: behind"]);
  });

  const SICK: readonly (readonly [string, (response: ServerResponse) => unknown])[] = [
    ["never answers", () => {}],
    ["hangs up", (response) => response.destroy()],
    [
      "hangs up within its answer",
      (response) => {
        response.writeHead(200, { "content-length": 100 });
        response.write('{"messageId":');
        setImmediate(() => response.destroy());
      },
    ],
    ["answers with an error", (response) => response.writeHead(500).end()],
    ["answers with what is no JSON", (response) => response.writeHead(200).end("<html>")],
  ];

  it.each(SICK)("should fail one delivery and not the next where it %s", async (_, answer) => {
    const told: boolean[] = [];
    const { post, server } = await httpScene({
      sendTimeoutMs: 100,
      on: { witness: (api) => void api.on("message_sent", ({ success }) => void told.push(success)) },
    });
    server.instead = (response) => {
      answer(response);
      return true;
    };
    expect(await post()).toMatchObject({ status: 200, body: { end: "answered", replies: [{ status: "failed" }] } });
    server.instead = () => false;
    expect(await post({ id: "m-2" })).toMatchObject({ status: 200, body: { replies: [{ status: "sent" }] } });
    expect(server.texts).toEqual(["You said: hello"]);
    expect(told).toEqual([false, true]);
  });

  it("should have the next delivery where it died, and came back", async () => {
    const { post, server } = await httpScene();
    const port = Number(new URL(server.url).port);
    await server.close();
    expect(await post()).toMatchObject({ body: { replies: [{ status: "failed" }] } });
    await server.listen(port);
    expect(await post({ id: "m-2" })).toMatchObject({ body: { replies: [{ status: "sent" }] } });
  });
});

describe("a plugin that hangs", () => {
  const CLAIMED: ReadonlySet<MessageHookName> = new Set(["inbound_claim"]);

  it.each(HOOKS)("should keep nobody in %s for longer than the operator says", async (hook) => {
    const { post, server } = await httpScene({
      hooks: { timeoutMs: 50 },
      on: { hanging: (api) => hangIn(api, hook) },
      ...(CLAIMED.has(hook) ? { bindings: { ownerOf: () => ({ pluginId: "hanging" }) } } : {}),
    });
    const { status, body } = await post();
    expect([status, body.end]).toEqual([200, CLAIMED.has(hook) ? "refused" : "answered"]);
    expect(server.texts).toEqual([CLAIMED.has(hook) ? expect.stringContaining("failed") : "You said: hello"]);
  });

  it.each(["reply_payload_sending", "message_sending"] as const)(
    "should keep the reply back in %s where the operator says that a failure blocks",
    async (hook) => {
      const { post, server } = await httpScene({
        hooks: { timeouts: { [hook]: 50 }, onFailure: { [hook]: "block" } },
        on: { hanging: (api) => hangIn(api, hook) },
      });
      expect((await post()).body.replies).toMatchObject([{ status: "suppressed", reason: "blocked_by_failed_hook" }]);
      expect(server.requests).toBe(0);
    },
  );

  it.each(["message_received", "message_sent"] as const)("should keep nobody in %s, limit or not", async (hook) => {
    const { post, server } = await httpScene({ on: { hanging: (api) => hangIn(api, hook) }, closeTimeoutMs: 50 });
    expect((await post()).body.end).toBe("answered");
    expect(server.texts).toEqual(["You said: hello"]);
  });
});

describe("plugins that are loaded again under load", () => {
  it("should each see a reply once: one delivery a message, by one version", async () => {
    const { gateway, post, server } = await httpScene();
    const version = (n: number) =>
      plugin("marker", (api) => {
        api.on("reply_payload_sending", ({ payload }) => ({ payload: { ...payload, text: `${payload.text} <${n}>` } }));
        api.on("message_sending", async ({ content }) => {
          await new Promise(setImmediate);
          return { content: `${content}!` };
        });
      });
    gateway.plugins.load(version(0));
    let over = false;
    const loading = (async () => {
      let n = 0;
      for (; !over; n++) {
        gateway.plugins.load(version(n));
        await sleep(1);
      }
      return n;
    })();
    const messages = Array.from({ length: 300 }, (_, n) => ({
      id: `m-${n}`,
      conversation: `c-${n % 30}`,
      text: `${n}`,
    }));
    const answers = await Promise.all(messages.map((message) => post(message)));
    over = true;
    expect(await loading).toBeGreaterThan(10);
    expect(answers.filter(({ body }) => body.end === "answered")).toHaveLength(300);
    expect(server.requests).toBe(300);
    const texts = server.texts.map((text) => /^You said: (\d+) <\d+>!$/.exec(text)?.[1]);
    expect(texts.map(Number).sort((a, b) => a - b)).toEqual(messages.map((_, n) => n));
  });

  it("should be asked no more once they are unloaded", async () => {
    const { gateway, post, server } = await httpScene({
      on: { marker: (api) => void api.on("message_sending", ({ content }) => ({ content: `${content}!` })) },
    });
    await post();
    gateway.plugins.unload("marker");
    await post({ id: "m-2" });
    expect(server.texts).toEqual(["You said: hello!", "You said: hello"]);
  });
});

function hangIn(api: PluginApi, hook: MessageHookName): void {
  api.on(hook, () => hang());
}
