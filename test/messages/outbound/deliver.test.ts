import { describe, expect, it } from "vitest";
import type { ReplyPayload } from "#src/messages/facts.js";
import { deliver, deliverDirect } from "#src/messages/outbound/deliver.js";
import { replayStream } from "#src/replay/replay.js";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore, fromNth, REFUSE } from "../../support/faulty-store.js";
import { VirtualClock } from "../../support/virtual-clock.js";
import { CONTEXT, gate, marked, scene, stage, withRuns } from "./scene.js";

describe("the order of the outbound stages", () => {
  it("should be normalise, reply_payload_sending, message_sending, strip, empty check, send, message_sent", async () => {
    const order: unknown[] = [];
    const { channel, deliverOne, told } = await scene((api) => {
      api.on("message_sent", ({ content }) => void order.push(["message_sent", content]));
      api.on("message_sending", ({ content }) => {
        order.push(["message_sending", content]);
        return { content: `${content} b` };
      });
      api.on("reply_payload_sending", ({ payload }) => {
        order.push(["reply_payload_sending", payload]);
        return { payload: { ...payload, text: `${payload.text} a`, spokenText: "hidden" } };
      });
    });
    channel.beforeDeliver = [stage((message) => marked(message, " c"))];
    channel.answer = ({ part }) => {
      order.push(["send", part]);
      return { messageId: "m" };
    };
    await deliverOne({ text: "x", mediaUrl: "  ", mediaUrls: [] });
    await told();
    expect(order).toEqual([
      ["reply_payload_sending", { text: "x" }],
      ["message_sending", "x a"],
      ["send", { text: "x a b c" }],
      ["message_sent", "x a b c"],
    ]);
  });

  it("should run for each payload in turn", async () => {
    const order: string[] = [];
    const { channel, deliver } = await scene((api) => {
      api.on("reply_payload_sending", ({ payload }) => void order.push(`edit ${payload.text}`));
      api.on("message_sending", ({ content }) => void order.push(`rewrite ${content}`));
    });
    channel.answer = ({ part }) => {
      order.push(`send ${part.text}`);
      return {};
    };
    await deliver([{ text: "1" }, { text: "2" }]);
    expect(order).toEqual(["edit 1", "rewrite 1", "send 1", "edit 2", "rewrite 2", "send 2"]);
  });

  it("should run the modifying hooks once a payload, also where it goes out in several parts", async () => {
    let asked = 0;
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => void asked++);
      api.on("message_sending", () => void asked++);
    });
    await deliverOne({ text: "x", mediaUrls: ["a", "b", "c"] });
    expect([asked, channel.sends.length]).toEqual([2, 3]);
  });

  it("should keep a record of each hook run under the session and run of the reply", async () => {
    const { store, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => null);
      api.on("message_sending", () => ({ cancel: true }));
    });
    const { hookRuns } = await deliverOne({ text: "x" });
    expect(hookRuns).toEqual([
      { hook: "reply_payload_sending", dispatchId: expect.any(String), recorded: true },
      { hook: "message_sending", dispatchId: expect.any(String), recorded: true },
    ]);
    for (const { hook, dispatchId } of hookRuns) {
      const stream = await store.readStream(`hookdispatch-${dispatchId}`);
      expect(stream && replayStream(stream)).toMatchObject({
        session: "s-1",
        turn: "r-1",
        state: { started: { point: hook } },
      });
    }
  });

  it("should have no hook runs where there are no handlers", async () => {
    const { deliverOne } = await scene();
    expect(await deliverOne({ text: "x" })).toEqual({
      status: "sent",
      receipts: [{ messageId: "m-1" }],
      payload: { text: "x" },
      hookRuns: [],
    });
  });
});

