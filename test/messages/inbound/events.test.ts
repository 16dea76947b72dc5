import { describe, expect, it } from "vitest";
import type { MediaFact } from "#src/messages/facts.js";
import {
  beforeDispatchContext,
  finalizedContext,
  inboundClaimContext,
  messageContext,
} from "#src/messages/inbound/contexts.js";
import { beforeDispatchEvent, inboundClaimEvent, messageReceivedEvent } from "#src/messages/inbound/events.js";
import type { InboundMessage } from "#src/messages/inbound/message.js";

const R5 = {
  replyToId: "m-0",
  replyToIdFull: "chat-1/m-0",
  replyToBody: "before",
  replyToSender: "u-0",
  replyToIsQuote: true,
};
const TRACE = { trace: "00-t-s-01", traceId: "t", spanId: "s", parentSpanId: "p" };
const MEDIA: readonly MediaFact[] = [
  { path: "/w/a.ogg", url: "https://x/a", contentType: "audio/ogg", kind: "audio", transcribed: true },
  { path: "/w/b.png", messageId: "m-1", workspaceDir: "/w" },
];
const LOCATION = { latitude: 52.5, longitude: 13.4, accuracy: 10, name: "there", source: "pin" } as const;
const UPDATE = { id: "u-77", kind: "edited_message", messageId: "m-1", messageTimestamp: 1, editedTimestamp: 2 };

const FULL: InboundMessage = {
  channelId: "telegram",
  from: "+49",
  isGroup: true,
  messageId: "m-1",
  accountId: "acct",
  conversationId: "chat-1",
  parentConversationId: "forum",
  threadId: "th-1",
  senderId: "u-1",
  senderName: "Ada",
  senderUsername: "ada",
  commandBody: "/do",
  rawBody: "raw",
  body: "body",
  bodyForAgent: "for the agent",
  transcript: "spoken",
  timestamp: 5,
  commandAuthorized: true,
  senderIsOwner: false,
  wasMentioned: true,
  quote: { ...R5, visibilityFiltered: true },
  location: LOCATION,
  providerUpdate: UPDATE,
  attachments: { state: "local", media: MEDIA },
  metadata: { own: 1 },
  sessionKey: "s-1",
  runId: "r-1",
  agentId: "main",
  trace: TRACE,
  callDepth: 0,
};

const BARE: InboundMessage = { channelId: "telegram", from: "+49", isGroup: false };

describe("the inbound_claim event", () => {
  it("should say all that its row names", () => {
    expect(inboundClaimEvent(FULL)).toEqual({
      content: "/do",
      channel: "telegram",
      isGroup: true,
      body: "body",
      bodyForAgent: "for the agent",
      transcript: "spoken",
      accountId: "acct",
      conversationId: "chat-1",
      parentConversationId: "forum",
      senderId: "u-1",
      senderName: "Ada",
      senderUsername: "ada",
      messageId: "m-1",
      sessionKey: "s-1",
      runId: "r-1",
      timestamp: 5,
      threadId: "th-1",
      ...R5,
      ...TRACE,
      commandAuthorized: true,
      senderIsOwner: false,
      wasMentioned: true,
      location: LOCATION,
      providerUpdate: UPDATE,
      media: MEDIA,
      metadata: { own: 1 },
    });
  });

  it("should say nothing that is not known", () => {
    expect(inboundClaimEvent(BARE)).toStrictEqual({ content: "", channel: "telegram", isGroup: false });
  });

  it("should come with the agent, the parent conversation and the binding in its context", () => {
    const binding = { pluginId: "owner", since: 7 };
    expect(inboundClaimContext(FULL, binding)).toEqual({
      ...messageContext(FULL),
      agentId: "main",
      parentConversationId: "forum",
      pluginBinding: binding,
    });
    expect(inboundClaimContext(BARE, binding)).toStrictEqual({ channelId: "telegram", pluginBinding: binding });
  });
});

describe("the message_received event", () => {
  it("should tell content, sender, threadId, messageId, senderId, run and session, ordered media, location, provider update and metadata", () => {
    expect(messageReceivedEvent(FULL)).toEqual({
      from: "+49",
      content: "/do",
      timestamp: 5,
      threadId: "th-1",
      messageId: "m-1",
      senderId: "u-1",
      sessionKey: "s-1",
      runId: "r-1",
      callDepth: 0,
      ...R5,
      ...TRACE,
      location: LOCATION,
      providerUpdate: UPDATE,
      media: MEDIA,
      metadata: { own: 1 },
    });
  });

  it("should say nothing that is not known", () => {
    expect(messageReceivedEvent(BARE)).toStrictEqual({ from: "+49", content: "" });
  });
});

