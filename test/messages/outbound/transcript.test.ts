import { describe, expect, it } from "vitest";
import { scene } from "./scene.js";

const SPOKEN = { mediaUrl: "https://tts/1.ogg", audioAsVoice: true, spokenText: "hello there" };
const VOICE_PART = { media: { url: "https://tts/1.ogg", trustedLocal: false }, audioAsVoice: true };

describe("an audio-only reply", () => {
  it("should show hooks its spoken transcript as content, and be sent without a caption", async () => {
    const seen: string[] = [];
    const { channel, deliverOne, told } = await scene((api) => {
      api.on("message_sending", ({ content }) => void seen.push(content));
    });
    await deliverOne(SPOKEN);
    expect(seen).toEqual(["hello there"]);
    expect(channel.sends.map(({ part }) => part)).toEqual([VOICE_PART]);
    expect(await told()).toMatchObject([{ content: "hello there", success: true }]);
  });

  it("should have its transcript rewritten, and no caption rendered", async () => {
    const { channel, deliverOne, told } = await scene((api) => {
      api.on("message_sending", () => ({ content: "redacted" }));
    });
    expect(await deliverOne(SPOKEN)).toMatchObject({ status: "sent", payload: { ...SPOKEN, spokenText: "redacted" } });
    expect(channel.sends.map(({ part }) => part)).toEqual([VOICE_PART]);
    expect(await told()).toMatchObject([{ content: "redacted" }]);
  });

  it("should still be sent where its transcript is rewritten to nothing", async () => {
    const { channel, deliverOne, told } = await scene((api) => void api.on("message_sending", () => ({ content: "" })));
    expect(await deliverOne(SPOKEN)).toMatchObject({ status: "sent" });
    expect(channel.sends.map(({ part }) => part)).toEqual([VOICE_PART]);
    expect(await told()).toMatchObject([{ content: "", success: true }]);
  });

  it("should be cancelled for what it says", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ cancel: content.includes("hello") }));
    });
    expect(await deliverOne(SPOKEN)).toMatchObject({ reason: "cancelled_by_message_sending_hook" });
    expect(channel.sends).toEqual([]);
  });

  it("should be one no more where there is a visible text: that is the content", async () => {
    const seen: string[] = [];
    const { channel, deliverOne } = await scene((api) => {
      api.on("message_sending", ({ content }) => {
        seen.push(content);
        return { content: "caption" };
      });
    });
    await deliverOne({ ...SPOKEN, text: "shown" });
    expect(seen).toEqual(["shown"]);
    expect(channel.sends[0]?.part).toEqual({ ...VOICE_PART, text: "caption" });
  });

  it("should get a caption only from a reply_payload_sending that gives it a text", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", ({ payload }) => ({ payload: { ...payload, text: "shown" } }));
    });
    await deliverOne(SPOKEN);
    expect(channel.sends[0]?.part).toEqual({ ...VOICE_PART, text: "shown" });
  });

  it("should be one only with audio: a presentation with a transcript has a text to be rewritten", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ content: `${content}shown` }));
    });
    await deliverOne({ presentation: { card: 1 }, spokenText: "hidden" });
    expect(channel.sends.map(({ part }) => part)).toEqual([{ text: "shown", presentation: { card: 1 } }]);
  });

  it("should have an empty content where nothing is spoken: a rewrite of that is a caption", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ content: `${content}caption` }));
    });
    await deliverOne({ mediaUrl: "https://img/1.png" });
    expect(channel.sends[0]?.part).toEqual({
      text: "caption",
      media: { url: "https://img/1.png", trustedLocal: false },
    });
  });
});