describe("what the sending hooks see", () => {
  it("should be for reply_payload_sending the normalised payload, kind, channel, session and run", async () => {
    const seen: unknown[] = [];
    const { deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", (event, ctx) => void seen.push(event, ctx));
    });
    const payload: ReplyPayload = {
      text: "x",
      mediaUrls: ["a"],
      presentation: { buttons: ["ok"] },
      delivery: { silent: true },
      replyToId: "m-0",
      isError: true,
    };
    await deliverOne(payload, { kind: "block" });
    expect(seen).toEqual([
      { payload, kind: "block", channel: "test", sessionKey: "s-1", runId: "r-1" },
      expect.objectContaining(CONTEXT),
    ]);
  });

  it("should be for message_sending to, content, reply and thread ids, channel, account and media", async () => {
    const seen: unknown[] = [];
    const { deliverOne } = await scene((api) => {
      api.on("message_sending", (event, ctx) => void seen.push(event, ctx));
    });
    await deliverOne({ text: "x", mediaUrl: "a", mediaUrls: ["b"], replyToId: "m-0" });
    expect(seen).toEqual([
      {
        to: "+49",
        content: "x",
        replyToId: "m-0",
        threadId: "th-1",
        metadata: { channel: "test", accountId: "acct", mediaUrls: ["a", "b"] },
      },
      expect.objectContaining(CONTEXT),
    ]);
  });

  it("should leave out ids that are empty or not known", async () => {
    const seen: object[] = [];
    const contexts: object[] = [];
    const { options } = await scene((api) => {
      const see = (event: object, ctx: object): void => {
        seen.push(event);
        contexts.push(ctx);
      };
      api.on("reply_payload_sending", see);
      api.on("message_sending", see);
    });
    const context = { channelId: "test", sessionKey: "", runId: "", accountId: "" };
    await deliver([{ text: "x" }], { ...options, route: { adapter: options.route.adapter, to: "+49", context } });
    expect(seen).toEqual([
      { payload: { text: "x" }, kind: "final", channel: "test" },
      { to: "+49", content: "x", metadata: { channel: "test" } },
    ]);
    expect(contexts).toEqual([{ channelId: "test" }, { channelId: "test" }]);
  });
});

describe("what the sending hooks may do", () => {
  it("should send a payload whose presentation, delivery, media and text reply_payload_sending rewrote", async () => {
    const made = { text: "new", mediaUrls: ["n"], presentation: { card: 1 }, delivery: { pin: true }, replyToId: "q" };
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => ({ payload: made }));
    });
    await deliverOne({ text: "old", mediaUrl: "o" });
    expect(channel.sends.map(({ part }) => part)).toEqual([
      {
        text: "new",
        media: { url: "n", trustedLocal: false },
        presentation: { card: 1 },
        delivery: { pin: true },
        replyToId: "q",
      },
    ]);
  });

  it("should hand each reply_payload_sending handler the latest payload of those of higher priority", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", ({ payload }) => ({ payload: { text: `${payload.text}2` } }), { priority: 1 });
      api.on("reply_payload_sending", ({ payload }) => ({ payload: { text: `${payload.text}1` } }), { priority: 2 });
    });
    await deliverOne({ text: "0" });
    expect(channel.texts).toEqual(["012"]);
  });

  it("should give each message_sending handler the original content, and send the last one returned", async () => {
    const seen: string[] = [];
    const { channel, deliverOne } = await scene((api) => {
      for (const content of ["first", "last"]) {
        api.on("message_sending", (event) => {
          seen.push(event.content);
          return { content };
        });
      }
    });
    await deliverOne({ text: "original" });
    expect([seen, channel.texts]).toEqual([["original", "original"], ["last"]]);
  });

  it("should let a later message_sending handler still cancel, and never send content that comes with it", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("message_sending", () => ({ content: "rewritten" }));
      api.on("message_sending", () => ({ cancel: true, content: "never" }));
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({ status: "suppressed" });
    expect(channel.sends).toEqual([]);
  });

  it("should take cancel: false, and what is truthy but not true, for no decision", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("message_sending", () => ({ cancel: false }));
      api.on("message_sending", () => ({ cancel: 1 }) as object);
      api.on("reply_payload_sending", () => ({ cancel: "yes" }) as object);
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({ status: "sent" });
    expect(channel.texts).toEqual(["x"]);
  });

  it("should send what a payload hook that failed left alone", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => ({ payload: null }) as object);
      api.on("reply_payload_sending", () => ({ payload: { text: "x", on: () => {} } }) as object);
      api.on("message_sending", () => Promise.reject(new Error("boom")));
    });
    expect(await deliverOne({ text: "kept" })).toMatchObject({ status: "sent" });
    expect(channel.texts).toEqual(["kept"]);
  });

  it("should send nothing but the known fields of what a handler returns, of their types", async () => {
    const made = { text: 7, mediaUrls: ["a", 5, null, " "], isError: "yes", extra: "x", spokenText: {} };
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => ({ payload: made }) as object);
    });
    await deliverOne({ text: "x" });
    expect(channel.sends[0]?.part).toEqual({ media: { url: "a", trustedLocal: false } });
  });
});

