/** Attempts of which nobody knows what became, recovery at the start, and what an operator decides. */
import { describe, expect, it } from "vitest";
import { NotSentError } from "#src/messages/durable/not-sent.js";
import type { SendReceipt } from "#src/messages/outbound/adapter.js";
import { Channel, gate, left, pass, quiet, scene, TellingChannel } from "./scene.js";

describe("an attempt without a known end", () => {
  it.each([
    ["throws what says nothing", new Error("socket hang up")],
    ["throws nothing at all", undefined],
    ["throws what only looks like a refusal", Object.assign(new Error("no"), { name: "NotSentError" })],
  ])(
    "should be unknown where the channel %s, be told of to the operator, and never be sent again by itself",
    async (_, thrown) => {
      const { open, model, clock, channel, told, hooks, log, settled } = await scene(new Channel());
      channel.answer = () => {
        throw thrown;
      };
      const { deliver } = await open();
      expect(await deliver("hello")).toMatchObject({
        status: "failed",
        failure: { at: "send" },
        custody: { state: "unknown" },
      });
      await pass(clock, 3_600_000);
      expect([channel.sends.length, model.states]).toEqual([1, ["unknown"]]);
      await hooks.close();
      expect(told).toEqual([]);
      expect(settled).toMatchObject([{ custody: { state: "unknown" } }]);
      expect(log).toEqual([expect.stringContaining("hookledger queue list")]);
    },
  );

  it("should not keep its lane", async () => {
    const { open, channel } = await scene(new Channel());
    channel.answer = (_, n) => {
      if (n === 1) throw new Error("reset");
      return {};
    };
    const { deliver } = await open();
    await deliver("first");
    expect(await deliver("second")).toMatchObject({ status: "sent" });
  });

  it("should be unknown where the answer does not come in time, and sent if it comes after all", async () => {
    const { open, model, clock, channel, told, hooks, settled } = await scene(new TellingChannel());
    const answer = gate<{ messageId: string }>();
    channel.answer = () => answer.opened;
    const { deliver } = await open({ sendTimeoutMs: 1000 });
    let outcome: unknown;
    void deliver("hello").then((ended) => {
      outcome = ended;
    });
    await clock.run(() => outcome !== undefined);
    expect(outcome).toMatchObject({
      custody: { state: "unknown" },
      failure: { message: expect.stringContaining("1000 ms") },
    });
    await pass(clock, 60_000);
    expect([model.states, channel.asked]).toEqual([["unknown"], []]);
    answer.open({ messageId: "late" });
    await pass(clock, 1);
    expect(model.all).toMatchObject([{ state: "sent", receipts: '[{"messageId":"late"}]', attempts: 1 }]);
    await hooks.close();
    expect(told).toMatchObject([{ success: true, messageId: "late" }]);
    expect(settled.map(({ custody }) => custody?.state)).toEqual(["unknown", "sent"]);
  });

  it("should be tried again where the late answer is a refusal", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    const answer = gate<never>();
    channel.answer = (_, n) => (n === 1 ? answer.opened : {});
    const { deliver } = await open({ sendTimeoutMs: 1000 });
    void deliver("hello");
    await pass(clock, 1001);
    expect(model.states).toEqual(["unknown"]);
    answer.fail(new NotSentError("refused"));
    await pass(clock, 1001);
    expect([model.states, channel.sends.length]).toEqual([["sent"], 2]);
  });

  it("should be sent where the channel says that it was", async () => {
    const { open, model, clock, channel, told, hooks } = await scene(new TellingChannel());
    channel.answer = () => {
      throw new Error("reset");
    };
    channel.tell = (key) => key.endsWith(":0:0");
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({ status: "sent", custody: { state: "sent" } });
    await pass(clock, 60_000);
    expect([channel.sends.length, model.states]).toEqual([1, ["sent"]]);
    await hooks.close();
    expect(told).toMatchObject([{ success: true }]);
  });

  it("should be tried again where the channel says that it was not", async () => {
    const { open, model, clock, channel } = await scene(new TellingChannel());
    channel.answer = (_, n) => {
      if (n === 1) throw new Error("reset");
      return {};
    };
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({ status: "failed", custody: { state: "pending" } });
    await pass(clock, 1001);
    expect([channel.keys, channel.asked, model.states]).toEqual([["hello:0:0", "hello:0:0"], ["hello:0:0"], ["sent"]]);
  });

  it("should stay unknown while the channel cannot say, and be asked about again", async () => {
    const { open, model, clock, channel } = await scene(new TellingChannel());
    channel.answer = () => {
      throw new Error("reset");
    };
    let answers = 0;
    channel.tell = (key) => {
      if (++answers < 3) throw new Error("down");
      return key.endsWith(":0:0");
    };
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({ custody: { state: "unknown" } });
    await pass(clock, 5001);
    expect(model.states).toEqual(["unknown"]);
    await pass(clock, 5001);
    expect([channel.sends.length, model.states]).toEqual([1, ["sent"]]);
  });

  it.each([undefined, null, "yes", 1])("should stay unknown where the channel answers %o", async (answer) => {
    const { open, model, clock, channel } = await scene(new TellingChannel());
    channel.answer = () => {
      throw new Error("reset");
    };
    Reflect.set(channel, "tell", (key: string) => (key.endsWith(":0:0") ? answer : false));
    const { deliver } = await open();
    await deliver("hello");
    await pass(clock, 60_000);
    expect([channel.sends.length, model.states]).toEqual([1, ["unknown"]]);
  });
});

