import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import { type ChatCompletion, ReplyCompletion, type RuntimeEvent } from "#src/messages/turn/completion.js";
import { TurnLife } from "#src/messages/turn/life.js";
import { announceRunStart, type RunResult, type RunStartOptions } from "#src/messages/turn/run-start.js";
import { gateway } from "../inbound/gateway.js";
import { RECEIPT } from "./transcripts.js";

type Emitted = RuntimeEvent | ChatCompletion;

const COUNTS = { delivered: 0, deliveredNotVisible: 0, cancelled: 0, failedBeforeSend: 0, failedAfterSend: 0 };
const NONE = { tool: COUNTS, block: COUNTS, final: COUNTS, anyVisibleDelivered: false };
const idle = { waitForIdle: () => Promise.resolve(NONE) };

function completing(life?: TurnLife) {
  const emitted: Emitted[] = [];
  const warnings: string[] = [];
  const completion = new ReplyCompletion({
    emit: (event) => void emitted.push(event),
    warn: (message) => void warnings.push(message),
    ...(life === undefined ? {} : { life }),
  });
  const start = (runId: string, options?: RunStartOptions) =>
    announceRunStart(completion, { runId, transcriptStart: null, ...(options === undefined ? {} : { options }) });
  return { completion, emitted, warnings, start };
}

const owned = (result: RunResult = {}): RunStartOptions => ({
  completionSource: "reply-dispatch",
  getResult: () => result,
});

const completions = (emitted: readonly Emitted[]) => emitted.filter(({ type }) => type === "completion");

/** Plugins rewrite, cancel; what `completion` is told is what a real dispatcher delivered. */
async function delivered(completion: ReplyCompletion) {
  const { hooks } = await gateway({
    on: {
      p: (api) => {
        api.on("reply_payload_sending", ({ payload }) => ({ payload: { ...payload, delivery: { silent: true } } }));
        api.on("message_sending", ({ content }) =>
          content === "secret" ? { cancel: true } : { content: content.replace("hunter2", "***") },
        );
      },
    },
  });
  return createReplyDispatcher({
    runs: hooks.runs,
    route: {
      adapter: {
        channelId: "c",
        send: ({ part }) => {
          if (part.text === "fails") throw new Error("down");
          return { visible: part.text !== "invisible" };
        },
      },
      to: "+49",
      context: { channelId: "c", runId: "r-1" },
    },
    onOutcome: completion.onOutcome,
  });
}

describe("completion ownership", () => {
  it("should be taken by the host's callback, synchronously, where it is offered", () => {
    const { start } = completing();
    expect(start("r-1", owned())).toBe("reply-dispatch");
  });

  it("should not be taken without an offer, without a getResult, or for a turn that is over", () => {
    const { start } = completing();
    expect(start("r-1")).toBe("runtime");
    expect(start("r-1", { completionSource: "reply-dispatch" })).toBe("runtime");
    expect(start("r-1", { getResult: () => ({}) })).toBe("runtime");
    const life = new TurnLife();
    life.end("replaced");
    expect(completing(life).start("r-1", owned())).toBe("runtime");
  });

  it("should require transcriptStart in the notification", () => {
    const { completion } = completing();
    const notification = { runId: "r-1", options: owned() };
    expect(Reflect.apply(completion.onPreparedAgentRunStart, undefined, [notification])).toBeUndefined();
  });
});

