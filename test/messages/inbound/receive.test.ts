import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { ConversationBindings } from "#src/messages/inbound/bindings.js";
import { receiveMessage } from "#src/messages/inbound/receive.js";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import type { BeforeDispatchContext, BeforeDispatchEvent } from "#src/messages/types.js";
import { withRuns } from "../outbound/scene.js";
import { gate, gateway, MESSAGE, never } from "./gateway.js";

describe("the stages of an inbound message", () => {
  it("should be the owner's claim, message_received and before_dispatch, in this order", async () => {
    const asked: string[] = [];
    const { receive } = await gateway({
      owner: "other",
      on: {
        p: (api) => {
          api.on("before_dispatch", () => void asked.push("before_dispatch"));
          api.on("message_received", () => void asked.push("message_received"));
          api.on("inbound_claim", () => void asked.push("never: not the owner"));
        },
        other: (api) => api.on("message_received", () => void asked.push("message_received of other")),
      },
    });
    expect(await receive()).toMatchObject({ end: "dispatch", message: MESSAGE });
    expect(asked).toEqual(["message_received", "message_received of other", "before_dispatch"]);
  });

  it("should dispatch a message where no plugin is asked, and record nothing", async () => {
    const { receive, dispatcher, recordedPoints } = await gateway();
    expect(await receive()).toMatchObject({ end: "dispatch" });
    expect(dispatcher.admitted).toEqual([]);
    expect(await recordedPoints()).toEqual([]);
  });

  it("should be dispatches in the ledger, each one", async () => {
    const { receive, recordedPoints } = await gateway({
      owner: "p",
      on: {
        p: (api) => {
          api.on("inbound_claim", () => ({ handled: true }));
          api.on("message_received", () => {});
          api.on("before_dispatch", () => null);
        },
      },
    });
    await receive();
    expect(await recordedPoints()).toEqual(["inbound_claim"]);
  });
});

describe("message_received", () => {
  it("should never be awaited by the host", async () => {
    const { opened, open } = gate();
    const { receive } = await gateway({ on: { p: (api) => api.on("message_received", () => opened) } });
    expect(await receive()).toMatchObject({ end: "dispatch" });
    open();
  });

  it("should start all handlers in order, and change nothing whatever they return or throw", async () => {
    const asked: string[] = [];
    const { receive, log } = await gateway({
      on: {
        a: (api) =>
          api.on("message_received", () => {
            asked.push("a");
            throw new Error("boom");
          }),
        b: (api) =>
          api.on("message_received", () => {
            asked.push("b");
            return { handled: true, cancel: true };
          }),
      },
    });
    expect(await receive()).toMatchObject({ end: "dispatch", message: MESSAGE });
    expect(asked).toEqual(["a", "b"]);
    expect(log).toEqual([expect.stringContaining("message_received: handler a failed")]);
  });

  it("should be told although the turn is aborted, before the abort is looked at", async () => {
    const turn = new AbortController();
    const { receive, hooks, dispatcher, recordedPoints } = await gateway({
      on: {
        p: (api) => {
          api.on("message_received", () => {});
          api.on("before_dispatch", never);
        },
      },
    });
    const ownerOf = () => {
      turn.abort();
      return null;
    };
    const bindings = new ConversationBindings({ plugins: hooks.plugins, ownerOf });
    expect(await receive({}, { signal: turn.signal, bindings })).toEqual({ end: "aborted" });
    expect(dispatcher.admitted).toEqual([]);
    expect(await recordedPoints()).toEqual(["message_received"]);
  });

  it("should not be told of a message that its conversation's owner took", async () => {
    const { receive } = await gateway({
      owner: "p",
      on: {
        p: (api) => {
          api.on("inbound_claim", () => ({ handled: true }));
          api.on("message_received", never);
        },
      },
    });
    expect(await receive()).toMatchObject({ end: "handled", hook: "inbound_claim" });
  });
});