describe("a sending hook that hangs", () => {
  it.each(["reply_payload_sending", "message_sending"] as const)(
    "should have 15 s by default where it is %s, and then count for nothing",
    async (hook) => {
      const clock = new VirtualClock();
      const { channel, deliverOne } = await scene((api) => void api.on(hook, () => new Promise(() => {})), { clock });
      let sentAt = Number.NaN;
      channel.answer = () => {
        sentAt = clock.now();
        return {};
      };
      const delivering = deliverOne({ text: "x" });
      await clock.run(() => channel.sends.length > 0);
      expect(await delivering).toMatchObject({ status: "sent" });
      expect([sentAt, channel.texts]).toEqual([15_000, ["x"]]);
    },
  );
});

describe("a suppressed delivery", () => {
  it("should have been cancelled by reply_payload_sending, which says why", async () => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => ({ cancel: true, reason: "quiet hours" }));
      api.on("message_sending", () => {
        throw new Error("asked");
      });
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "suppressed",
      reason: "cancelled_by_reply_payload_sending_hook",
      by: "p",
      hookEffect: { cancelReason: "quiet hours" },
      hookRuns: [{ hook: "reply_payload_sending" }],
    });
    expect(channel.sends).toEqual([]);
  });

  it.each<[string, object]>([
    ["nothing", {}],
    ["a blank text", { text: " \n" }],
    ["the silent reply", { text: "NO_REPLY" }],
    ["blank media", { mediaUrl: "", mediaUrls: [" "] }],
    ["a transcript alone", { spokenText: "hi" }],
    ["an empty presentation", { presentation: {} }],
  ])("should have been emptied by a reply_payload_sending that left %s", async (_, payload) => {
    const { channel, deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => ({ payload }));
      api.on("message_sending", () => {
        throw new Error("asked");
      });
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "suppressed",
      reason: "empty_after_reply_payload_sending_hook",
      hookRuns: [{}],
    });
    expect(channel.sends).toEqual([]);
  });

  it("should have been cancelled by message_sending, with its reason and metadata as hook effect", async () => {
    const { deliverOne } = await scene((api) => {
      api.on("message_sending", () => ({ cancel: true, cancelReason: "policy", metadata: { rule: 7, a: [1, null] } }));
    });
    const outcome = await deliverOne({ text: "x" });
    expect(outcome).toMatchObject({ status: "suppressed", reason: "cancelled_by_message_sending_hook", by: "p" });
    expect(outcome.status === "suppressed" && outcome.hookEffect).toEqual({
      cancelReason: "policy",
      metadata: { rule: 7, a: [1, null] },
    });
  });

  it("should have no hook effect where the cancellation said nothing", async () => {
    const { deliverOne } = await scene((api) => void api.on("message_sending", () => ({ cancel: true })));
    expect(await deliverOne({ text: "x" })).not.toHaveProperty("hookEffect");
  });

  it.each(["", "  ", "NO_REPLY"])("should have been emptied by a message_sending that returned %j", async (content) => {
    const { channel, deliverOne } = await scene((api) => void api.on("message_sending", () => ({ content })));
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "suppressed",
      reason: "empty_after_message_sending_hook",
    });
    expect(channel.sends).toEqual([]);
  });

  it("should not be one where a rewrite to nothing leaves media", async () => {
    const { channel, deliverOne } = await scene((api) => void api.on("message_sending", () => ({ content: "" })));
    expect(await deliverOne({ text: "x", mediaUrl: "a" })).toMatchObject({ status: "sent" });
    expect(channel.sends[0]?.part).toEqual({ media: { url: "a", trustedLocal: false } });
  });

  it.each<[string, ReplyPayload]>([
    ["no content", {}],
    ["a blank text", { text: " " }],
    ["the silent reply", { text: " NO_REPLY\n" }],
    ["a transcript without audio", { spokenText: "hi" }],
  ])("should be one without anything visible where there was %s anyway, and no hook is asked", async (_, payload) => {
    let asked = 0;
    const { channel, deliverOne, told } = await scene((api) => {
      api.on("reply_payload_sending", () => void asked++);
      api.on("message_sending", () => void asked++);
    });
    expect(await deliverOne(payload)).toEqual({
      status: "suppressed",
      reason: "no_visible_payload",
      payload: null,
      hookRuns: [],
    });
    expect([asked, channel.sends, await told()]).toEqual([0, [], []]);
  });

  it.each(["reply_payload_sending", "message_sending"] as const)(
    "should be one that a failed %s handler blocked, where the operator wants that",
    async (hook) => {
      const { channel, deliverOne, told } = await scene(
        (api) => {
          api.on(hook, () => {
            throw new Error("boom");
          });
        },
        { hooks: { onFailure: { [hook]: "block" } } },
      );
      expect(await deliverOne({ text: "x" })).toMatchObject({
        status: "suppressed",
        reason: "blocked_by_failed_hook",
        by: "p",
      });
      expect([channel.sends, await told()]).toEqual([[], []]);
    },
  );

  it.each(["reply_payload_sending", "message_sending"] as const)(
    "should be one that a hung %s handler blocked, where the operator wants that",
    async (hook) => {
      const { channel, deliverOne } = await scene((api) => void api.on(hook, () => new Promise(() => {})), {
        hooks: { onFailure: { [hook]: "block" }, timeouts: { [hook]: 5 } },
      });
      expect(await deliverOne({ text: "x" })).toMatchObject({ reason: "blocked_by_failed_hook" });
      expect(channel.sends).toEqual([]);
    },
  );

  it("should block for the hook that the operator named, and for no other", async () => {
    const { deliverOne } = await scene(
      (api) => void api.on("message_sending", () => Promise.reject(new Error("boom"))),
      {
        hooks: { onFailure: { reply_payload_sending: "block" } },
      },
    );
    expect(await deliverOne({ text: "x" })).toMatchObject({ status: "sent" });
  });

  it("should be attempted and successful: nothing fails, nothing is retried", async () => {
    let asked = 0;
    const { deliver } = await scene((api) => {
      api.on("message_sending", () => {
        asked++;
        return { cancel: true };
      });
    });
    expect(await deliver([{ text: "x" }])).toMatchObject({ status: "suppressed" });
    expect(asked).toBe(1);
  });
});

