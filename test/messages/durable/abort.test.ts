/** A turn that is aborted, at every step of a delivery; and deliveries that are closed. */
import { describe, expect, it } from "vitest";
import { NotSentError } from "#src/messages/durable/not-sent.js";
import { Channel, gate, pass, quiet, scene } from "./scene.js";

describe("a delivery of an aborted turn", () => {
  it("should ask nobody where it was before", async () => {
    let asked = 0;
    const { open, model, channel, told, hooks } = await scene(new Channel(), (api) => {
      api.on("message_sending", () => void asked++);
    });
    const { deliver } = await open();
    expect(await deliver("hello", { signal: AbortSignal.abort() })).toMatchObject({
      status: "failed",
      failure: { at: "aborted" },
    });
    await hooks.close();
    expect([model.all, channel.sends, asked]).toEqual([[], [], 0]);
    expect(told).toMatchObject([{ success: false }]);
  });

  it("should keep nothing where a hook was asked meanwhile", async () => {
    const turn = new AbortController();
    const { open, model } = await scene(new Channel(), (api) => {
      api.on("message_sending", () => turn.abort());
    });
    const { deliver } = await open();
    expect(await deliver("hello", { signal: turn.signal })).toMatchObject({ failure: { at: "aborted" } });
    expect(model.all).toEqual([]);
  });

  it("should be dropped unsent where custody was written meanwhile", async () => {
    const turn = new AbortController();
    const { open, model, channel, told, hooks } = await scene(new Channel());
    let staged = 0;
    channel.beforeDeliver = [
      {
        run: (message) => {
          staged++;
          return message;
        },
      },
    ];
    const { deliver, queue } = await open();
    queue.before = ({ op }) => (op === "put" ? turn.abort() : undefined);
    expect(await deliver("hello", { signal: turn.signal })).toMatchObject({
      status: "failed",
      failure: { at: "aborted" },
      custody: { state: "dropped" },
    });
    await hooks.close();
    expect([channel.sends, staged, model.states]).toEqual([[], 0, ["dropped"]]);
    expect(told).toMatchObject([{ success: false }]);
  });

  it("should be dropped where a stage of the channel ran meanwhile", async () => {
    const turn = new AbortController();
    const { open, model, channel } = await scene(new Channel());
    channel.beforeDeliver = [
      {
        run: (message) => {
          turn.abort();
          return message;
        },
      },
    ];
    const { deliver } = await open();
    expect(await deliver("hello", { signal: turn.signal })).toMatchObject({ failure: { at: "aborted" } });
    await quiet();
    expect([channel.sends, model.states]).toEqual([[], ["dropped"]]);
  });

  it("should be dropped between two parts, and say what went out", async () => {
    const turn = new AbortController();
    const { open, model, channel } = await scene(new Channel());
    const { deliverPayload, queue } = await open();
    queue.before = (call) => (call.op === "change" && call.change.partsSent === 1 ? turn.abort() : undefined);
    expect(await deliverPayload({ mediaUrls: ["a", "b"] }, { signal: turn.signal })).toMatchObject({
      status: "partial_failed",
      receipts: [{ messageId: "m-1" }],
      failure: { at: "aborted" },
    });
    await quiet();
    expect(channel.sends).toHaveLength(1);
    expect(model.all).toMatchObject([{ state: "dropped", partsSent: 1 }]);
  });

  it("should be waited for where a send is under way, and be what the channel says", async () => {
    const turn = new AbortController();
    const { open, model, channel } = await scene(new Channel());
    const answer = gate<{ messageId: string }>();
    channel.answer = () => answer.opened;
    const { deliver } = await open();
    const delivering = deliver("hello", { signal: turn.signal });
    await quiet();
    turn.abort();
    await quiet();
    answer.open({ messageId: "m" });
    expect(await delivering).toMatchObject({ status: "sent" });
    await quiet();
    expect(model.states).toEqual(["sent"]);
  });

  it("should be dropped at once in its back-off, and let the lane go on", async () => {
    const turn = new AbortController();
    const { open, model, channel, told, hooks } = await scene(new Channel());
    channel.answer = (_, n) => {
      if (n === 1) throw new NotSentError("refused");
      return {};
    };
    const { deliver } = await open();
    await deliver("first", { signal: turn.signal });
    await deliver("second");
    turn.abort();
    await quiet();
    expect([channel.texts, model.states]).toEqual([
      ["first", "second"],
      ["dropped", "sent"],
    ]);
    await hooks.close();
    expect(told.map(({ content, success }) => [content, success]).toSorted()).toEqual([
      ["first", false],
      ["second", true],
    ]);
  });

  it("should be dropped at once while it waits for its lane", async () => {
    const turn = new AbortController();
    const { open, model, channel } = await scene(new Channel());
    const answer = gate<object>();
    channel.answer = () => answer.opened;
    const { deliver } = await open();
    const first = deliver("first");
    await quiet();
    const second = deliver("second", { signal: turn.signal });
    await quiet();
    expect(model.states).toEqual(["attempting", "pending"]);
    turn.abort();
    expect(await second).toMatchObject({ failure: { at: "aborted" }, custody: { state: "dropped" } });
    const third = deliver("third");
    await quiet();
    expect(channel.texts).toEqual(["first"]);
    answer.open({});
    expect([await first, await third]).toMatchObject([{ status: "sent" }, { status: "sent" }]);
    await quiet();
    expect([channel.texts, model.states]).toEqual([
      ["first", "third"],
      ["sent", "dropped", "sent"],
    ]);
  });

  it("should not begin where the evidence of another attempt was written meanwhile", async () => {
    const turn = new AbortController();
    const { open, model, channel, clock } = await scene(new Channel());
    channel.answer = () => {
      throw new NotSentError("refused");
    };
    const { deliver, queue } = await open();
    await deliver("hello", { signal: turn.signal });
    queue.before = (call) => (call.op === "change" && call.change.state === "attempting" ? turn.abort() : undefined);
    await pass(clock, 1001);
    expect([channel.sends.length, model.states]).toEqual([1, ["dropped"]]);
  });
});