describe("before_dispatch", () => {
  it("should receive the incoming message before ordinary model dispatch", async () => {
    const seen: [BeforeDispatchEvent, BeforeDispatchContext][] = [];
    const { receive } = await gateway({
      on: { p: (api) => api.on("before_dispatch", (event, ctx) => void seen.push([event, ctx])) },
    });
    await receive();
    expect(seen).toEqual([
      [
        {
          content: "hello",
          messageId: "m-1",
          body: "hello",
          channel: "telegram",
          sessionKey: "s-1",
          senderId: "u-1",
          isGroup: false,
        },
        {
          messageId: "m-1",
          channelId: "telegram",
          accountId: "acct",
          conversationId: "chat-1",
          sessionKey: "s-1",
          senderId: "u-1",
        },
      ],
    ]);
  });

  it("should send exactly one final payload with only the text of a handled result", async () => {
    const { receive, dispatcher } = await gateway({
      on: {
        p: (api) =>
          api.on("before_dispatch", () =>
            Object.assign({ handled: true, text: "done" }, { mediaUrl: "/etc/passwd", reply: { text: "not this" } }),
          ),
      },
    });
    expect(await receive()).toEqual({
      end: "handled",
      hook: "before_dispatch",
      by: "p",
      dispatchId: expect.any(String),
      queuedFinal: true,
    });
    expect(dispatcher.admitted).toEqual([{ kind: "final", payload: { text: "done" } }]);
  });

  it.each([{}, { text: "" }, { text: null }, { text: 7 }])(
    "should handle the message without sending anything for a handled result without text: %o",
    async (more) => {
      const { receive, dispatcher } = await gateway({
        on: { p: (api) => api.on("before_dispatch", () => ({ handled: true, ...JSON.parse(JSON.stringify(more)) })) },
      });
      expect(await receive()).toMatchObject({ end: "handled", queuedFinal: false });
      expect(dispatcher.admitted).toEqual([]);
    },
  );

  it("should handle the message also where its text cannot be read", async () => {
    const { receive, dispatcher } = await gateway({
      on: {
        p: (api) =>
          api.on("before_dispatch", () => ({
            handled: true,
            get text(): string {
              throw new Error("unreadable");
            },
          })),
      },
    });
    expect(await receive()).toMatchObject({ end: "handled", queuedFinal: false });
    expect(dispatcher.admitted).toEqual([]);
  });

  it("should send its final through the normal final path, delivery hooks included", async () => {
    const sent: (string | undefined)[] = [];
    const { receive, hooks, options } = await gateway({
      on: {
        p: (api) => api.on("before_dispatch", () => ({ handled: true, text: "done" })),
        q: (api) => {
          api.on("reply_payload_sending", ({ payload, kind }) => ({
            payload: { ...payload, text: `${kind} ${payload.text}` },
          }));
          api.on("message_sending", ({ content }) => ({ content: `${content}!` }));
        },
      },
    });
    const dispatcher = createReplyDispatcher({
      runs: hooks.runs,
      idempotencyKey: "k",
      route: {
        to: "+49",
        context: { channelId: "telegram" },
        adapter: {
          channelId: "telegram",
          send: ({ part }) => {
            sent.push(part.text);
            return { messageId: "out-1" };
          },
        },
      },
    });
    await receive({}, { ...options, dispatcher });
    await dispatcher.waitForIdle();
    expect(sent).toEqual(["final done!"]);
  });

  it("should be a claim and no API for rewriting: the message stays as it came", async () => {
    const seen: string[] = [];
    const { receive } = await gateway({
      on: {
        p: (api) =>
          api.on("before_dispatch", (event) => {
            Reflect.set(event, "content", "changed in place");
            return Object.assign({ handled: false }, { content: "rewritten", text: "unsent", body: "rewritten" });
          }),
        q: (api) => api.on("before_dispatch", ({ content }) => void seen.push(content)),
      },
    });
    expect(await receive()).toMatchObject({ end: "dispatch", message: MESSAGE });
    expect(seen).toEqual(["hello"]);
  });

  it.each([undefined, null, {}, { handled: false, text: "x" }, { handled: 0 }, "handled", 7])(
    "should decline by anything that is not handled: %o",
    async (result) => {
      const { receive, dispatcher } = await gateway({
        on: { p: (api) => api.on("before_dispatch", () => JSON.parse(JSON.stringify({ result })).result) },
      });
      expect(await receive()).toMatchObject({ end: "dispatch" });
      expect(dispatcher.admitted).toEqual([]);
    },
  );

  it("should have reply_dispatch and the model skipped when it is claimed", async () => {
    const { receive, recordedPoints } = await gateway({
      on: {
        p: (api) => {
          api.on("before_dispatch", () => ({ handled: true, text: "mine" }));
          api.on("reply_dispatch", never);
          api.on("before_agent_reply", never);
        },
      },
    });
    expect(await receive()).not.toHaveProperty("message");
    expect(await recordedPoints()).toEqual(["before_dispatch"]);
  });

  it("should be final: nobody after the claimer is asked, and the message never comes again", async () => {
    const { receive, dispatcher } = await gateway({
      on: {
        p: (api) => {
          api.on("before_dispatch", () => ({ handled: true, text: "mine" }), { priority: 1 });
          api.on("before_dispatch", never);
        },
      },
    });
    await receive();
    expect(await receive()).toEqual({ end: "duplicate" });
    expect(dispatcher.admitted).toHaveLength(1);
  });

  it("should fail open: a handler that throws or rejects is recorded, and the next one is asked", async () => {
    const { receive, log } = await gateway({
      on: {
        a: (api) =>
          api.on("before_dispatch", () => {
            throw new Error("sync");
          }),
        b: (api) => api.on("before_dispatch", () => Promise.reject(new Error("async"))),
        c: (api) => api.on("before_dispatch", () => ({ handled: true })),
      },
    });
    expect(await receive()).toMatchObject({ end: "handled", by: "c" });
    expect(log).toEqual([
      expect.stringContaining("before_dispatch: handler a failed"),
      expect.stringContaining("before_dispatch: handler b failed"),
    ]);
  });

  it("should be raced against the turn's abort signal, and a late claim counts for nothing", async () => {
    const turn = new AbortController();
    const { opened, open } = gate();
    const { receive, dispatcher } = await gateway({
      on: {
        p: (api) =>
          api.on("before_dispatch", async () => {
            turn.abort();
            await opened;
            return { handled: true, text: "late" };
          }),
      },
    });
    expect(await receive({}, { signal: turn.signal })).toEqual({ end: "aborted" });
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect(dispatcher.admitted).toEqual([]);
  });
});

