import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HostReplyPayload, ReplyPayload } from "#src/messages/facts.js";
import { normalise } from "#src/messages/outbound/payload.js";
import { withoutTrust, withTrustOf } from "#src/messages/outbound/trust.js";
import { scene } from "./scene.js";

const TRUSTED = { text: "x", mediaUrl: "/tmp/a", mediaUrls: ["/tmp/a", "/tmp/b"], trustedLocalMedia: true } as const;

/** What the channel was told of each medium. */
async function trustAfter(edit: ((payload: ReplyPayload) => object) | null, given: HostReplyPayload = TRUSTED) {
  const { channel, deliverOne } = await scene((api) => {
    if (edit !== null) api.on("reply_payload_sending", ({ payload }) => ({ payload: edit(payload) }));
  });
  await deliverOne(given);
  return channel.sends.map(({ part }) => part.media?.trustedLocal);
}

describe("trust in local media", () => {
  it("should be hidden from both sending hooks", async () => {
    const seen: object[] = [];
    const { deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", (event) => void seen.push(event));
      api.on("message_sending", (event) => void seen.push(event));
    });
    await deliverOne(TRUSTED);
    expect(seen).toHaveLength(2);
    expect(JSON.stringify(seen)).not.toContain("trust");
  });

  it("should reach the channel where no handler touched the media", async () => {
    expect(await trustAfter(null)).toEqual([true, true]);
    expect(await trustAfter((payload) => ({ ...payload, text: "rewritten", presentation: { a: 1 } }))).toEqual([
      true,
      true,
    ]);
  });

  it("should not be granted by a handler", async () => {
    const grant = (payload: ReplyPayload) => ({ ...payload, trustedLocalMedia: true });
    expect(await trustAfter(grant, { text: "x", mediaUrl: "/etc/passwd" })).toEqual([false]);
  });

  it("should be lost by a handler that cannot know of it, and restored", async () => {
    expect(await trustAfter((payload) => ({ ...payload, trustedLocalMedia: false }))).toEqual([true, true]);
  });

  it.each<[string, (payload: ReplyPayload) => object]>([
    ["mediaUrl changed", (payload) => ({ ...payload, mediaUrl: "/etc/passwd" })],
    ["mediaUrl went", ({ mediaUrl: _, ...payload }) => payload],
    ["mediaUrls grew", (payload) => ({ ...payload, mediaUrls: [...(payload.mediaUrls ?? []), "/etc/passwd"] })],
    ["mediaUrls shrank", (payload) => ({ ...payload, mediaUrls: ["/tmp/a"] })],
    ["mediaUrls changed their order", (payload) => ({ ...payload, mediaUrls: ["/tmp/b", "/tmp/a"] })],
    ["mediaUrls went", ({ mediaUrls: _, ...payload }) => payload],
  ])("should be gone where %s, whatever the handler claims", async (_, edit) => {
    const trust = await trustAfter((payload) => ({ ...edit(payload), trustedLocalMedia: true }));
    expect(new Set(trust)).toEqual(new Set([false]));
  });

  it("should be judged by what all handlers made of the media together", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", ({ payload }) => ({ payload: { ...payload, mediaUrls: ["/etc/passwd"] } }));
      api.on("reply_payload_sending", ({ payload }) => ({ payload: { ...payload, mediaUrls: ["/tmp/a", "/tmp/b"] } }));
    });
    await deliverOne(TRUSTED);
    expect(channel.sends.map(({ part }) => part.media)).toEqual([
      { url: "/tmp/a", trustedLocal: true },
      { url: "/tmp/b", trustedLocal: true },
    ]);
  });

  it("should survive a rewrite of the content, which cannot touch media", async () => {
    const { channel, deliverOne } = await scene((api) => void api.on("message_sending", () => ({ content: "new" })));
    await deliverOne(TRUSTED);
    expect(channel.sends[0]?.part).toMatchObject({ text: "new", media: { trustedLocal: true } });
  });

  it("should hold after any edit exactly where the host gave it and every medium is the same, in its place", () => {
    const url = fc.constantFrom("/a", "/b", "https://c");
    const payload = fc.record(
      {
        text: fc.constantFrom("x", "y"),
        mediaUrl: url,
        mediaUrls: fc.array(url, { maxLength: 3 }),
        trustedLocalMedia: fc.boolean(),
      },
      { requiredKeys: ["text"] },
    );
    fc.assert(
      fc.property(payload, payload, (given, returned) => {
        const original = normalise(given);
        const made = normalise(returned);
        if (original === null || made === null) throw new Error("both have text");
        const same =
          given.mediaUrl === returned.mediaUrl &&
          JSON.stringify(given.mediaUrls ?? []) === JSON.stringify(returned.mediaUrls ?? []);
        const result = withTrustOf(original, made);
        expect(result.trustedLocalMedia === true).toBe(given.trustedLocalMedia === true && same);
        expect(withoutTrust(result)).toEqual(withoutTrust(made));
      }),
    );
  });
});