describe("a ledger that fails", () => {
  it("should not keep anything from being rewritten and sent, and be flagged", async () => {
    const { channel, deliverOne } = await scene((api) => void api.on("message_sending", () => ({ content: "new" })), {
      store: new FaultyStore(openMemoryStore(), fromNth(1, REFUSE)),
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "sent",
      hookRuns: [{ hook: "message_sending", recorded: false }],
    });
    expect(channel.texts).toEqual(["new"]);
  });

  it("should not let through what a handler cancelled", async () => {
    const { channel, deliverOne } = await scene((api) => void api.on("message_sending", () => ({ cancel: true })), {
      store: new FaultyStore(openMemoryStore(), fromNth(1, REFUSE)),
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({ reason: "cancelled_by_message_sending_hook" });
    expect(channel.sends).toEqual([]);
  });
});

describe("an aborted delivery", () => {
  it.each(["reply_payload_sending", "message_sending"] as const)(
    "should send nothing where the turn was aborted while %s ran",
    async (hook) => {
      const turn = new AbortController();
      const { channel, deliverOne, told } = await scene((api) => {
        api.on(hook, () => {
          turn.abort(new Error("superseded"));
          return {};
        });
      });
      expect(await deliverOne({ text: "x" }, { signal: turn.signal })).toMatchObject({
        status: "failed",
        failure: { at: "aborted", message: "the turn was aborted" },
      });
      expect(channel.sends).toEqual([]);
      expect(await told()).toMatchObject([{ content: "x", success: false, error: "the turn was aborted" }]);
    },
  );

  it.each(["waterfall", "rewrite"] as const)(
    "should look at the signal again behind the %s, also where its run came through",
    async (run) => {
      const turn = new AbortController();
      const { channel, options } = await scene();
      const { runs } = options;
      const aborting = withRuns(runs, {
        waterfall: async (event, context) => {
          if (run === "waterfall") turn.abort();
          return runs.waterfall(event, context);
        },
        rewrite: async (event, context) => {
          if (run === "waterfall") throw new Error("asked");
          turn.abort();
          return runs.rewrite(event, context);
        },
      });
      const batch = await deliver([{ text: "x" }], { ...options, runs: aborting, signal: turn.signal });
      expect(batch).toMatchObject({ status: "failed", failure: { at: "aborted" } });
      expect(channel.sends).toEqual([]);
    },
  );

  it("should not wait for a handler that hangs", async () => {
    const turn = new AbortController();
    const called = gate();
    const { deliverOne } = await scene((api) => {
      api.on("message_sending", () => {
        called.open();
        return new Promise(() => {});
      });
    });
    const delivering = deliverOne({ text: "x" }, { signal: turn.signal });
    await called.opened;
    turn.abort();
    expect(await delivering).toMatchObject({ status: "failed", failure: { at: "aborted" } });
  });

  it("should fail each of N payloads whose preparation was aborted, and tell of each", async () => {
    const turn = new AbortController();
    turn.abort();
    const { channel, deliver, told } = await scene((api) => {
      api.on("reply_payload_sending", () => {
        throw new Error("asked");
      });
    });
    const batch = await deliver([{ text: "1" }, { text: "" }, { text: "2" }, { text: "3" }], { signal: turn.signal });
    expect(batch.outcomes.map(({ status }) => status)).toEqual(["failed", "suppressed", "failed", "failed"]);
    expect(batch.outcomes.flatMap(({ hookRuns }) => hookRuns)).toEqual([]);
    expect((await told()).map(({ content, success }) => [content, success])).toEqual([
      ["1", false],
      ["2", false],
      ["3", false],
    ]);
    expect(channel.sends).toEqual([]);
  });

  it("should keep what was sent before, and fail the rest", async () => {
    const turn = new AbortController();
    const { channel, deliver } = await scene();
    channel.answer = () => {
      turn.abort();
      return { messageId: "m" };
    };
    expect(await deliver([{ text: "1" }, { text: "2" }], { signal: turn.signal })).toMatchObject({
      status: "partial_failed",
      receipts: [{ messageId: "m" }],
      outcomes: [{ status: "sent" }, { status: "failed", failure: { at: "aborted" } }],
    });
  });
});

describe("legacy direct delivery", () => {
  it("should return the receipts of what was sent, and an empty array for what was suppressed", async () => {
    const { options } = await scene((api) => {
      api.on("message_sending", ({ content }) => ({ cancel: content === "no" }));
    });
    expect(await deliverDirect([{ text: "no" }], options)).toEqual([]);
    expect(await deliverDirect([{ text: "" }], options)).toEqual([]);
    expect(await deliverDirect([{ text: "a" }, { text: "no" }, { text: "b" }], options)).toEqual([
      { messageId: "m-1" },
      { messageId: "m-2" },
    ]);
  });

  it("should reject with what the channel threw", async () => {
    const { channel, options } = await scene();
    const thrown = new Error("offline");
    channel.answer = () => Promise.reject(thrown);
    await expect(deliverDirect([{ text: "a" }], options)).rejects.toBe(thrown);
  });
});

describe("faults of our own", () => {
  it("should fail the delivery before anything is sent, and never reject", async () => {
    const { channel, options, warnings } = await scene();
    const bug = () => Promise.reject(new Error("bug"));
    const runs = withRuns(options.runs, { waterfall: bug, notify: bug });
    const batch = await deliver([{ text: "x" }], { ...options, runs });
    expect(batch).toMatchObject({ status: "failed", failure: { at: "before-send", message: "bug" } });
    expect([channel.sends, warnings]).toEqual([[], [{ kind: "message-sent-lost", message: "bug" }]]);
  });

  it("should fail a payload that cannot be read, and send the one behind it", async () => {
    const { channel, deliver: deliverAll } = await scene();
    const unreadable = {
      get text(): string {
        throw new Error("unreadable");
      },
    };
    const { outcomes } = await deliverAll([unreadable, { text: "x" }]);
    expect(outcomes).toMatchObject([
      { status: "failed", failure: { at: "before-send", message: "unreadable" } },
      { status: "sent" },
    ]);
    expect(channel.texts).toEqual(["x"]);
  });

  it("should not let a listener to warnings change a delivery", async () => {
    const { deliverOne } = await scene((api) => {
      api.on("message_sending", () => ({ cancel: true, metadata: { text: "x".repeat(5000) } }));
    });
    const outcome = await deliverOne(
      { text: "x" },
      {
        onWarning: () => {
          throw new Error("listener");
        },
      },
    );
    expect(outcome).toMatchObject({ reason: "cancelled_by_message_sending_hook" });
  });
});