describe("the before_dispatch event and its context", () => {
  it("should say all that its row names", () => {
    expect(beforeDispatchEvent(FULL)).toEqual({
      content: "/do",
      messageId: "m-1",
      body: "for the agent",
      channel: "telegram",
      sessionKey: "s-1",
      senderId: "u-1",
      ...R5,
      isGroup: true,
      timestamp: 5,
    });
    expect(beforeDispatchContext(FULL)).toEqual({
      messageId: "m-1",
      channelId: "telegram",
      accountId: "acct",
      conversationId: "chat-1",
      sessionKey: "s-1",
      senderId: "u-1",
      ...R5,
    });
  });

  it("should carry the assigned messageId in both", () => {
    expect([beforeDispatchEvent(FULL).messageId, beforeDispatchContext(FULL).messageId]).toEqual(["m-1", "m-1"]);
  });

  it("should have the body for the agent, or else the body", () => {
    expect(beforeDispatchEvent({ ...FULL, bodyForAgent: " " }).body).toBe("body");
    expect(beforeDispatchEvent(BARE)).not.toHaveProperty("body");
  });
});

describe("message contexts", () => {
  it("should expose the stable correlation fields: session, run, message, sender, trace and call depth", () => {
    expect(messageContext(FULL)).toEqual({
      channelId: "telegram",
      accountId: "acct",
      conversationId: "chat-1",
      sessionKey: "s-1",
      runId: "r-1",
      messageId: "m-1",
      senderId: "u-1",
      callDepth: 0,
      ...R5,
      ...TRACE,
    });
  });

  it("should have ids only when they are not empty", () => {
    const empty = { accountId: "", conversationId: "", sessionKey: "", runId: "", messageId: "", senderId: "" };
    const message = { ...BARE, ...empty, trace: { traceId: "", spanId: "" } };
    expect(messageContext(message)).toStrictEqual({ channelId: "telegram" });
    expect(messageReceivedEvent(message)).toStrictEqual({ from: "+49", content: "" });
    expect(beforeDispatchContext(message)).toStrictEqual({ channelId: "telegram" });
  });

  it("should expose reply metadata only where the channel has visibility-filtered quote data", () => {
    const unfiltered = { ...FULL, quote: { ...R5, visibilityFiltered: false } };
    for (const made of [
      messageContext(unfiltered),
      inboundClaimContext(unfiltered, { pluginId: "p" }),
      inboundClaimEvent(unfiltered),
      messageReceivedEvent(unfiltered),
      beforeDispatchEvent(unfiltered),
      beforeDispatchContext(unfiltered),
      finalizedContext(unfiltered),
    ]) {
      expect(Object.keys(made).filter((key) => key.startsWith("replyTo"))).toEqual([]);
    }
  });

  it("should be finalized for reply_dispatch with content, body, place and staged media", () => {
    expect(finalizedContext(FULL)).toEqual({
      ...messageContext(FULL),
      from: "+49",
      isGroup: true,
      content: "/do",
      body: "for the agent",
      threadId: "th-1",
      timestamp: 5,
      location: LOCATION,
      providerUpdate: UPDATE,
      media: MEDIA,
    });
  });
});

describe("the content of an inbound message", () => {
  const contentOf = (bodies: Partial<InboundMessage>) => messageReceivedEvent({ ...BARE, ...bodies }).content;

  it.each<[Partial<InboundMessage>, string]>([
    [{ commandBody: "c", rawBody: "r", body: "b" }, "c"],
    [{ commandBody: " \n", rawBody: "r", body: "b" }, "r"],
    [{ commandBody: "", rawBody: "\t", body: "b" }, "b"],
    [{ rawBody: "  kept as it came " }, "  kept as it came "],
    [{ commandBody: " ", rawBody: " ", body: " " }, ""],
    [{ bodyForAgent: "not this" }, ""],
  ])("should be the first non-blank of command body, raw body and body: %o", (bodies, content) => {
    expect(contentOf(bodies)).toBe(content);
  });
});