describe("deliveries that are closed", () => {
  it("should wait for what is under way", async () => {
    const { open, channel, model } = await scene(new Channel());
    const answer = gate<object>();
    channel.answer = () => answer.opened;
    const { deliver, deliveries } = await open();
    const delivering = deliver("hello");
    await quiet();
    let closed = false;
    const closing = deliveries.close().then(() => {
      closed = true;
    });
    await quiet();
    expect(closed).toBe(false);
    answer.open({});
    expect(await delivering).toMatchObject({ status: "sent" });
    await closing;
    expect(model.states).toEqual(["sent"]);
    expect(deliveries.close()).toBe(deliveries.close());
  });

  it("should not wait longer than they are told to", async () => {
    const { open, channel, clock, model, log } = await scene(new Channel());
    channel.answer = () => new Promise<never>(() => {});
    const { deliver, deliveries } = await open({ drainMs: 500 });
    void deliver("hello");
    await quiet();
    let closed = false;
    void deliveries.close().then(() => {
      closed = true;
    });
    await clock.run(() => closed);
    expect(clock.now()).toBe(500);
    expect(model.states).toEqual(["attempting"]);
    expect(log).toEqual([expect.stringContaining("under way")]);
  });

  it("should leave to the next start what has not begun, and say so to who waits", async () => {
    const { open, channel, clock, model } = await scene(new Channel());
    channel.answer = (_, n) => {
      if (n === 1) throw new NotSentError("refused");
      return {};
    };
    const { deliver, deliveries, queue } = await open();
    await deliver("first");
    await deliver("second");
    await deliveries.close();
    queue.die();
    await pass(clock, 60_000);
    expect([channel.texts, model.states]).toEqual([["first"], ["pending", "pending"]]);
    await open();
    await quiet();
    expect([channel.texts, model.states]).toEqual([
      ["first", "first", "second"],
      ["sent", "sent"],
    ]);
  });

  it("should take nothing more", async () => {
    const { open, channel, model, told, hooks } = await scene(new Channel());
    const { deliver, deliveries } = await open();
    await deliveries.close();
    expect(await deliver("hello")).toMatchObject({
      status: "failed",
      failure: { at: "before-send", cause: { code: "HL_KERNEL_CLOSED" } },
    });
    await hooks.close();
    expect([channel.sends, model.all]).toEqual([[], []]);
    expect(told).toMatchObject([{ success: false }]);
  });
});