describe("a turn whose completion is the host's", () => {
  it("should emit one chat completion from the delivered, post-hook payloads", async () => {
    const { completion, emitted, start } = completing();
    start("r-1", owned({ terminalOutcome: "completed", assistantTranscript: RECEIPT }));
    const dispatcher = await delivered(completion);
    dispatcher.sendToolResult({ text: "looked it up" });
    dispatcher.sendBlockReply({ text: "the password is hunter2", trustedLocalMedia: true });
    for (const text of ["secret", "fails", "invisible"]) dispatcher.sendBlockReply({ text });
    dispatcher.sendFinalReply({ text: "done" });
    const completed = await completion.settle(dispatcher);
    const delivery = { silent: true };
    expect(emitted).toEqual([
      {
        type: "completion",
        source: "reply-dispatch",
        runId: "r-1",
        replies: [
          { kind: "tool", payload: { text: "looked it up", delivery } },
          { kind: "block", payload: { text: "the password is ***", delivery } },
          { kind: "final", payload: { text: "done", delivery } },
        ],
        terminalOutcome: "completed",
        assistantTranscript: RECEIPT,
      },
    ]);
    expect(emitted[0]).toBe(completed);
  });

  it("should retain the runtime's lifecycle events, and drop its own completion", async () => {
    const { completion, emitted, start } = completing();
    completion.forward({ type: "lifecycle", runId: "r-1", phase: "start" });
    start("r-1", owned());
    completion.forward({ type: "lifecycle", runId: "r-1", phase: "end" });
    completion.forward({ type: "completion", runId: "r-1", text: "raw" });
    await completion.settle(idle);
    completion.forward({ type: "completion", runId: "r-1", text: "raw" });
    completion.forward({ type: "lifecycle", runId: "r-1", phase: "closed" });
    expect(
      emitted.map(({ type, phase, source }: { type: string; phase?: unknown; source?: unknown }) => [
        type,
        phase ?? source,
      ]),
    ).toEqual([
      ["lifecycle", "start"],
      ["lifecycle", "end"],
      ["completion", "reply-dispatch"],
      ["lifecycle", "closed"],
    ]);
  });

  it("should ask for the result only after the dispatch has settled", async () => {
    const { completion, start } = completing();
    const order: string[] = [];
    start("r-1", {
      completionSource: "reply-dispatch",
      getResult: () => {
        order.push("result");
        return {};
      },
    });
    await completion.settle({
      waitForIdle: async () => {
        order.push("idle");
        return NONE;
      },
    });
    expect(order).toEqual(["idle", "result"]);
  });

  it("should emit its completion all the same where the result cannot be had", async () => {
    const { completion, emitted, warnings, start } = completing();
    start("r-1", {
      completionSource: "reply-dispatch",
      getResult: () => {
        throw new Error("lost");
      },
    });
    await completion.settle(idle);
    expect(completions(emitted)).toEqual([{ type: "completion", source: "reply-dispatch", runId: "r-1", replies: [] }]);
    expect(warnings).toEqual([expect.stringContaining("lost")]);
  });

  it("should give the last run's result where the turn fell back to another model", async () => {
    const { completion, emitted, start } = completing();
    start("r-1", owned({ terminalOutcome: "error" }));
    start("r-2", owned({ terminalOutcome: "completed" }));
    await completion.settle(idle);
    expect(completions(emitted)).toMatchObject([{ runId: "r-2", terminalOutcome: "completed" }]);
  });
});

describe("a runtime that omits the declaration", () => {
  it("should be left as it is: its events pass, and the host emits no completion", async () => {
    const { completion, emitted, start } = completing();
    start("r-1");
    const events = [
      { type: "lifecycle", runId: "r-1", phase: "start" },
      { type: "completion", runId: "r-1", text: "raw" },
    ];
    for (const event of events) completion.forward(event);
    expect(await completion.settle(idle)).toBeNull();
    expect(emitted).toEqual(events);
  });
});

describe("any turn", () => {
  it("should have one completion at most, and exactly one where the host owns it, with every lifecycle event kept", async () => {
    const runs = fc.constantFrom("r-1", "r-2");
    const steps = fc.oneof(
      fc.record({ kind: fc.constantFrom("owned", "observed"), runId: runs }),
      fc.record({ kind: fc.constantFrom("lifecycle", "completion"), runId: runs }),
      fc.record({ kind: fc.constant("settle"), runId: runs }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(steps, { maxLength: 10 }), async (schedule) => {
        const { completion, emitted, start } = completing();
        const owners = new Set<string>();
        const finished = new Set<string>();
        let lifecycles = 0;
        for (const { kind, runId } of [...schedule, { kind: "settle", runId: "r-1" } as const]) {
          if (kind === "owned" && start(runId, owned()) === "reply-dispatch") owners.add(runId);
          else if (kind === "observed") start(runId);
          else if (kind === "settle") await completion.settle(idle);
          else if (kind === "lifecycle") {
            lifecycles++;
            completion.forward({ type: kind, runId });
          } else if (kind === "completion" && !finished.has(runId)) {
            // A runtime completes a run once.
            finished.add(runId);
            completion.forward({ type: kind, runId });
          }
        }
        const ours = completions(emitted).filter((event) => "source" in event);
        const theirs = completions(emitted).length - ours.length;
        expect(emitted.filter(({ type }) => type === "lifecycle")).toHaveLength(lifecycles);
        expect(ours).toHaveLength(owners.size > 0 && theirs === 0 ? 1 : 0);
        if (owners.size === 0) expect(theirs).toBe(finished.size);
      }),
      { numRuns: 1_000 },
    );
  });
});
