import { describe, expect, it } from "vitest";
import type { MediaFact } from "#src/messages/facts.js";
import { finalizedContext } from "#src/messages/inbound/contexts.js";
import type { InboundMessage } from "#src/messages/inbound/message.js";
import { type StagedMedia, stageMedia } from "#src/messages/inbound/staging.js";
import type { MessageReceivedEvent } from "#src/messages/types.js";
import { gate, gateway, MESSAGE, never, REMOTE } from "./gateway.js";

const PENDING: InboundMessage = { ...MESSAGE, attachments: { state: "remote", original: [REMOTE, { url: "b" }] } };

async function mediaAfter(results: readonly (StagedMedia | null)[]): Promise<readonly MediaFact[] | undefined> {
  const message = await stageMedia(PENDING, { stage: () => results });
  return message.attachments?.state === "staged" ? message.attachments.media : undefined;
}

describe("media staging", () => {
  it("should leave media out, flag it pending and give the provider's facts to everyone who is told before", async () => {
    const seen: unknown[] = [];
    const { receive } = await gateway({
      owner: "p",
      on: {
        p: (api) => {
          api.on("inbound_claim", (event) => {
            seen.push(event);
            throw new Error("not mine");
          });
        },
      },
    });
    await receive({ attachments: { state: "remote", original: [REMOTE] } });
    expect(seen).toEqual([expect.objectContaining({ mediaStagingPending: true, originalMedia: [REMOTE] })]);
    expect(seen[0]).not.toHaveProperty("media");
  });

  it("should come behind before_dispatch, so that nothing is fetched for a message that is claimed", async () => {
    const { receive } = await gateway({ on: { p: (api) => api.on("before_dispatch", () => ({ handled: true })) } });
    const end = await receive({ attachments: { state: "remote", original: [REMOTE] } }, { stage: never });
    expect(end).toMatchObject({ end: "handled" });
  });

  it("should not repeat message_received, and dispatch the message with media", async () => {
    const received: MessageReceivedEvent[] = [];
    const { receive } = await gateway({
      on: { p: (api) => api.on("message_received", (event) => void received.push(event)) },
    });
    const end = await receive(
      { attachments: { state: "remote", original: [REMOTE] } },
      { stage: () => [{ path: "/srv/media/a.png", workspaceDir: "/srv/media" }] },
    );
    expect(received).toEqual([expect.objectContaining({ mediaStagingPending: true })]);
    if (end.end !== "dispatch") return expect.unreachable();
    const context = finalizedContext(end.message);
    expect(context).toMatchObject({
      media: [{ path: "/srv/media/a.png", workspaceDir: "/srv/media", url: REMOTE.url, contentType: "image/png" }],
      originalMedia: [REMOTE],
    });
    expect(context).not.toHaveProperty("mediaStagingPending");
  });

  it("should never present the provider's path as one that can be read here", async () => {
    expect(await mediaAfter([null, { path: "/w/b" }])).toStrictEqual([
      { url: REMOTE.url, contentType: "image/png" },
      { url: "b", path: "/w/b" },
    ]);
  });

  it("should take the content type that the fetched file turned out to have", async () => {
    expect(await mediaAfter([{ path: "/w/a", contentType: "image/webp" }, null])).toStrictEqual([
      { path: "/w/a", url: REMOTE.url, contentType: "image/webp" },
      { url: "b" },
    ]);
  });

  it.each<[string, () => readonly (StagedMedia | null)[] | Promise<readonly (StagedMedia | null)[]>]>([
    [
      "throws",
      () => {
        throw new Error("disk full");
      },
    ],
    ["rejects", () => Promise.reject(new Error("disk full"))],
    ["does not answer for each attachment", () => [{ path: "/w/whose?" }]],
    ["answers with something else", () => JSON.parse('"/w/a"')],
  ])("should dispatch the message with media that has no path, and warn, when the host %s", async (_, stage) => {
    const { receive, log } = await gateway();
    const end = await receive({ attachments: PENDING.attachments ?? expect.unreachable() }, { stage });
    if (end.end !== "dispatch") return expect.unreachable();
    expect(end.message.attachments).toMatchObject({
      state: "staged",
      media: [{ url: REMOTE.url, contentType: "image/png" }, { url: "b" }],
    });
    expect(finalizedContext(end.message)).not.toHaveProperty("mediaStagingPending");
    expect(log).toEqual([expect.stringMatching(/^warn (disk full|no attachment is staged)/)]);
  });

  it("should be waited for no longer than the turn", async () => {
    const turn = new AbortController();
    const { opened, open } = gate();
    const { receive } = await gateway();
    const end = receive(
      { attachments: { state: "remote", original: [REMOTE] } },
      {
        signal: turn.signal,
        stage: async () => {
          turn.abort();
          await opened;
          throw new Error("late, and nobody's");
        },
      },
    );
    expect(await end).toEqual({ end: "aborted" });
    open();
    expect(await receive({ attachments: { state: "remote", original: [REMOTE] } })).toMatchObject({ end: "dispatch" });
  });

  it("should leave no listener on the turn's signal", async () => {
    const turn = new AbortController();
    let listeners = 0;
    const { signal } = turn;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...given: Parameters<typeof add>) => {
      listeners++;
      add(...given);
    };
    signal.removeEventListener = (...given: Parameters<typeof remove>) => {
      listeners--;
      remove(...given);
    };
    await stageMedia(PENDING, { stage: () => [null, null], signal });
    expect(listeners).toBe(0);
  });

  it("should fetch nothing for media that is local or staged, and leave all as it is without a stager", async () => {
    const stage = never;
    const { receive } = await gateway();
    for (const attachments of [
      { state: "local", media: [{ path: "/w/a" }] },
      { state: "staged", media: [{ path: "/w/a" }], original: [REMOTE] },
      { state: "remote", original: [] },
    ] as const) {
      const message = { ...MESSAGE, attachments };
      expect(await stageMedia(message, { stage })).toBe(message);
    }
    expect(await receive(PENDING)).toMatchObject({ end: "dispatch", message: PENDING });
  });
});
