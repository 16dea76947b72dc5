import { describe, expect, it } from "vitest";
import type { ChannelAdapter, SendReceipt } from "#src/messages/outbound/adapter.js";
import { deliver } from "#src/messages/outbound/deliver.js";
import { CONTEXT, scene } from "./scene.js";

describe("a send", () => {
  it("should carry the recipient, thread, account, the turn's signal and an idempotency key", async () => {
    const { channel, deliverOne } = await scene();
    const { signal } = new AbortController();
    await deliverOne({ text: "x" }, { signal });
    expect(channel.sends).toEqual([
      { to: "+49", threadId: "th-1", accountId: "acct", part: { text: "x" }, idempotencyKey: "k:0:0", signal },
    ]);
  });

  it("should have a key that no other part has, and that is the same when it is tried again", async () => {
    const { channel, deliver } = await scene();
    const payloads = [{ text: "a", mediaUrls: ["1", "2", "3"] }, { text: "b" }];
    await deliver(payloads);
    await deliver(payloads);
    const keys = channel.sends.map(({ idempotencyKey }) => idempotencyKey);
    expect(keys.slice(0, 4)).toEqual(keys.slice(4));
    expect(new Set(keys).size).toBe(4);
  });

  it("should have a fresh key for each delivery that has none of its own", async () => {
    const { channel, options } = await scene();
    const { idempotencyKey: _, ...others } = options;
    await deliver([{ text: "a" }], others);
    await deliver([{ text: "a" }], others);
    const keys = channel.sends.map(({ idempotencyKey }) => idempotencyKey);
    expect(new Set(keys).size).toBe(2);
  });

  it("should hand over nothing of the host's own", async () => {
    const { channel, deliverOne } = await scene();
    await deliverOne({ text: "x", spokenText: "hidden", trustedLocalMedia: true, mediaUrl: "/tmp/a" });
    expect(channel.sends[0]?.part).toEqual({ text: "x", media: { url: "/tmp/a", trustedLocal: true } });
  });

  it.each<[unknown, SendReceipt]>([
    [undefined, {}],
    [null, {}],
    [{ messageId: 7 }, {}],
    [{ messageId: "" }, {}],
    [
      { messageId: "m", visible: false, extra: 1 },
      { messageId: "m", visible: false },
    ],
  ])("should be acknowledged by %j as %j", async (returned, receipt) => {
    const { options } = await scene();
    const adapter = { channelId: "js", send: () => returned } as ChannelAdapter;
    const batch = await deliver([{ text: "x" }], { ...options, route: { adapter, to: "y", context: CONTEXT } });
    expect(batch).toMatchObject({ status: "sent", receipts: [receipt] });
  });
});

describe("a payload in several parts", () => {
  it("should go out medium by medium in order, text and presentation with the first", async () => {
    const { channel, deliverOne } = await scene();
    await deliverOne({ text: "x", presentation: { a: 1 }, mediaUrl: "1", mediaUrls: ["2", "1", "2"], replyToId: "q" });
    expect(channel.sends.map(({ part }) => part)).toEqual([
      { text: "x", presentation: { a: 1 }, media: { url: "2", trustedLocal: false }, replyToId: "q" },
      { media: { url: "1", trustedLocal: false }, replyToId: "q" },
    ]);
  });

  it("should stop at the part that fails, and be a partial failure with the receipts of those before", async () => {
    const { channel, deliverOne } = await scene();
    channel.answer = (_, n) => (n === 2 ? Promise.reject(new Error("too large")) : { messageId: `m-${n}` });
    expect(await deliverOne({ text: "x", mediaUrls: ["1", "2", "3"] })).toMatchObject({
      status: "partial_failed",
      receipts: [{ messageId: "m-1" }],
      failure: { at: "send", message: "too large" },
    });
    expect(channel.sends).toHaveLength(2);
  });

  it("should be a failure where the first part fails", async () => {
    const { channel, deliverOne } = await scene();
    channel.answer = () => Promise.reject(new Error("offline"));
    const outcome = await deliverOne({ text: "x", mediaUrls: ["1", "2"] });
    expect(outcome).toMatchObject({ status: "failed", failure: { at: "send" } });
    expect(outcome).not.toHaveProperty("receipts");
    expect(channel.sends).toHaveLength(1);
  });

  it("should stop between two parts where the turn is aborted", async () => {
    const turn = new AbortController();
    const { channel, deliverOne, told } = await scene();
    channel.answer = (_, n) => {
      turn.abort();
      return { messageId: `m-${n}` };
    };
    expect(await deliverOne({ text: "x", mediaUrls: ["1", "2"] }, { signal: turn.signal })).toMatchObject({
      status: "partial_failed",
      receipts: [{ messageId: "m-1" }],
      failure: { at: "aborted" },
    });
    expect(await told()).toMatchObject([{ success: false, messageId: "m-1" }]);
  });

  it("should not keep the payloads behind it from being sent", async () => {
    const { channel, deliver } = await scene();
    channel.answer = ({ part }) => (part.text === "1" ? Promise.reject(new Error("bad")) : {});
    expect(await deliver([{ text: "1" }, { text: "2" }])).toMatchObject({
      status: "partial_failed",
      outcomes: [{ status: "failed" }, { status: "sent" }],
    });
    expect(channel.texts).toEqual(["1", "2"]);
  });
});