describe("an operator's decision", () => {
  it("should send again what is to be tried again, with the hooks not asked again", async () => {
    let asked = 0;
    const { open, model, clock, channel, told, hooks } = await scene(new Channel(), (api) => {
      api.on("message_sending", () => void asked++);
    });
    channel.answer = (_, n) => {
      if (n === 1) throw new Error("reset");
      return {};
    };
    const { deliver } = await open();
    const { custody } = await deliver("hello");
    model.resolve(custody?.id ?? "", "pending");
    await pass(clock, 5001);
    expect([channel.keys, model.states]).toEqual([["hello:0:0", "hello:0:0"], ["sent"]]);
    await hooks.close();
    expect(told).toMatchObject([{ success: true }]);
    expect(asked).toBe(1);
  });

  it("should be taken also for what the channel never answers", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    channel.answer = (_, n) => (n === 1 ? new Promise(() => {}) : {});
    const { deliver } = await open({ sendTimeoutMs: 100 });
    const delivering = deliver("hello");
    await pass(clock, 101);
    const { custody } = await delivering;
    await pass(clock, 60_000);
    expect([channel.sends.length, model.states]).toEqual([1, ["unknown"]]);
    model.resolve(custody?.id ?? "", "pending");
    await pass(clock, 5001);
    expect([channel.keys, model.states]).toEqual([["hello:0:0", "hello:0:0"], ["sent"]]);
  });

  it("should not repeat what the channel acknowledges meanwhile", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    const answer = gate<SendReceipt>();
    channel.answer = () => answer.opened;
    const { deliver } = await open({ sendTimeoutMs: 100 });
    const delivering = deliver("hello");
    await pass(clock, 101);
    const { custody } = await delivering;
    model.resolve(custody?.id ?? "", "pending");
    answer.open({ messageId: "late" });
    await quiet();
    await pass(clock, 10_001);
    expect([channel.sends.length, model.states]).toEqual([1, ["sent"]]);
  });

  it("should be taken at once for what waits for its next attempt", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    channel.answer = (_, n) => {
      if (n === 1) throw new NotSentError("busy", { retryAfterMs: 3_600_000 });
      return {};
    };
    const { deliver, deliveries, queue } = await open();
    const { custody } = await deliver("first");
    await deliver("second");
    await deliveries.refresh();
    await quiet();
    expect(channel.texts).toEqual(["first"]);
    await queue.change(custody?.id ?? "", ["pending"], { dueAt: clock.wall() }, true);
    await deliveries.refresh();
    await quiet();
    expect([channel.texts, model.states]).toEqual([
      ["first", "first", "second"],
      ["sent", "sent"],
    ]);
  });

  it("should let the lane of what it drops go on", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    channel.answer = (_, n) => {
      if (n === 1) throw new NotSentError("busy", { retryAfterMs: 3_600_000 });
      return {};
    };
    const { deliver, queue } = await open();
    const { custody } = await deliver("first");
    await deliver("second");
    await queue.change(custody?.id ?? "", ["pending"], { state: "dropped" }, true);
    await pass(clock, 5001);
    expect([channel.texts, model.states]).toEqual([
      ["first", "second"],
      ["dropped", "sent"],
    ]);
  });

  it.each(["sent", "dropped"] as const)("should leave alone what is %s", async (state) => {
    const { open, model, clock, channel } = await scene(new Channel());
    channel.answer = () => {
      throw new Error("reset");
    };
    const { deliver } = await open();
    const { custody } = await deliver("hello");
    model.resolve(custody?.id ?? "", state);
    await pass(clock, 60_000);
    expect([channel.sends.length, model.states]).toEqual([1, [state]]);
  });

  it("should be seen at once by who looks", async () => {
    const { open, model, channel } = await scene(new Channel());
    const { deliveries } = await open();
    model.leave(left(1));
    await deliveries.refresh();
    await quiet();
    expect([channel.texts, model.states]).toEqual([["left 1"], ["sent"]]);
  });
});

