import { describe, expect, it } from "vitest";
import type { ItemDecision } from "#src/core/events.js";
import { hookErrorsOf, type PlanItemDecision, verdictOf } from "#src/core/result.js";
import {
  aborted,
  ack,
  allow,
  brokenBy,
  chain,
  decided,
  deny,
  digest,
  failed,
  folded,
  given,
  hookError,
  invalid,
  invoked,
  lost,
  policy,
  ref,
  started,
  timeout,
  timeoutError,
} from "../support/given.js";

const PLAN = { point: "plan-ready" };

function item(
  itemId: string,
  decision: ItemDecision,
  policyDecision: ItemDecision,
  decidedBy = "policy:default",
): PlanItemDecision {
  return { itemId, decision, decidedBy, policyDecision, reason: null };
}

describe("the verdict", () => {
  it("should say nothing while the dispatch is open", () => {
    expect(verdictOf(folded([started(chain("policy"), PLAN), invoked(0), policy("allow")]))).toStrictEqual({
      dispatchId: "01K0000000000000000000000A",
      point: "plan-ready",
      status: "open",
      decision: null,
      decidedBy: null,
      allowed: false,
      abortCause: null,
      reason: null,
      payload: null,
      hookErrors: [],
      planDecisions: [],
    });
  });

  it("should hold all of an allow", () => {
    expect(verdictOf(folded([started([]), decided("allow", "kernel:default")]))).toStrictEqual({
      dispatchId: "01K0000000000000000000000A",
      point: "pre-tool-call",
      status: "decided",
      decision: "allow",
      decidedBy: "kernel:default",
      allowed: true,
      abortCause: null,
      reason: null,
      payload: digest("input"),
      hookErrors: [],
      planDecisions: [],
    });
  });

  it("should hold all of an abort by the chain", () => {
    const error = hookError("PROCESS_CRASHED");
    const log = [started(chain("transform")), invoked(0), failed(0, "PROCESS_CRASHED"), brokenBy(0, error)];
    expect(verdictOf(folded(log))).toStrictEqual({
      dispatchId: "01K0000000000000000000000A",
      point: "pre-tool-call",
      status: "aborted",
      decision: null,
      decidedBy: null,
      allowed: false,
      abortCause: "hook_error",
      reason: "PROCESS_CRASHED: it broke",
      payload: null,
      hookErrors: [{ subscriber: "transform", mode: "transform", ...error }],
      planDecisions: [],
    });
  });

  it.each(["cancelled", "store_unavailable", "recovered"] as const)(
    "should name the cause %s and no reason",
    (cause) => {
      given(started([]), aborted(cause)).comesTo({
        status: "aborted",
        abortCause: cause,
        reason: null,
        allowed: false,
      });
    },
  );

  it("should take back an allow that was not confirmed", () => {
    given(started([]), decided("allow", "kernel:default"), aborted("unconfirmed")).comesTo({
      status: "aborted",
      abortCause: "unconfirmed",
      decision: null,
      allowed: false,
      payload: null,
    });
  });
});

describe("the reason of a deny", () => {
  it.each([
    ["the denier's own", deny(0, "too risky"), "too risky"],
    ["none when it gave none", deny(0), null],
    ["the failure's category and message", failed(0, "VETO_FAILED", "boom"), "VETO_FAILED: boom"],
    ["INVALID_RESPONSE", invalid(0, "no oneof"), "INVALID_RESPONSE: no oneof"],
    ["TIMEOUT, never a refusal", timeout(0), "TIMEOUT: no answer within 1000 ms"],
  ])("should be %s", (_, settlement, reason) => {
    given(started(chain("veto")), invoked(0), settlement, decided("deny", "veto")).comesTo({ reason });
  });

  it("should be the plan's when policy denied every item, and policy's failure when it failed", () => {
    given(started(chain("policy"), PLAN), invoked(0), policy("deny", "deny"), decided("deny", "kernel:policy")).comesTo(
      {
        reason: "policy denied every item of the plan (2)",
      },
    );
    given(
      started(chain("policy"), PLAN),
      invoked(0),
      failed(0, "VETO_FAILED", "no rules"),
      decided("deny", "kernel:policy"),
    ).comesTo({ reason: "VETO_FAILED: no rules", hookErrors: [] });
  });
});

