import { describe, expect, it } from "vitest";
import type { MediaFact, MediaFacts, Metadata } from "#src/messages/facts.js";
import { withDeprecatedAliases } from "#src/messages/inbound/aliases.js";
import type { InboundMessage } from "#src/messages/inbound/message.js";
import type { PluginApi } from "#src/messages/plugin.js";
import { gateway, REMOTE } from "./gateway.js";

const MEDIA: readonly MediaFact[] = [
  { path: "/w/a", contentType: "image/png" },
  { url: "https://x/b", contentType: "" },
  { path: "/w/c", url: "https://x/c", contentType: "audio/ogg" },
];

function metadataOf(
  event: MediaFacts & { readonly metadata?: Metadata },
  onRead: (alias: string) => void = () => {},
): Metadata {
  return withDeprecatedAliases(event, onRead).metadata ?? {};
}

describe("the deprecated media aliases", () => {
  it("should live in metadata, singular for the first attachment and plural for all", () => {
    expect({ ...metadataOf({ media: MEDIA, metadata: { own: 1 } }) }).toEqual({
      own: 1,
      mediaPath: "/w/a",
      mediaType: "image/png",
      mediaPaths: ["/w/a", "/w/c"],
      mediaUrls: ["https://x/b", "https://x/c"],
      mediaTypes: ["image/png", "audio/ogg"],
    });
  });

  it("should drop empty entries in the plural forms, which do not line up with media", () => {
    expect({ ...metadataOf({ media: [{ path: "" }, { path: "/w/b" }] }) }).toEqual({ mediaPaths: ["/w/b"] });
  });

  it("should have matching originalMedia… forms, and none of media while staging is pending", () => {
    expect({ ...metadataOf({ originalMedia: [REMOTE], mediaStagingPending: true }) }).toEqual({
      originalMediaPath: REMOTE.path,
      originalMediaUrl: REMOTE.url,
      originalMediaType: REMOTE.contentType,
      originalMediaPaths: [REMOTE.path],
      originalMediaUrls: [REMOTE.url],
      originalMediaTypes: [REMOTE.contentType],
    });
  });

  it("should leave an event without attachments as it is", () => {
    for (const event of [{}, { media: [] }, { metadata: { mediaUrls: ["of message_sending"] } }]) {
      expect(withDeprecatedAliases(event, () => {})).toBe(event);
    }
  });

  it("should tell when one is read, and not when one is written or anything else is read", () => {
    const read: string[] = [];
    const metadata = metadataOf({ media: MEDIA, metadata: { own: 1 } }, (name) => void read.push(name));
    expect([metadata["own"], Object.keys(metadata).length, "mediaPath" in metadata]).toEqual([1, 6, true]);
    Reflect.set(metadata, "mediaPath", "/mine");
    expect([metadata["mediaPath"], read]).toEqual(["/mine", []]);
    expect([metadata["mediaType"], metadata["mediaPaths"]]).toEqual(["image/png", ["/w/a", "/w/c"]]);
    expect(read).toEqual(["mediaType", "mediaPaths"]);
  });
});

describe("handlers of inbound events", () => {
  const attachments: InboundMessage["attachments"] = { state: "local", media: MEDIA };

  it("should find the aliases in what they are given, beside the channel's own metadata", async () => {
    const seen: unknown[] = [];
    const { receive } = await gateway({
      owner: "p",
      on: {
        p: (api) =>
          api.on("inbound_claim", ({ metadata }) => {
            seen.push(metadata?.["mediaPath"], metadata?.["own"]);
            return { handled: true };
          }),
      },
    });
    await receive({ attachments, metadata: { own: "channel's" } });
    expect(seen).toEqual(["/w/a", "channel's"]);
  });

  it("should be warned of a deprecated alias once a plugin, by name, however often it is read", async () => {
    const reads = (alias: string) => (api: PluginApi) =>
      api.on("message_received", ({ metadata }) => [metadata?.[alias], metadata?.[alias]]);
    const { receive, hooks, log } = await gateway({
      on: {
        old: reads("mediaPath"),
        older: reads("originalMediaUrls"),
        modern: (api) => api.on("message_received", ({ media, metadata }) => [media, metadata?.["own"]]),
      },
    });
    const staged: InboundMessage["attachments"] = { state: "staged", media: MEDIA, original: [REMOTE] };
    await receive({ attachments: staged, metadata: { own: 1 } });
    await receive({ attachments: staged, messageId: "m-2" });
    await hooks.close();
    expect(log).toEqual([
      'warn old: plugin "old" reads metadata.mediaPath, which is deprecated: read media',
      'warn older: plugin "older" reads metadata.originalMediaUrls, which is deprecated: read originalMedia',
    ]);
  });

  it("should see what they do to their metadata alone", async () => {
    const seen: unknown[] = [];
    const { receive, hooks } = await gateway({
      on: {
        a: (api) => api.on("message_received", ({ metadata = {} }) => void Reflect.set(metadata, "mediaPath", "/evil")),
        b: (api) => api.on("message_received", ({ metadata }) => void seen.push(metadata?.["mediaPath"])),
      },
    });
    await receive({ attachments });
    await hooks.close();
    expect(seen).toEqual(["/w/a"]);
  });

  it("should not be given an alias that the channel made up", async () => {
    const seen: unknown[] = [];
    const { receive, hooks } = await gateway({
      on: { p: (api) => api.on("message_received", ({ metadata }) => void seen.push(metadata)) },
    });
    await receive({ metadata: { mediaPath: "/etc/passwd", originalMediaPaths: ["/x"], own: 1 } });
    await hooks.close();
    expect(seen).toEqual([{ own: 1 }]);
  });

  it("should leave the record with media once, and without aliases", async () => {
    const { receive, hooks, store } = await gateway({
      on: { p: (api) => api.on("message_received", ({ metadata }) => metadata?.["mediaPath"]) },
    });
    await receive({ attachments, metadata: { own: 1 } });
    await hooks.close();
    const documents: string[] = [];
    for await (const page of store.readStreams({ order: "oldest" })) {
      for (const { metadata } of page.flatMap(({ events }) => events)) {
        const { payloads = {} }: { payloads?: Record<string, string> } = JSON.parse(metadata);
        for (const bytes of Object.values(payloads)) documents.push(Buffer.from(bytes, "base64").toString());
      }
    }
    const event = documents.filter((text) => text.includes("/w/a"));
    expect(event).toHaveLength(1);
    expect(event[0]?.split("/w/a")).toHaveLength(2);
    expect(event[0]).not.toMatch(/mediaPath|mediaUrl|mediaType/);
  });
});
