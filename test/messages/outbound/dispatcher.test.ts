import { describe, expect, it } from "vitest";
import type { ReplyKind, ReplyPayload } from "#src/messages/facts.js";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import type { DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import { UsageStates } from "#src/messages/outbound/usage-states.js";
import { VirtualClock } from "../../support/virtual-clock.js";
import { gate, scene, stage, TestChannel } from "./scene.js";

const NONE = { delivered: 0, deliveredNotVisible: 0, cancelled: 0, failedBeforeSend: 0, failedAfterSend: 0 };

describe("admission to the dispatcher", () => {
  it("should be true for a reply with something to see", async () => {
    const { options } = await scene();
    const dispatcher = createReplyDispatcher(options);
    expect([
      dispatcher.sendToolResult({ text: "x" }),
      dispatcher.sendBlockReply({ mediaUrls: ["a"] }),
      dispatcher.sendFinalReply({ presentation: { a: 1 } }),
    ]).toEqual([true, true, true]);
    await dispatcher.waitForIdle();
  });

  it.each<[string, ReplyPayload]>([
    ["is empty", {}],
    ["is blank", { text: " \n", mediaUrls: [""] }],
    ["is silent", { text: " NO_REPLY " }],
  ])("should be false for a reply that %s, which nobody hears of", async (_, payload) => {
    let asked = 0;
    const { options, channel } = await scene((api) => void api.on("reply_payload_sending", () => void asked++));
    const dispatcher = createReplyDispatcher(options);
    expect(dispatcher.sendFinalReply(payload)).toBe(false);
    expect(dispatcher.getQueuedCounts()).toEqual({ tool: 0, block: 0, final: 0 });
    expect(await dispatcher.waitForIdle()).toMatchObject({ final: NONE, anyVisibleDelivered: false });
    expect([asked, channel.sends]).toEqual([0, []]);
  });

  it("should be counted by kind at once, also of what is cancelled later", async () => {
    const { options } = await scene((api) => void api.on("message_sending", () => ({ cancel: true })));
    const dispatcher = createReplyDispatcher(options);
    dispatcher.sendToolResult({ text: "1" });
    dispatcher.sendBlockReply({ text: "2" });
    dispatcher.sendBlockReply({ text: "3" });
    dispatcher.sendFinalReply({ text: "4" });
    const counts = { tool: 1, block: 2, final: 1 };
    expect(dispatcher.getQueuedCounts()).toEqual(counts);
    expect(await dispatcher.waitForIdle()).toEqual({
      tool: { ...NONE, cancelled: 1 },
      block: { ...NONE, cancelled: 2 },
      final: { ...NONE, cancelled: 1 },
      anyVisibleDelivered: false,
    });
    expect(dispatcher.getQueuedCounts()).toEqual(counts);
  });

  it("should take the payload as it is then", async () => {
    const { options, channel } = await scene();
    const dispatcher = createReplyDispatcher(options);
    const payload = { text: "before", mediaUrls: ["a"], presentation: { buttons: ["before"] } };
    dispatcher.sendFinalReply(payload);
    payload.text = "after";
    payload.mediaUrls.push("b");
    payload.presentation.buttons[0] = "after";
    await dispatcher.waitForIdle();
    expect(channel.sends.map(({ part }) => [part.text, part.media?.url, part.presentation])).toEqual([
      ["before", "a", { buttons: ["before"] }],
    ]);
  });
});

describe("the lane", () => {
  it("should keep the order across kinds, one delivery at a time", async () => {
    const held = gate();
    const kinds: [ReplyKind, string | undefined][] = [];
    const { options, channel } = await scene((api) => {
      api.on("reply_payload_sending", async ({ kind, payload }) => {
        if (kind === "tool") await held.opened;
        kinds.push([kind, payload.text]);
        return null;
      });
    });
    const dispatcher = createReplyDispatcher(options);
    dispatcher.sendToolResult({ text: "1" });
    dispatcher.sendFinalReply({ text: "2" });
    dispatcher.sendBlockReply({ text: "3" });
    held.open();
    await dispatcher.waitForIdle();
    expect(channel.texts).toEqual(["1", "2", "3"]);
    expect(kinds).toEqual([
      ["tool", "1"],
      ["final", "2"],
      ["block", "3"],
    ]);
  });

  it("should not be stopped by one failure", async () => {
    const { options, channel } = await scene();
    channel.answer = ({ part }) => (part.text === "1" ? Promise.reject(new Error("offline")) : {});
    const dispatcher = createReplyDispatcher(options);
    dispatcher.sendBlockReply({ text: "1" });
    dispatcher.sendBlockReply({ text: "2" });
    expect(await dispatcher.waitForIdle()).toMatchObject({
      block: { ...NONE, delivered: 1, failedAfterSend: 1 },
      anyVisibleDelivered: true,
    });
  });

  it("should be idle only when what was put meanwhile is through, too", async () => {
    const { options, channel } = await scene();
    const dispatcher = createReplyDispatcher(options);
    channel.answer = ({ part }) => {
      if (part.text === "1") dispatcher.sendFinalReply({ text: "2" });
      return {};
    };
    dispatcher.sendBlockReply({ text: "1" });
    expect(await dispatcher.waitForIdle()).toMatchObject({ block: { delivered: 1 }, final: { delivered: 1 } });
  });

  it("should be idle at once where nothing was put", async () => {
    const { options } = await scene();
    const receipt = await createReplyDispatcher(options).waitForIdle();
    expect(receipt).toEqual({ tool: NONE, block: NONE, final: NONE, anyVisibleDelivered: false });
  });

  it("should give every reply an idempotency key of its own", async () => {
    const { options, channel } = await scene();
    const dispatcher = createReplyDispatcher(options);
    dispatcher.sendBlockReply({ text: "same" });
    dispatcher.sendBlockReply({ text: "same" });
    await dispatcher.waitForIdle();
    expect(channel.sends.map(({ idempotencyKey }) => idempotencyKey)).toEqual(["k:0:0", "k:1:0"]);
  });

  it("should fail what is left before its send once the turn is aborted", async () => {
    const turn = new AbortController();
    const { options, channel, told } = await scene();
    channel.answer = () => {
      turn.abort();
      return { messageId: "m" };
    };
    const dispatcher = createReplyDispatcher({ ...options, signal: turn.signal });
    dispatcher.sendBlockReply({ text: "1" });
    dispatcher.sendFinalReply({ text: "2" });
    expect(await dispatcher.waitForIdle()).toMatchObject({
      block: { delivered: 1 },
      final: { failedBeforeSend: 1 },
      anyVisibleDelivered: true,
    });
    expect((await told()).map(({ success }) => success)).toEqual([true, false]);
  });
});

describe("the receipt", () => {
  it("should say per kind what became of the replies", async () => {
    const { options, channel } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ cancel: content === "cancelled" }));
    });
    channel.beforeDeliver = [
      stage((message) => {
        if (message.text === "stage fails") throw new Error("stage");
        if (message.text === "emptied") return { media: [] };
        return message.text === "stage cancels" ? null : message;
      }),
    ];
    channel.answer = ({ part }) => {
      if (part.text === "fails" || part.media?.url === "2") throw new Error("offline");
      return part.text === "hidden" ? { visible: false } : {};
    };
    const dispatcher = createReplyDispatcher(options);
    const texts = ["sent", "hidden", "cancelled", "stage cancels", "emptied", "stage fails", "fails"];
    for (const text of texts) dispatcher.sendBlockReply({ text });
    dispatcher.sendToolResult({ text: "partial", mediaUrls: ["1", "2"] });
    expect(await dispatcher.waitForIdle()).toEqual({
      tool: { ...NONE, failedAfterSend: 1 },
      block: { delivered: 1, deliveredNotVisible: 2, cancelled: 2, failedBeforeSend: 1, failedAfterSend: 1 },
      final: NONE,
      anyVisibleDelivered: true,
    });
  });

  it.each<[boolean, { readonly visible?: boolean }]>([
    [true, {}],
    [false, { visible: false }],
  ])("should say that something visible was delivered: %s, where the channel returned %j", async (visible, answer) => {
    const { options, channel } = await scene();
    channel.answer = () => answer;
    const dispatcher = createReplyDispatcher(options);
    dispatcher.sendFinalReply({ text: "x" });
    expect(await dispatcher.waitForIdle()).toMatchObject({ anyVisibleDelivered: visible });
  });

  it("should count a partial visible send as visible", async () => {
    const { options, channel } = await scene();
    channel.answer = (_, n) => (n === 2 ? Promise.reject(new Error("x")) : {});
    const dispatcher = createReplyDispatcher(options);
    dispatcher.sendFinalReply({ text: "x", mediaUrls: ["1", "2"] });
    expect(await dispatcher.waitForIdle()).toMatchObject({ final: { failedAfterSend: 1 }, anyVisibleDelivered: true });
  });

  it("should come with each outcome, told in order, whatever the listener does", async () => {
    const outcomes: [ReplyKind, DeliveryOutcome["status"]][] = [];
    const { options, warnings } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ cancel: content === "2", content: `${content}!` }));
    });
    const dispatcher = createReplyDispatcher({
      ...options,
      onOutcome: (kind, outcome) => {
        outcomes.push([kind, outcome.status]);
        throw new Error("listener");
      },
    });
    dispatcher.sendToolResult({ text: "1" });
    dispatcher.sendFinalReply({ text: "2" });
    expect(await dispatcher.waitForIdle()).toMatchObject({ tool: { delivered: 1 }, final: { cancelled: 1 } });
    expect(outcomes).toEqual([
      ["tool", "sent"],
      ["final", "suppressed"],
    ]);
    expect(warnings).toEqual([
      { kind: "listener-failed", message: "listener" },
      { kind: "listener-failed", message: "listener" },
    ]);
  });
});