describe("hook errors", () => {
  it("should stand in chain order, whenever they came", () => {
    const log = [
      started(chain("observe:a", "observe:b@50", "observe:c", "veto:d")),
      ...[0, 1, 2].map((index) => invoked(index)),
      invalid(2),
      timeout(1, 50),
      failed(0),
      invoked(3),
      failed(3, "VETO_FAILED"),
    ];
    expect(hookErrorsOf(folded(log))).toStrictEqual([
      { subscriber: "a", mode: "observe", ...hookError("UNKNOWN") },
      { subscriber: "b", mode: "observe", ...timeoutError(50) },
      { subscriber: "c", mode: "observe", ...hookError("INVALID_RESPONSE") },
      { subscriber: "d", mode: "veto", ...hookError("VETO_FAILED") },
    ]);
  });

  it("should count no explicit deny and no lost answer", () => {
    const log = [
      started(chain("observe", "veto"), { observe: "detached" }),
      invoked(0),
      invoked(1),
      deny(1),
      decided("deny", "veto1"),
      lost(0),
    ];
    expect(hookErrorsOf(folded(log))).toStrictEqual([]);
  });

  it("should never name the kernel", () => {
    expect(hookErrorsOf(folded([started(chain("policy"), PLAN), invoked(0), timeout(0)]))).toStrictEqual([]);
  });
});

describe("plan decisions and allowed", () => {
  const policed = given(started(chain("policy", "veto:gate"), PLAN), invoked(0));

  it.each([
    [["allow"], true],
    [["allow", "allow"], true],
    [[], true],
    [["allow", "ask"], false],
    [["allow", "deny"], false],
    [["ask"], false],
    [["ask", "deny"], false],
  ] as const)("should, of the items %j that passed the chain, be allowed: %s", (decisions, allowed) => {
    policed
      .when(policy(...decisions), invoked(1, "stamped"), allow(1), decided("allow", "kernel:default", "stamped"))
      .comesTo({
        decision: "allow",
        allowed,
        planDecisions: decisions.map((decision, at) => item(`i${at}`, decision, decision)),
      });
  });

  it("should keep policy's words when policy denies the whole plan", () => {
    policed.when(policy("deny", "deny"), decided("deny", "kernel:policy")).comesTo({
      allowed: false,
      planDecisions: [item("i0", "deny", "deny"), item("i1", "deny", "deny")],
    });
  });

  it.each([
    ["denies", deny(1, "no")],
    ["fails", failed(1, "VETO_FAILED")],
    ["runs out of time", timeout(1)],
  ])("should deny every item by the plugin that %s and keep policy's word readable", (_, settlement) => {
    policed
      .when(policy("allow", "ask", "deny"), invoked(1, "stamped"), settlement, decided("deny", "gate", "stamped"))
      .comesTo({
        allowed: false,
        planDecisions: [
          item("i0", "deny", "allow", "gate"),
          item("i1", "deny", "ask", "gate"),
          item("i2", "deny", "deny", "gate"),
        ],
      });
  });

  it("should carry policy's reason for an item", () => {
    const items = [{ itemId: "i0", decision: "deny", decidedBy: "policy:r", reason: "because" } as const];
    given(
      started(chain("policy"), PLAN),
      invoked(0),
      { type: "outcome", index: 0, class: "policy", payload: ref("stamped"), items },
      decided("deny", "kernel:policy"),
    ).comesTo({
      planDecisions: [
        { itemId: "i0", decision: "deny", decidedBy: "policy:r", policyDecision: "deny", reason: "because" },
      ],
    });
  });

  it("should list no item of a dispatch that was aborted", () => {
    policed.when(policy("allow"), aborted("cancelled")).comesTo({ planDecisions: [], allowed: false });
  });

  it("should not be allowed by an observer's acknowledgement after an ask", () => {
    given(started(chain("policy", "observe"), PLAN), invoked(0), policy("ask"), invoked(1, "stamped"), ack(1))
      .when(decided("allow", "kernel:default", "stamped"))
      .comesTo({ decision: "allow", allowed: false });
  });
});
