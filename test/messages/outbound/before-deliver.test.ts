import { getEventListeners } from "node:events";
import { describe, expect, it } from "vitest";
import type { ChannelMessage, StageContext } from "#src/messages/outbound/adapter.js";
import { MAX_STAGE_TIMEOUT_MS, STAGE_TIMEOUT_MS } from "#src/messages/outbound/before-deliver.js";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import { VirtualClock } from "../../support/virtual-clock.js";
import { CONTEXT, gate, marked, scene, stage } from "./scene.js";

function unreadable(field: string): ChannelMessage {
  const get = (): never => {
    throw new Error("unreadable");
  };
  return Object.defineProperty({ media: [] }, field, { get, enumerable: true });
}

describe("a channel's before-deliver stages", () => {
  it("should run one after the other, each on the message of the one before", async () => {
    const held = gate();
    const order: string[] = [];
    const { channel, deliverOne } = await scene();
    channel.beforeDeliver = [
      stage(async (message) => {
        await held.opened;
        order.push(`first ${message.text}`);
        return marked(message, "1");
      }),
      stage((message) => {
        order.push(`second ${message.text}`);
        return marked(message, "2");
      }),
    ];
    const delivering = deliverOne({ text: "x" });
    held.open();
    expect(await delivering).toMatchObject({ status: "sent" });
    expect([order, channel.texts]).toEqual([["first x", "second x1"], ["x12"]]);
  });

  it("should see what the hooks left, stripped, and where it goes", async () => {
    const seen: [ChannelMessage, StageContext][] = [];
    const { channel, deliverOne } = await scene((api) => void api.on("message_sending", () => ({ content: "new" })));
    channel.beforeDeliver = [
      stage((message, context) => {
        seen.push([message, context]);
        return message;
      }),
    ];
    await deliverOne({ text: "x", spokenText: "hidden" }, { kind: "block" });
    expect(seen).toEqual([
      [
        { text: "new", media: [] },
        { kind: "block", to: "+49", context: CONTEXT, signal: expect.any(AbortSignal) },
      ],
    ]);
  });

  it("should cancel with null, and no stage after that runs", async () => {
    const { channel, deliverOne } = await scene();
    channel.beforeDeliver = [
      { name: "quota", run: () => null },
      stage(() => {
        throw new Error("asked");
      }),
    ];
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "suppressed",
      reason: "cancelled_by_channel",
      by: 'before-deliver stage "quota"',
      payload: { text: "x" },
    });
    expect(channel.sends).toEqual([]);
  });

  it("should be nothing visible where a stage leaves nothing to be seen", async () => {
    const { channel, deliverOne } = await scene();
    channel.beforeDeliver = [stage(({ media }) => ({ media, text: " " }))];
    expect(await deliverOne({ text: "x" })).toMatchObject({ status: "suppressed", reason: "no_visible_payload" });
    expect(channel.sends).toEqual([]);
  });

  it.each<[string, () => ChannelMessage | Promise<ChannelMessage>, string]>([
    [
      "throws",
      () => {
        throw new Error("no quota");
      },
      "no quota",
    ],
    ["rejects", () => Promise.reject(new Error("no quota")), "no quota"],
    ["returns nothing", (() => undefined) as never, "TypeError: returned no message and no null"],
    ["returns media that cannot be read", () => unreadable("media"), "unreadable"],
    ["returns a text that cannot be read", () => unreadable("text"), "unreadable"],
  ])("should fail the delivery before the send where one %s", async (_, run, message) => {
    const { channel, deliverOne } = await scene();
    channel.beforeDeliver = [stage(run)];
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "failed",
      failure: { at: "before-send", message: `before-deliver stage 1: ${message}` },
    });
    expect(channel.sends).toEqual([]);
  });

  it.each([
    [undefined, STAGE_TIMEOUT_MS],
    [40, 40],
  ])("should have %s ms as their own time, which is %s ms, each anew", async (timeoutMs, ms) => {
    const clock = new VirtualClock();
    const { channel, deliverOne } = await scene(undefined, { clock });
    let aborted: unknown = null;
    const wait = (message: ChannelMessage) =>
      new Promise<ChannelMessage>((resolve) => void clock.timer(ms - 1, () => resolve(message)));
    channel.beforeDeliver = [
      stage(wait, timeoutMs),
      stage(wait, timeoutMs),
      stage((_, { signal }) => {
        signal.addEventListener("abort", () => {
          aborted = clock.now();
        });
        return new Promise(() => {});
      }, timeoutMs),
    ];
    const delivering = deliverOne({ text: "x" });
    await clock.run();
    expect(await delivering).toMatchObject({
      status: "failed",
      failure: { at: "before-send", message: `before-deliver stage 3: no answer within ${ms} ms` },
    });
    expect(aborted).toBe(2 * (ms - 1) + ms);
    expect(channel.sends).toEqual([]);
  });

  it("should be ignored where they answer late, or reject", async () => {
    const clock = new VirtualClock();
    const { channel, deliver } = await scene(undefined, { clock });
    const late: ((settle: "resolve" | "reject") => void)[] = [];
    channel.beforeDeliver = [
      stage(
        (message) =>
          new Promise((resolve, reject) => {
            late.push((how) => (how === "resolve" ? resolve(message) : reject(new Error("late"))));
          }),
      ),
    ];
    const delivering = deliver([{ text: "1" }, { text: "2" }]);
    await clock.run();
    expect(await delivering).toMatchObject({ status: "failed" });
    late[0]?.("resolve");
    late[1]?.("reject");
    await clock.run();
    expect(channel.sends).toEqual([]);
  });

  it("should leave no timer and no listener behind", async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    const { channel, deliverOne } = await scene(undefined, { clock });
    channel.beforeDeliver = [stage((message) => message), stage(() => Promise.reject(new Error("no")))];
    await deliverOne({ text: "x" }, { signal });
    await clock.run();
    expect([clock.now(), getEventListeners(signal, "abort")]).toEqual([0, []]);
  });

  it("should not be waited for once the turn is aborted", async () => {
    const turn = new AbortController();
    const called = gate();
    const { channel, deliverOne } = await scene();
    channel.beforeDeliver = [
      stage(() => {
        called.open();
        return new Promise(() => {});
      }),
    ];
    const delivering = deliverOne({ text: "x" }, { signal: turn.signal });
    await called.opened;
    turn.abort();
    expect(await delivering).toMatchObject({ status: "failed", failure: { at: "aborted" } });
  });

  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, MAX_STAGE_TIMEOUT_MS + 1])(
    "should be refused with a RangeError where timeoutMs is %s, before anybody is asked",
    async (timeoutMs) => {
      let asked = 0;
      const { channel, options, deliver } = await scene((api) => void api.on("message_sending", () => void asked++));
      channel.beforeDeliver = [stage((message) => message, timeoutMs)];
      await expect(deliver([{ text: "x" }])).rejects.toThrow(RangeError);
      expect(() => createReplyDispatcher(options)).toThrow(RangeError);
      expect([asked, channel.sends]).toEqual([0, []]);
    },
  );
});
