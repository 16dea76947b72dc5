import { describe, expect, it } from "vitest";
import type { Subscriber } from "#src/core/events.js";
import type { HookPoint } from "#src/core/points.js";
import { Call, type CallSettlement } from "#src/dispatch/call.js";
import type { ChainAnswer, ChainTransport } from "#src/dispatch/chain.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

const GUARD: Subscriber = {
  index: 0,
  id: "guard",
  provider: "guard",
  mode: "veto",
  timeoutMs: 100,
  producer: { name: "guard", source: "host" },
};

const SPAN = { traceparent: undefined, extra() {}, end() {} };

function start(clock: VirtualClock, transport: ChainTransport): readonly CallSettlement[] {
  const context = { dispatchId: "d", point: "pre-tool-call", session: undefined, turn: undefined } as const;
  const settlements: CallSettlement[] = [];
  const call = new Call<Payload, ChainAnswer, HookPoint>(
    context,
    GUARD,
    payloadFromView(INPUTS["pre-tool-call"]),
    100,
    SPAN,
    clock,
  );
  call.start(transport, (settlement) => settlements.push(settlement));
  return settlements;
}

describe("an answer that comes before any timer has fired", () => {
  it.each([
    [99, { kind: "answer", answer: { class: "allow" } }],
    [100, { kind: "deadline", lateMs: 0 }],
    [101, { kind: "deadline", lateMs: 1 }],
  ] as const)("should be judged by the clock, after %i of 100 ms", async (ms, settlement) => {
    const clock = new VirtualClock();
    const settlements = start(clock, {
      async invoke() {
        clock.block(ms);
        return { class: "allow" };
      },
    });
    await settled();
    expect(settlements).toEqual([settlement]);
    await clock.run();
    expect(settlements).toHaveLength(1);
  });
});

describe("a deadline", () => {
  it.each([
    ["fires", () => {}],
    ["is found to have passed when the answer comes", (clock: VirtualClock) => clock.block(100)],
  ])("should tell the subscriber to stop when it %s", async (_, block) => {
    const clock = new VirtualClock();
    const told: string[] = [];
    const settlements = start(clock, {
      invoke(call) {
        call.signal.addEventListener("abort", () => told.push("signal"));
        call.onAbort(() => told.push("callback"));
        clock.timer(50, () => block(clock));
        return new Promise((resolve) => clock.timer(60, () => clock.now() > 100 && resolve({ class: "allow" })));
      },
    });
    await settled();
    expect(told).toEqual([]);
    await clock.run();
    expect(settlements).toMatchObject([{ kind: "deadline" }]);
    expect(told.sort()).toEqual(["callback", "signal"]);
  });
});

describe("a transport that breaks its promise to reject nothing", () => {
  it.each<ChainTransport>([
    { invoke: () => Promise.reject(new Error("gone")) },
    {
      invoke() {
        throw new Error("gone");
      },
    },
  ])("should have failed", async (transport) => {
    const settlements = start(new VirtualClock(), transport);
    expect(settlements).toEqual([]);
    await settled();
    expect(settlements).toEqual([
      { kind: "answer", answer: { class: "failed", error: { category: "VETO_FAILED", message: "gone" } } },
    ]);
  });
});
