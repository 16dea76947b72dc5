/** What is kept, when, and what a delivery comes to that cannot be kept. */
import { describe, expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import { UsageStates } from "#src/messages/outbound/usage-states.js";
import { Channel, CONTEXT, gate, quiet, scene } from "./scene.js";

describe("custody of a delivery", () => {
  it("should keep the payload as the hooks left it, with the evidence of the attempt, before anything is sent", async () => {
    const { open, model, channel } = await scene(new Channel(), (api) => {
      api.on("reply_payload_sending", ({ payload }) => ({ payload: { ...payload, delivery: { silent: true } } }));
      api.on("message_sending", ({ content }) => ({ content: `${content}!` }));
    });
    const { deliver, queue } = await open();
    const written = gate<void>();
    queue.before = ({ op }) => (op === "put" ? written.opened : undefined);
    const delivering = deliver("hello", { kind: "block" });
    await quiet();
    expect(channel.sends).toEqual([]);
    written.open();
    expect(await delivering).toMatchObject({
      status: "sent",
      receipts: [{ messageId: "m-1" }],
      payload: { text: "hello!", delivery: { silent: true } },
      custody: { state: "sent" },
    });
    expect(model.calls.find(({ op }) => op === "put")).toMatchObject({ state: "attempting", barrier: true });
    const [row] = model.all;
    expect(row).toMatchObject({ attempts: 1, idempotencyKey: "hello:0", session: "s-1", run: "r-1" });
    expect(JSON.parse(row?.payload ?? "")).toEqual({ text: "hello!", delivery: { silent: true } });
    expect(JSON.parse(row?.route ?? "")).toEqual({ channelId: "test", to: "+49", kind: "block", context: CONTEXT });
    expect(channel.keys).toEqual(["hello:0:0"]);
  });

  it("should wait for one barrier alone, and for no hook's record before it", async () => {
    const { open, model, told, hooks, settled } = await scene(new Channel(), (api) => {
      api.on("reply_payload_sending", () => {});
      api.on("message_sending", () => {});
    });
    const { deliver } = await open();
    const { hookRuns } = await deliver("hello");
    await quiet();
    expect(model.calls.filter((call) => call.op !== "read" && call.barrier)).toHaveLength(1);
    expect(model.states).toEqual(["sent"]);
    expect(hookRuns).toMatchObject([
      { hook: "reply_payload_sending", recorded: true },
      { hook: "message_sending", recorded: true },
    ]);
    await hooks.close();
    expect(told).toMatchObject([{ content: "hello", success: true, messageId: "m-1" }]);
    expect(settled).toMatchObject([{ status: "sent", custody: { state: "sent" } }]);
  });

  it("should not wait until the acknowledgement is kept", async () => {
    const { open, model } = await scene(new Channel());
    const { deliver, queue } = await open();
    const written = gate<void>();
    queue.before = ({ op }) => (op === "change" ? written.opened : undefined);
    expect(await deliver("hello")).toMatchObject({ status: "sent" });
    expect(model.states).toEqual(["attempting"]);
    written.open();
    await quiet();
    expect(model.states).toEqual(["sent"]);
  });

  it("should keep nothing of what the hooks suppress", async () => {
    const { open, model, told, channel, hooks } = await scene(new Channel(), (api) => {
      api.on("message_sending", () => ({ cancel: true, cancelReason: "no" }));
    });
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({
      status: "suppressed",
      reason: "cancelled_by_message_sending_hook",
      hookEffect: { cancelReason: "no" },
      payload: null,
      hookRuns: [{ hook: "message_sending", recorded: true }],
    });
    await hooks.close();
    expect([model.all, told, channel.sends]).toEqual([[], [], []]);
  });

  it("should never tell a handler of usage", async () => {
    const seen: unknown[] = [];
    const { open } = await scene(new Channel(), (api) => {
      api.on("reply_payload_sending", (event) => void seen.push("usageState" in event));
    });
    const { deliver } = await open();
    const usage = new UsageStates();
    usage.put("r-1", { model: "m" });
    await deliver("hello", { usage });
    expect(seen).toEqual([false]);
  });

  it("should send at the first attempt what any later one would: the payload as JSON has it", async () => {
    const { open, channel } = await scene(new Channel());
    const { deliverPayload } = await open();
    const presentation = { at: new Date(0), none: undefined, list: [undefined, 1] };
    await deliverPayload({ text: "hello", presentation });
    expect(channel.sends[0]?.part.presentation).toEqual({ at: "1970-01-01T00:00:00.000Z", list: [null, 1] });
  });

  it("should drop what the channel's stages cancel", async () => {
    const { open, model, channel, told, hooks } = await scene(new Channel());
    channel.beforeDeliver = [{ name: "quiet hours", run: () => null }];
    const { deliver } = await open();
    expect(await deliver("hello")).toMatchObject({
      status: "suppressed",
      reason: "cancelled_by_channel",
      custody: { state: "dropped" },
    });
    await hooks.close();
    expect(model.all).toMatchObject([{ state: "dropped", error: expect.stringContaining("quiet hours") }]);
    expect(told).toEqual([]);
  });

  it("should reject an invalid limit of a stage before anybody is asked", async () => {
    const { open, channel } = await scene(new Channel());
    channel.beforeDeliver = [{ timeoutMs: 0, run: (message) => message }];
    const { deliver } = await open();
    await expect(deliver("hello")).rejects.toThrow(RangeError);
  });

  it("should serve a dispatcher", async () => {
    const { open, model, hooks, channel } = await scene(new Channel());
    const { deliveries } = await open();
    const route = { adapter: channel, to: "+49", context: CONTEXT };
    const dispatcher = createReplyDispatcher({
      runs: hooks.runs,
      route,
      idempotencyKey: "turn",
      deliverOne: deliveries.deliverOne,
    });
    dispatcher.sendBlockReply({ text: "one" });
    dispatcher.sendFinalReply({ text: "two" });
    expect(await dispatcher.waitForIdle()).toMatchObject({ block: { delivered: 1 }, final: { delivered: 1 } });
    await quiet();
    expect(channel.keys).toEqual(["turn:0:0", "turn:1:0"]);
    expect(model.states).toEqual(["sent", "sent"]);
  });
});

describe("a delivery that cannot be kept", () => {
  it.each(["HL_STORE_FULL", "HL_STORE_LOCKED", "HL_STORE_AMBIGUOUS", "HL_LIMIT_DELIVERY"] as const)(
    "should not be sent, and be said to have failed: %s",
    async (code) => {
      const { open, channel, told, hooks, log } = await scene(new Channel());
      const { deliver, queue } = await open();
      queue.before = ({ op }) => {
        if (op === "put") throw new HookledgerError(code, "no");
      };
      const outcome = await deliver("hello");
      expect(outcome).toMatchObject({
        status: "failed",
        failure: { at: "before-send", cause: { code } },
        payload: null,
      });
      expect(outcome.custody).toBeUndefined();
      await hooks.close();
      expect(channel.sends).toEqual([]);
      expect(told).toMatchObject([{ success: false, error: expect.stringContaining("no") }]);
      expect(log).toEqual([expect.stringContaining(code)]);
    },
  );

  it("should be dropped where it turns out to be kept all the same", async () => {
    const { open, model, clock, channel } = await scene(new Channel());
    const { deliver, queue } = await open({ storeTimeoutMs: 100 });
    const written = gate<void>();
    let outcome: unknown;
    queue.before = ({ op }) => written.opened.then(() => (op === "change" ? quiet() : undefined));
    void deliver("hello").then((ended) => {
      outcome = ended;
    });
    await clock.run(() => outcome !== undefined);
    expect(outcome).toMatchObject({ status: "failed", failure: { at: "before-send" } });
    written.open();
    await quiet();
    await quiet();
    expect(model.states).toEqual(["dropped"]);
    expect(channel.sends).toEqual([]);
  });

  it("should not be sent where its payload has no JSON form", async () => {
    const { open, channel, model } = await scene(new Channel());
    const { deliverPayload } = await open();
    const loop: { self?: unknown } = {};
    loop.self = loop;
    for (const presentation of [{ big: 1n }, loop]) {
      expect(await deliverPayload({ text: "hello", presentation })).toMatchObject({
        status: "failed",
        failure: { at: "before-send" },
      });
    }
    expect([channel.sends, model.all]).toEqual([[], []]);
  });
});