describe("what a process left that is gone", () => {
  it("should be sent when it is due, lane by lane in order, by no hook again, and told of once", async () => {
    const hooked: string[] = [];
    const { open, model, clock, channel, told, hooks } = await scene(new Channel(), (api) => {
      api.on("reply_payload_sending", () => void hooked.push("payload"));
      api.on("message_sending", () => void hooked.push("content"));
    });
    model.leave(left(2));
    model.leave(left(1, { dueAt: clock.wall() + 500 }));
    model.leave(left(3, { lane: "other" }));
    await open();
    await quiet();
    expect(channel.texts).toEqual(["left 3"]);
    await pass(clock, 501);
    expect(channel.texts).toEqual(["left 3", "left 1", "left 2"]);
    expect(channel.sends[1]).toMatchObject({ to: "+49", accountId: "acct", idempotencyKey: "left-1:0" });
    expect(model.states).toEqual(["sent", "sent", "sent"]);
    await hooks.close();
    expect(told.map(({ content, success, runId }) => [content, success, runId])).toEqual([
      ["left 3", true, "r-1"],
      ["left 1", true, "r-1"],
      ["left 2", true, "r-1"],
    ]);
    expect(hooked).toEqual([]);
  });

  it("should be unknown where an attempt was under way, and stay so, and be told to the operator", async () => {
    const { open, model, clock, channel, log } = await scene(new Channel());
    model.leave(left(1, { state: "attempting" }));
    await open();
    await pass(clock, 3_600_000);
    expect([channel.sends, model.states]).toEqual([[], ["unknown"]]);
    expect(log[0]).toContain("1 deliveries");
  });

  it("should be cleared up where the channel can tell: sent parts are not sent again", async () => {
    const { open, model, clock, channel, told, hooks } = await scene(new TellingChannel());
    const media = JSON.stringify({ text: "three", mediaUrls: ["a", "b", "c"] });
    model.leave(left(1, { state: "attempting", payload: media, partsSent: 1, receipts: '[{"messageId":"first"}]' }));
    model.leave(left(2, { state: "unknown", lane: "other" }));
    model.leave(left(3, { state: "attempting", lane: "third" }));
    channel.tell = (key) => key === "left-1:1" || key === "left-2:0";
    await open();
    await pass(clock, 1001);
    expect(channel.keys.toSorted()).toEqual(["left-1:2", "left-3:0"]);
    expect(model.states).toEqual(["sent", "sent", "sent"]);
    await hooks.close();
    expect(told.filter(({ success }) => success)).toHaveLength(3);
  });

  it("should keep its order before what is new", async () => {
    const { open, model, channel } = await scene(new Channel());
    model.leave(left(1));
    const { deliver } = await open();
    expect(await deliver("new")).toMatchObject({ status: "sent" });
    expect(channel.texts).toEqual(["left 1", "new"]);
  });

  it("should be left alone while another process works on it, with all of its lane", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    const other = model.open();
    await other.put([left(1, { state: "attempting" })], true);
    model.leave(left(2));
    await open();
    await pass(clock, 60_000);
    expect(channel.sends).toEqual([]);
    await other.change(left(1).id, ["attempting"], { state: "sent" }, false);
    await pass(clock, 5001);
    expect(channel.texts).toEqual(["left 2"]);
  });

  it("should be taken up by who lives on when another one dies", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    const other = await open();
    const second = await open({ pollMs: 1000 });
    const held = gate<never>();
    channel.answer = (_, n) => (n === 1 ? held.opened : {});
    void other.deliver("first");
    await quiet();
    void other.deliver("second");
    await quiet();
    other.queue.die();
    await pass(clock, 1001);
    expect(second.queue.alive).toBe(true);
    expect([channel.texts, model.states]).toEqual([
      ["first", "second"],
      ["unknown", "sent"],
    ]);
  });

  it("should wait for a channel that is not there yet", async () => {
    const { open, model, clock, channel, log } = await scene(new Channel());
    model.leave(left(1));
    let there = false;
    await open({ channelOf: () => (there ? channel : null) });
    await quiet();
    expect([channel.sends, model.states]).toEqual([[], ["pending"]]);
    expect(log).toEqual([expect.stringContaining('"test"')]);
    there = true;
    await pass(clock, 5001);
    expect(model.states).toEqual(["sent"]);
  });

  it.each([
    ["payload", "{"],
    ["payload", "[]"],
    ["payload", '{"text":" "}'],
    ["route", "null"],
    ["route", '{"channelId":"test"}'],
    ["route", '{"channelId":"test","to":"+49","kind":"final","context":{}}'],
    ["route", '{"channelId":"test","to":"+49","kind":"other","context":{"channelId":"test"}}'],
  ])("should fail, and never be guessed, where its %s is %s", async (field, text) => {
    const { open, model, channel } = await scene(new Channel());
    model.leave(left(1, { [field]: text }));
    await open();
    await quiet();
    expect([channel.sends, model.states]).toEqual([[], ["failed"]]);
  });

  it("should count attempts made before", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    channel.answer = () => {
      throw new NotSentError("refused");
    };
    model.leave(left(1, { attempts: 7 }));
    await open({ retry: { maxAttempts: 8 } });
    await pass(clock, 60_000);
    expect([channel.sends.length, model.all]).toMatchObject([1, [{ state: "failed", attempts: 8 }]]);
  });
});
