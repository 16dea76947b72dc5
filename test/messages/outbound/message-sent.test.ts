import { describe, expect, it } from "vitest";
import { gate, scene, stage } from "./scene.js";

describe("message_sent", () => {
  it("should tell once a logical payload of success, final text, last message id, session, run and trace", async () => {
    const { deliver, told } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ content: `${content}!` }));
    });
    await deliver([{ text: "a", mediaUrls: ["1", "2", "3"] }, { text: "b" }]);
    const shared = {
      to: "+49",
      success: true,
      sessionKey: "s-1",
      runId: "r-1",
      trace: "00-trace",
      traceId: "t-1",
      spanId: "sp-1",
      parentSpanId: "sp-0",
    };
    expect(await told()).toEqual([
      { ...shared, content: "a!", messageId: "m-3" },
      { ...shared, content: "b!", messageId: "m-4" },
    ]);
  });

  it("should tell of the last part that has a message id", async () => {
    const { channel, deliverOne, told } = await scene();
    channel.answer = (_, n) => (n === 1 ? { messageId: "m-1" } : {});
    await deliverOne({ text: "a", mediaUrls: ["1", "2"] });
    expect(await told()).toMatchObject([{ messageId: "m-1" }]);
  });

  it("should tell nothing of a cancelled or empty payload", async () => {
    const { channel, deliver, told } = await scene((api) => {
      api.on("reply_payload_sending", ({ payload: { text } }) => {
        if (text === "cancelled early") return { cancel: true };
        return text === "emptied early" ? { payload: {} } : null;
      });
      api.on("message_sending", ({ content }) => ({ cancel: content === "cancelled", content: "" }));
    });
    channel.beforeDeliver = [stage(() => null)];
    const texts = ["cancelled early", "emptied early", "cancelled", "emptied", " "];
    const { outcomes } = await deliver(texts.map((text) => ({ text })));
    expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["suppressed"]));
    expect(await told()).toEqual([]);
  });

  it("should tell nothing of what the channel cancelled", async () => {
    const { channel, deliverOne, told } = await scene();
    channel.beforeDeliver = [stage(() => null)];
    await deliverOne({ text: "x" });
    expect(await told()).toEqual([]);
  });

  it.each<[string, () => never | Promise<never>]>([
    [
      "throws",
      () => {
        throw new Error("offline");
      },
    ],
    ["rejects", () => Promise.reject(new Error("offline"))],
  ])("should tell of the failure and its error where the send %s", async (_, answer) => {
    const { channel, deliverOne, told } = await scene();
    channel.answer = answer;
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "failed",
      failure: { at: "send", message: "offline" },
    });
    expect(await told()).toMatchObject([{ content: "x", success: false, error: "offline" }]);
  });

  it("should tell of a partial visible send as a failure, with the last id that there is", async () => {
    const { channel, deliverOne, told } = await scene();
    channel.answer = (_, n) => (n === 3 ? Promise.reject(new Error("too large")) : { messageId: `m-${n}` });
    await deliverOne({ text: "x", mediaUrls: ["1", "2", "3", "4"] });
    expect(await told()).toMatchObject([{ content: "x", success: false, messageId: "m-2", error: "too large" }]);
  });

  it("should tell of a failure before the send as well", async () => {
    const { channel, deliverOne, told } = await scene();
    channel.beforeDeliver = [stage(() => Promise.reject(new Error("no quota")))];
    await deliverOne({ text: "x" });
    expect(await told()).toMatchObject([{ success: false, error: "before-deliver stage 1: no quota" }]);
  });

  it("should not change the result where its handlers fail", async () => {
    const { deliverOne } = await scene((api) => {
      api.on("message_sent", () => {
        throw new Error("boom");
      });
      api.on("message_sent", () => Promise.reject(new Error("boom")));
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({ status: "sent" });
  });

  it("should not be waited for", async () => {
    const held = gate();
    const { deliver, channel, told } = await scene((api) => void api.on("message_sent", () => held.opened));
    await deliver([{ text: "1" }, { text: "2" }]);
    expect(channel.texts).toEqual(["1", "2"]);
    held.open();
    expect(await told()).toHaveLength(2);
  });

  it("should bound what a channel's error says", async () => {
    const { channel, deliverOne, told } = await scene();
    channel.answer = () => Promise.reject(new Error("x".repeat(100_000)));
    await deliverOne({ text: "x" });
    expect((await told())[0]?.error).toHaveLength(2048);
  });

  it("should tell of a thrown value that cannot be read", async () => {
    const { channel, deliverOne, told } = await scene();
    const hostile = Object.defineProperty({}, "message", {
      get() {
        throw new Error("read");
      },
    });
    channel.answer = () => Promise.reject(hostile);
    expect(await deliverOne({ text: "x" })).toMatchObject({ status: "failed" });
    expect(await told()).toMatchObject([{ error: "a value was thrown that cannot be read" }]);
  });
});