describe("replies of the same channel and those routed back to the originating one", () => {
  it("should both pass the sending hooks", async () => {
    const seen: (string | undefined)[] = [];
    const { options } = await scene((api) => {
      api.on("reply_payload_sending", ({ channel }) => void seen.push(channel));
      api.on("message_sending", ({ content, metadata }) => {
        seen.push(metadata?.channel);
        return { content: `${content}!` };
      });
    });
    const origin = new TestChannel();
    const context = { ...options.route.context, channelId: "origin" };
    const same = createReplyDispatcher(options);
    const back = createReplyDispatcher({ ...options, route: { adapter: origin, to: "room", context } });
    same.sendFinalReply({ text: "x" });
    await same.waitForIdle();
    back.sendFinalReply({ text: "y" });
    await back.waitForIdle();
    expect(seen).toEqual(["test", "test", "origin", "origin"]);
    expect(origin.texts).toEqual(["y!"]);
  });

  it("should know the turn's usage", async () => {
    const seen: unknown[] = [];
    const { options } = await scene((api) => {
      api.on("reply_payload_sending", ({ usageState }) => void seen.push(usageState));
    });
    const usage = new UsageStates(new VirtualClock());
    usage.put("r-1", { model: "m" });
    const dispatcher = createReplyDispatcher({ ...options, usage });
    dispatcher.sendBlockReply({ text: "1" });
    dispatcher.sendFinalReply({ text: "2" });
    await dispatcher.waitForIdle();
    expect(seen).toEqual([{ model: "m" }, { model: "m" }]);
  });
});
