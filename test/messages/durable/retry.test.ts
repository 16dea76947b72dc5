/** What is known not to have gone out is tried again, and nothing else is. */
import { describe, expect, it } from "vitest";
import { NotSentError } from "#src/messages/durable/not-sent.js";
import { backOff, retryPolicy } from "#src/messages/durable/retry.js";
import { Channel, CONTEXT, gate, pass, quiet, scene } from "./scene.js";

function refusing(times: number, error: () => unknown = () => new NotSentError("refused")): Channel {
  const channel = new Channel();
  channel.answer = (_, n) => {
    if (n <= times) throw error();
    return { messageId: `m-${n}` };
  };
  return channel;
}

describe("a delivery that is known not to have been sent", () => {
  it("should be tried again after a back-off under the same keys, and asked of no hook again", async () => {
    let asked = 0;
    const { open, model, clock, channel, told, hooks, settled } = await scene(refusing(2), (api) => {
      api.on("reply_payload_sending", () => void asked++);
      api.on("message_sending", () => void asked++);
    });
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({
      status: "failed",
      failure: { at: "send", message: "NotSentError: refused" },
      custody: { state: "pending" },
      payload: { text: "hello" },
    });
    expect(model.all).toMatchObject([
      { state: "pending", attempts: 1, error: "NotSentError: refused", dueAt: clock.wall() + 1000 },
    ]);
    await hooks.close();
    expect([told, settled]).toEqual([[], []]);
    await pass(clock, 999);
    expect(channel.sends).toHaveLength(1);
    await pass(clock, 2);
    expect(channel.sends).toHaveLength(2);
    await pass(clock, 2001);
    expect(channel.keys).toEqual(["hello:0:0", "hello:0:0", "hello:0:0"]);
    expect(model.all).toMatchObject([{ state: "sent", attempts: 3, error: null }]);
    await hooks.close();
    expect(told).toMatchObject([{ success: true, messageId: "m-3" }]);
    expect(settled).toMatchObject([{ status: "sent", custody: { state: "sent" } }]);
    expect(asked).toBe(2);
  });

  it("should have the evidence of every attempt on the disk before it begins", async () => {
    const { open, model, clock } = await scene(refusing(1));
    const { deliver } = await open();
    await deliver("hello");
    await pass(clock, 1001);
    const evidence = model.calls.filter(
      (call) =>
        (call.op === "put" && call.state === "attempting") ||
        (call.op === "change" && call.change.state === "attempting"),
    );
    expect(evidence).toMatchObject([{ barrier: true }, { barrier: true }]);
  });

  it("should be given up after the last attempt, and told of once", async () => {
    const { open, model, clock, channel, told, hooks } = await scene(refusing(99));
    const { deliver } = await open({ retry: { maxAttempts: 3, baseMs: 10 } });
    await deliver("hello");
    await pass(clock, 1000);
    expect(channel.sends).toHaveLength(3);
    expect(model.all).toMatchObject([{ state: "failed", attempts: 3, error: "NotSentError: refused" }]);
    await hooks.close();
    expect(told).toMatchObject([{ success: false, error: "NotSentError: refused" }]);
  });

  it("should be given up at once where the refusal is for good", async () => {
    const { open, model, told, hooks } = await scene(
      refusing(99, () => new NotSentError("blocked", { permanent: true })),
    );
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({ status: "failed", custody: { state: "failed" } });
    await hooks.close();
    expect(model.states).toEqual(["failed"]);
    expect(told).toMatchObject([{ success: false }]);
  });

  it("should leave the channel alone for as long as it asks", async () => {
    const { open, clock, channel } = await scene(refusing(1, () => new NotSentError("busy", { retryAfterMs: 60_000 })));
    const { deliver } = await open();
    await deliver("hello");
    await pass(clock, 59_999);
    expect(channel.sends).toHaveLength(1);
    await pass(clock, 2);
    expect(channel.sends).toHaveLength(2);
  });

  it("should be known where a stage of the channel failed or was late: nobody was asked to send", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    let runs = 0;
    channel.beforeDeliver = [
      {
        timeoutMs: 50,
        run(message) {
          if (++runs === 1) throw new Error("no stage");
          return runs === 2 ? new Promise<never>(() => {}) : message;
        },
      },
    ];
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({ failure: { at: "before-send" }, custody: { state: "pending" } });
    await pass(clock, 1100);
    expect(model.states).toEqual(["pending"]);
    await pass(clock, 2100);
    expect([model.states, channel.texts]).toEqual([["sent"], ["hello"]]);
  });

  it("should go on behind the parts that the channel has taken", async () => {
    const { open, model, clock, channel, told, hooks } = await scene(new Channel());
    channel.answer = (_, n) => {
      if (n === 2) throw new NotSentError("refused");
      return { messageId: `m-${n}` };
    };
    const { deliverPayload } = await open();
    const payload = { text: "three", mediaUrls: ["a", "b", "c"] };
    expect(await deliverPayload(payload)).toMatchObject({ status: "partial_failed", receipts: [{ messageId: "m-1" }] });
    expect(model.all).toMatchObject([{ state: "pending", partsSent: 1, receipts: '[{"messageId":"m-1"}]' }]);
    await pass(clock, 1001);
    expect(channel.keys).toEqual(["three:0:0", "three:0:1", "three:0:1", "three:0:2"]);
    expect(model.all).toMatchObject([{ state: "sent", partsSent: 3 }]);
    await hooks.close();
    expect(told).toMatchObject([{ success: true, messageId: "m-4" }]);
  });

  it("should record each part before the next one is sent", async () => {
    const { open, channel } = await scene(new Channel());
    const { deliverPayload, queue } = await open();
    const written = gate<void>();
    queue.before = (call) => (call.op === "change" && call.change.partsSent === 1 ? written.opened : undefined);
    const delivering = deliverPayload({ mediaUrls: ["a", "b"] });
    await quiet();
    expect(channel.sends).toHaveLength(1);
    written.open();
    expect(await delivering).toMatchObject({ status: "sent" });
  });

  it("should hold its lane, and no other", async () => {
    const { open, clock, channel, model, hooks } = await scene(refusing(1));
    const { deliver } = await open();
    await deliver("first");
    expect(await deliver("second")).toMatchObject({
      status: "failed",
      failure: { at: "before-send" },
      custody: { state: "pending" },
    });
    const elsewhere = { adapter: channel, to: "+1", context: CONTEXT };
    expect(await deliver("elsewhere", { route: elsewhere })).toMatchObject({ status: "sent" });
    expect(model.states).toEqual(["pending", "pending", "sent"]);
    await pass(clock, 1001);
    expect(channel.texts).toEqual(["first", "elsewhere", "first", "second"]);
    expect(model.states).toEqual(["sent", "sent", "sent"]);
    await hooks.close();
  });

  it("should say at once that it waits, also where the lane stalls later", async () => {
    const { open, channel, clock } = await scene(new Channel());
    const answer = gate<never>();
    channel.answer = (_, n) => (n === 1 ? answer.opened : {});
    const { deliver } = await open();
    const first = deliver("first");
    await quiet();
    const second = deliver("second");
    await quiet();
    answer.fail(new NotSentError("refused"));
    expect(await first).toMatchObject({ custody: { state: "pending" } });
    expect(await second).toMatchObject({ custody: { state: "pending" }, failure: { at: "before-send" } });
    await pass(clock, 1001);
    expect(channel.texts).toEqual(["first", "first", "second"]);
  });

  it("should be left pending where the evidence of an attempt cannot be written, and taken up again", async () => {
    const { open, clock, channel, model, log } = await scene(refusing(1));
    const { deliver, queue } = await open();
    await deliver("hello");
    queue.before = (call) => {
      if (call.op === "change" && call.change.state === "attempting") throw new Error("disk");
    };
    await pass(clock, 1001);
    expect([channel.sends.length, model.states]).toEqual([1, ["pending"]]);
    expect(log).toEqual([expect.stringContaining("evidence")]);
    queue.before = () => {};
    await pass(clock, 5000);
    expect([channel.sends.length, model.states]).toEqual([2, ["sent"]]);
  });

  it("should be left alone once an operator has dropped it", async () => {
    const { open, clock, channel, model } = await scene(refusing(1));
    const { deliver, queue } = await open();
    const { custody } = await deliver("hello");
    await queue.change(custody?.id ?? "", ["pending"], { state: "dropped" }, false);
    await pass(clock, 10_000);
    expect([channel.sends.length, model.states]).toEqual([1, ["dropped"]]);
  });
});

describe("the back-off", () => {
  const policy = retryPolicy();

  it("should double from attempt to attempt up to its cap, and never be less than half of that", () => {
    const most = [1, 2, 3, 4, 20, 2000].map((attempts) => backOff(attempts, 0, policy, () => 1 - Number.EPSILON));
    expect(most).toEqual([1000, 2000, 4000, 8000, 300_000, 300_000]);
    expect(backOff(3, 0, policy, () => 0)).toBe(2000);
  });

  it("should believe a channel that asks for time, for an hour at most", () => {
    expect(backOff(1, 5000, policy, () => 0)).toBe(5000);
    expect(backOff(1, 10 ** 9, policy, () => 0)).toBe(3_600_000);
    for (const absurd of [Number.NaN, Number.POSITIVE_INFINITY, -1])
      expect(backOff(1, absurd, policy, () => 0)).toBe(500);
  });

  it.each([{ maxAttempts: 0 }, { maxAttempts: Number.NaN }, { baseMs: -1 }, { capMs: Number.POSITIVE_INFINITY }])(
    "should not take %o",
    (given) => {
      expect(() => retryPolicy(given)).toThrow(RangeError);
    },
  );
});
