import { describe, expect, it } from "vitest";
import { announceRunStart, observingRunStart, type PreparedRunStart } from "#src/messages/turn/run-start.js";
import { turnOf } from "../agent/turn.js";
import { gateway, NotingDispatcher } from "../inbound/gateway.js";
import { TARGET } from "./transcripts.js";

const START: PreparedRunStart = {
  runId: "r-1",
  executionIdentityToken: "token",
  options: { completionSource: "reply-dispatch", getResult: () => ({}) },
  transcriptStart: { ...TARGET, maxSeq: 3 },
};

describe("onPreparedAgentRunStart", () => {
  it("should be given the complete notification", () => {
    const seen: unknown[] = [];
    announceRunStart({ onPreparedAgentRunStart: (...args) => void seen.push(args) }, START);
    expect(seen).toEqual([[START]]);
  });

  it("should carry null as transcriptStart for a run without a transcript", () => {
    const seen: PreparedRunStart[] = [];
    announceRunStart(
      { onPreparedAgentRunStart: (start) => void seen.push(start) },
      { runId: "r-1", transcriptStart: null },
    );
    expect(seen).toEqual([{ runId: "r-1", transcriptStart: null }]);
  });

  it("should accept the completion by returning exactly the string, synchronously", () => {
    expect(announceRunStart({ onPreparedAgentRunStart: () => "reply-dispatch" }, START)).toBe("reply-dispatch");
  });

  it.each<[string, () => unknown]>([
    ["undefined", () => undefined],
    ["null", () => null],
    ["true", () => true],
    ["another string", () => "reply-dispatch "],
    ["a String object", () => Object("reply-dispatch")],
    ["an object", () => ({ completionSource: "reply-dispatch" })],
    ["a promise of the string", () => Promise.resolve("reply-dispatch")],
    ["a promise that rejects", () => Promise.reject(new Error("later"))],
  ])("should leave lifecycle completion unchanged where it returns %s", (_, onPreparedAgentRunStart) => {
    expect(announceRunStart({ onPreparedAgentRunStart }, START)).toBe("runtime");
  });

  it("should accept nothing that was not offered", () => {
    const { options: _, ...observed } = START;
    expect(announceRunStart({ onPreparedAgentRunStart: () => "reply-dispatch" }, observed)).toBe("runtime");
  });

  it("should be the only one called where the deprecated callback exists, too", () => {
    const called: string[] = [];
    announceRunStart(
      {
        onPreparedAgentRunStart: () => void called.push("prepared"),
        onAgentRunStart: () => void called.push("positional"),
      },
      START,
    );
    expect(called).toEqual(["prepared"]);
  });

  it("should forward complete notification and return value through wrappers", async () => {
    const seen: unknown[] = [];
    const extended = { ...START, futureField: { kept: true } };
    const wrapped = observingRunStart(
      observingRunStart(
        {
          onPreparedAgentRunStart: (...args) => {
            seen.push(...args);
            return "reply-dispatch";
          },
        },
        () => seen.push("inner"),
      ),
      () => seen.push("outer"),
    );
    expect(announceRunStart(wrapped, extended)).toBe("reply-dispatch");
    expect(seen).toEqual(["outer", "inner", extended]);
  });

  it("should come through a dispatch with notification and return value as they are", async () => {
    const answers: unknown[] = [];
    const seen: unknown[] = [];
    const { hooks } = await gateway({
      on: {
        a: (api) => api.on("reply_dispatch", (_, ctx) => void answers.push(ctx.onPreparedAgentRunStart?.(START))),
      },
    });
    const { turn } = turnOf(hooks.runs, {
      ingress: { acknowledge() {} },
      context: {
        cfg: {},
        dispatcher: new NotingDispatcher(),
        recordProcessed() {},
        markIdle() {},
        onPreparedAgentRunStart: (start) => {
          seen.push(start);
          return "reply-dispatch";
        },
      },
    });
    await turn.takeover();
    expect([answers, seen]).toEqual([["reply-dispatch"], [START]]);
    expect(seen[0]).toBe(START);
  });
});

describe("the deprecated onAgentRunStart", () => {
  it("should retain its positional arguments", () => {
    const seen: unknown[] = [];
    announceRunStart({ onAgentRunStart: (...args) => void seen.push(args) }, START);
    expect(seen).toEqual([["r-1", "token", START.options, START.transcriptStart]]);
  });

  it("should not take the completion", () => {
    expect(announceRunStart({ onAgentRunStart: () => "reply-dispatch" }, START)).toBe("runtime");
    expect(announceRunStart({}, START)).toBe("runtime");
  });

  it("should be forwarded by wrappers with everything it was given", () => {
    const { onAgentRunStart } = observingRunStart({ onAgentRunStart: (...args) => args }, () => {});
    expect(onAgentRunStart?.("r-1", "token", START.options, null)).toEqual(["r-1", "token", START.options, null]);
  });
});
