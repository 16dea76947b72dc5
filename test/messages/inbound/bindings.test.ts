import { describe, expect, it } from "vitest";
import { receiveMessage } from "#src/messages/inbound/receive.js";
import type { PluginApi } from "#src/messages/plugin.js";
import type { HookRuns } from "#src/messages/runs.js";
import type { InboundClaimContext, InboundClaimEvent } from "#src/messages/types.js";
import { gate, gateway, MESSAGE, never } from "./gateway.js";

describe("inbound_claim", () => {
  it("should be asked only of the plugin that owns the conversation's binding", async () => {
    const asked: [InboundClaimEvent, InboundClaimContext][] = [];
    const { receive } = await gateway({
      owner: "owner",
      on: {
        stranger: (api) => api.on("inbound_claim", never, { priority: 9 }),
        owner: (api) =>
          api.on("inbound_claim", (event, ctx) => {
            asked.push([event, ctx]);
            return { handled: true };
          }),
      },
    });
    expect(await receive()).toMatchObject({ end: "handled", hook: "inbound_claim", by: "owner", queuedFinal: false });
    expect(asked).toEqual([
      [
        expect.objectContaining({ content: "hello", channel: "telegram", isGroup: false, messageId: "m-1" }),
        expect.objectContaining({ channelId: "telegram", pluginBinding: { pluginId: "owner" } }),
      ],
    ]);
  });

  it("should not be asked of anybody where nobody owns the conversation", async () => {
    const { receive } = await gateway({ on: { p: (api) => api.on("inbound_claim", never) } });
    expect(await receive()).toMatchObject({ end: "dispatch" });
  });

  it("should send the reply of a handled result as one final, trusted with nothing", async () => {
    const { receive, dispatcher } = await gateway({
      owner: "owner",
      on: {
        owner: (api) =>
          api.on("inbound_claim", () => ({
            handled: true,
            reply: Object.assign({ text: "mine", mediaUrl: "/etc/passwd" }, { trustedLocalMedia: true, other: 1 }),
          })),
      },
    });
    expect(await receive()).toMatchObject({ end: "handled", queuedFinal: true });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: "mine", mediaUrl: "/etc/passwd" } }]);
  });

  it.each(["text", 7, null, {}, { text: " " }, [1]])(
    "should send nothing for a reply that is none: %o",
    async (reply) => {
      const { receive, dispatcher } = await gateway({
        owner: "owner",
        on: {
          owner: (api) => api.on("inbound_claim", () => ({ handled: true, ...JSON.parse(JSON.stringify({ reply })) })),
        },
      });
      expect(await receive()).toMatchObject({ end: "handled", queuedFinal: false });
      expect(dispatcher.admitted).toEqual([]);
    },
  );

  it("should end the turn with a notice and no agent run when the owner declines", async () => {
    const { receive, dispatcher } = await gateway({
      owner: "owner",
      on: {
        owner: (api) => {
          api.on("inbound_claim", () => ({ handled: false, reply: { text: "unsent" } }));
          api.on("message_received", never);
          api.on("before_dispatch", never);
        },
      },
    });
    expect(await receive()).toEqual({ end: "refused", outcome: "declined", plugin: "owner", queuedFinal: true });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: expect.stringContaining('"owner"') } }]);
    expect(await receive()).toEqual({ end: "duplicate" });
  });

  it("should end the turn with a notice and no agent run when the owner fails", async () => {
    const { receive, dispatcher, log } = await gateway({
      owner: "owner",
      on: {
        owner: (api) => {
          api.on("inbound_claim", () => Promise.reject(new Error("boom")));
          api.on("inbound_claim", () => null);
          api.on("before_dispatch", never);
        },
      },
    });
    expect(await receive()).toMatchObject({ end: "refused", outcome: "error", plugin: "owner" });
    expect(dispatcher.admitted).toEqual([
      { kind: "final", payload: { text: expect.stringContaining("failed"), isError: true } },
    ]);
    expect(log).toEqual([expect.stringContaining("handler owner failed")]);
  });

  it("should be handled when another handler of the owner takes what the first one failed on", async () => {
    const { receive } = await gateway({
      owner: "owner",
      on: {
        owner: (api) => {
          api.on("inbound_claim", () => Promise.reject(new Error("boom")));
          api.on("inbound_claim", () => ({ handled: true }));
        },
      },
    });
    expect(await receive()).toMatchObject({ end: "handled", by: "owner:2" });
  });

  it.each([
    ["missing_plugin", {}],
    ["no_handler", { owner: () => {} }],
  ] as const)("should give a one-time notice for %s, then dispatch ordinarily", async (outcome, on) => {
    const { receive, dispatcher } = await gateway({ owner: "owner", on, noticeOf: (what) => `notice: ${what}` });
    expect(await receive()).toMatchObject({ end: "dispatch" });
    expect(await receive({ messageId: "m-2" })).toMatchObject({ end: "dispatch" });
    expect(dispatcher.admitted).toEqual([{ kind: "tool", payload: { text: `notice: ${outcome}` } }]);
    expect(await receive({ messageId: "m-3", conversationId: "chat-2" })).toMatchObject({ end: "dispatch" });
    expect(dispatcher.admitted).toHaveLength(2);
  });

  it("should give its one-time notice later when it was not admitted", async () => {
    const { receive, dispatcher } = await gateway({ owner: "owner" });
    dispatcher.admits = false;
    await receive();
    dispatcher.admits = true;
    await receive({ messageId: "m-2" });
    await receive({ messageId: "m-3" });
    expect(dispatcher.admitted).toEqual([
      { kind: "tool", payload: { text: expect.stringContaining("not available") } },
    ]);
  });

  it("should let the owner be asked again once it is loaded", async () => {
    const { receive, hooks } = await gateway({ owner: "owner" });
    expect(await receive()).toMatchObject({ end: "dispatch" });
    hooks.plugins.load({ id: "owner", register: (api) => void api.on("inbound_claim", () => ({ handled: true })) });
    expect(await receive({ messageId: "m-2" })).toMatchObject({ end: "handled", hook: "inbound_claim" });
  });

  it.each<[string, (api: PluginApi) => void]>([
    ["has no handler", () => {}],
    ["declined", (api) => api.on("inbound_claim", () => null)],
    ["failed", (api) => api.on("inbound_claim", () => Promise.reject(new Error("no")))],
  ])(
    "should tell nobody of an owner that %s once the turn is aborted, and leave the message to come again",
    async (_, on) => {
      const turn = new AbortController();
      const { receive, dispatcher, options, hooks } = await gateway({ owner: "owner", on: { owner: on } });
      const { claim } = hooks.runs;
      const runs: HookRuns = Object.assign(Object.create(hooks.runs), {
        claim: async (...args: Parameters<typeof claim>) => {
          const run = await hooks.runs.claim(...args);
          turn.abort();
          return run;
        },
      });
      expect(await receiveMessage(MESSAGE, { ...options, runs, signal: turn.signal })).toEqual({ end: "aborted" });
      expect(dispatcher.admitted).toEqual([]);
      expect(await receive()).not.toEqual({ end: "duplicate" });
    },
  );

  it("should be raced against the turn's abort signal, and leave the message to come again", async () => {
    const turn = new AbortController();
    const { opened, open } = gate();
    let asked = 0;
    const { receive, dispatcher } = await gateway({
      owner: "owner",
      on: {
        owner: (api) =>
          api.on("inbound_claim", async () => {
            if (++asked === 1) turn.abort();
            await opened;
            return { handled: true, reply: { text: "late" } };
          }),
      },
    });
    expect(await receive({}, { signal: turn.signal })).toEqual({ end: "aborted" });
    expect(dispatcher.admitted).toEqual([]);
    open();
    expect(await receive()).toMatchObject({ end: "handled" });
  });
});