describe("media facts", () => {
  it("should carry path, url, contentType, kind, transcribed, messageId and workspaceDir, and nothing else", () => {
    const all: MediaFact & { readonly secret: string } = {
      path: "/w/a",
      url: "https://x/a",
      contentType: "t/t",
      kind: "k",
      transcribed: true,
      messageId: "m",
      workspaceDir: "/w",
      secret: "no",
    };
    const { secret: _, ...told } = all;
    expect(messageReceivedEvent({ ...BARE, attachments: { state: "local", media: [all] } }).media).toStrictEqual([
      told,
    ]);
  });

  it("should keep every attachment's place: the position is its identity", () => {
    const media = [{ url: "" }, { url: "https://x/b" }, {}];
    expect(messageReceivedEvent({ ...BARE, attachments: { state: "local", media } }).media).toStrictEqual([
      {},
      { url: "https://x/b" },
      {},
    ]);
  });

  it("should say transcribed only when it is true", () => {
    const fact = JSON.parse('{"path":"/a","transcribed":false}');
    expect(messageReceivedEvent({ ...BARE, attachments: { state: "local", media: [fact] } }).media).toStrictEqual([
      { path: "/a" },
    ]);
  });

  it("should be omitted while a remote attachment is not staged, with the pending flag and the provider's facts", () => {
    const original = [{ path: "/provider/a", url: "https://x/a" }];
    const message: InboundMessage = { ...BARE, attachments: { state: "remote", original } };
    for (const event of [inboundClaimEvent(message), messageReceivedEvent(message), finalizedContext(message)]) {
      expect(event).toMatchObject({ mediaStagingPending: true, originalMedia: original });
      expect(event).not.toHaveProperty("media");
    }
  });

  it("should carry media and no pending flag in every event built after staging", () => {
    const original = [{ url: "https://x/a" }];
    const media = [{ url: "https://x/a", path: "/w/a" }];
    const message: InboundMessage = { ...BARE, attachments: { state: "staged", original, media } };
    for (const event of [inboundClaimEvent(message), messageReceivedEvent(message), finalizedContext(message)]) {
      expect(event).toMatchObject({ media, originalMedia: original });
      expect(event).not.toHaveProperty("mediaStagingPending");
    }
  });

  it("should say nothing of attachments where there are none", () => {
    for (const attachments of [
      { state: "local", media: [] },
      { state: "remote", original: [] },
      { state: "staged", media: [], original: [] },
    ] as const) {
      expect(messageReceivedEvent({ ...BARE, attachments })).toStrictEqual({ from: "+49", content: "" });
    }
  });
});

describe("a location", () => {
  const told = (location: unknown) =>
    messageReceivedEvent({ ...BARE, ...JSON.parse(JSON.stringify({ location })) }).location;

  it("should be normalized to the known fields", () => {
    const all = {
      latitude: -33.8,
      longitude: 151.2,
      accuracy: 5,
      name: "n",
      address: "a",
      caption: "c",
      source: "live",
      isLive: true,
      livePeriodSeconds: 60,
    };
    expect(told({ ...all, heading: 9 })).toStrictEqual(all);
  });

  it("should leave out fields that are of another type or out of range", () => {
    const odd = { accuracy: -1, name: "", address: 7, source: "moon", isLive: "yes", livePeriodSeconds: null };
    expect(told({ latitude: 0, longitude: 0, ...odd })).toStrictEqual({ latitude: 0, longitude: 0 });
  });

  it.each([{ latitude: 91, longitude: 0 }, { latitude: 0, longitude: -181 }, { latitude: 0 }, { latitude: "1" }, {}])(
    "should be absent where it is no place on earth: %o",
    (location) => {
      expect(told(location)).toBeUndefined();
    },
  );
});

describe("a provider update", () => {
  it("should be told as a stable identity, when the channel supplies one", () => {
    const update = messageReceivedEvent({ ...BARE, providerUpdate: { id: "u-1", kind: "message" } }).providerUpdate;
    expect(update).toStrictEqual({ id: "u-1", kind: "message" });
  });

  it("should be absent without an id or a kind: that identifies nothing", () => {
    for (const providerUpdate of [
      { id: "", kind: "message" },
      { id: "u-1", kind: "" },
    ]) {
      expect(messageReceivedEvent({ ...BARE, providerUpdate })).not.toHaveProperty("providerUpdate");
    }
  });
});