describe("a message that comes twice", () => {
  it("should be dispatched once, and be a duplicate after that", async () => {
    const { receive } = await gateway();
    expect(await receive()).toMatchObject({ end: "dispatch" });
    expect(await receive()).toEqual({ end: "duplicate" });
    expect(await receive({ messageId: "m-2" })).toMatchObject({ end: "dispatch" });
  });

  it("should be told to observers and claimers once, also when both come at once", async () => {
    let observed = 0;
    const { receive, dispatcher } = await gateway({
      on: {
        p: (api) => {
          api.on("message_received", () => void observed++);
          api.on("before_dispatch", async () => ({ handled: true, text: "once" }));
        },
      },
    });
    const ends = await Promise.all([receive(), receive(), receive()]);
    expect(ends.map(({ end }) => end)).toEqual(["handled", "duplicate", "duplicate"]);
    expect([observed, dispatcher.admitted]).toEqual([1, [{ kind: "final", payload: { text: "once" } }]]);
  });

  it("should go to the one that waits when the first one's turn is aborted", async () => {
    const turn = new AbortController();
    const { opened, open } = gate();
    const { receive } = await gateway({ on: { p: (api) => api.on("before_dispatch", () => opened.then(() => null)) } });
    const first = receive({}, { signal: turn.signal });
    const second = receive();
    turn.abort();
    expect(await first).toEqual({ end: "aborted" });
    open();
    expect(await second).toMatchObject({ end: "dispatch" });
  });

  it("should be let in again when the host's own part threw", async () => {
    const { receive, options, hooks } = await gateway();
    const failing = new ConversationBindings({
      plugins: hooks.plugins,
      ownerOf: () => Promise.reject(new Error("no database")),
    });
    await expect(receiveMessage(MESSAGE, { ...options, bindings: failing })).rejects.toThrow("no database");
    expect(await receive()).toMatchObject({ end: "dispatch" });
  });

  it("should be let in again when its dispatch did not begin and is given back", async () => {
    const { receive } = await gateway();
    const first = await receive();
    if (first.end !== "dispatch") return expect.unreachable();
    first.giveBack();
    expect(await receive()).toMatchObject({ end: "dispatch" });
  });

  it("should not begin at all when the turn is aborted already", async () => {
    const told: unknown[] = [];
    const { receive } = await gateway({
      on: { p: (api) => api.on("message_received", ({ messageId }) => void told.push(messageId)) },
    });
    expect(await receive({}, { signal: AbortSignal.abort() })).toEqual({ end: "aborted" });
    expect(await receive({ messageId: "m-2" })).toMatchObject({ end: "dispatch" });
    expect(told).toEqual(["m-2"]);
  });
});

describe("messages that come in any number and order", () => {
  it("should each be taken once, unless every one of their turns was aborted", async () => {
    const delivery = fc.record({ messageId: fc.constantFrom("a", "b"), aborts: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.boolean(),
        fc.array(delivery, { maxLength: 8 }),
        async (scheduler, claims, all) => {
          const { receive, dispatcher } = await gateway({
            on: {
              p: (api) =>
                api.on("before_dispatch", async () => {
                  await scheduler.schedule(Promise.resolve(), "answers");
                  return { handled: claims, text: "mine" };
                }),
            },
          });
          const ends = await scheduler.waitFor(
            Promise.all(
              all.map(async ({ messageId, aborts }) => {
                await scheduler.schedule(Promise.resolve(), "comes");
                const turn = new AbortController();
                if (aborts) void scheduler.schedule(Promise.resolve(), "aborts").then(() => turn.abort());
                const { end } = await receive({ messageId }, { signal: turn.signal });
                return { messageId, end };
              }),
            ),
          );
          for (const id of ["a", "b"]) {
            const taken = ends.filter(
              ({ messageId, end }) => messageId === id && (end === "handled" || end === "dispatch"),
            );
            const wanted = all.some(({ messageId, aborts }) => messageId === id && !aborts);
            expect(taken.length).toBeLessThanOrEqual(1);
            if (wanted) expect(taken).toHaveLength(1);
          }
          expect(dispatcher.admitted).toHaveLength(ends.filter(({ end }) => end === "handled").length);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe("a fault of ours while observers are told", () => {
  it("should be logged, and never reach the message or the process", async () => {
    const { options, log } = await gateway();
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    const runs = withRuns(options.runs, { notify: () => Promise.reject(new Error("a bug")) });
    expect(await receiveMessage(MESSAGE, { ...options, runs })).toMatchObject({ end: "dispatch" });
    await new Promise((resolve) => setImmediate(resolve));
    expect([unhandled, log]).toEqual([[], [expect.stringContaining("a bug")]]);
  });
});
