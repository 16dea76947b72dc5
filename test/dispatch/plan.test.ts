import { describe, expect, it } from "vitest";
import type { PolicyRule } from "#src/core/policy.js";
import { HookledgerError } from "#src/errors.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { readPlan } from "#src/payload/plan.js";
import { createRedactor, type Redactor } from "#src/payload/redaction.js";
import { allow, deny, keep, never, Rig } from "../support/kernels.js";
import { VirtualClock } from "../support/virtual-clock.js";

const RULES: readonly PolicyRule[] = [
  { name: "writes", match: { tool_name: "write" }, action: "allow" },
  { name: "removals", match: { tool_name: "remove" }, action: "deny", reason: "never" },
];

type Item = {
  id: string;
  operationName?: string;
  kind?: "TOOL_KIND_RESOURCE";
  decision?: "PLAN_DECISION_DENY";
  decidedBy?: string;
};

function plan(...items: readonly Item[]): HookPayloadInput {
  return { planReady: { plan: { turnId: "t-1", items } } };
}

const write = { id: "w", operationName: "write" };
const remove = { id: "r", operationName: "remove" };
const other = { id: "o", operationName: "browse" };

describe("policy", () => {
  it("should stand first, and stamp what those behind it see", async () => {
    const rig = new Rig({ point: "plan-ready", policy: RULES, chain: [{ mode: "veto", does: allow }] });
    const result = await rig.dispatch({}, plan(write, remove, other));
    expect(result).toMatchObject({ decision: "allow", decidedBy: "kernel:default", allowed: false });
    expect(result.planDecisions).toStrictEqual([
      { itemId: "w", decision: "allow", decidedBy: "policy:writes", policyDecision: "allow", reason: null },
      { itemId: "r", decision: "deny", decidedBy: "policy:removals", policyDecision: "deny", reason: "never" },
      { itemId: "o", decision: "ask", decidedBy: "policy:default", policyDecision: "ask", reason: null },
    ]);
    const seen = readPlan(rig.calls[0]!.call.payload);
    expect(seen.map(({ incoming, decidedBy }) => [incoming, decidedBy])).toStrictEqual([
      ["allow", "policy:writes"],
      ["deny", "policy:removals"],
      ["ask", "policy:default"],
    ]);
    expect(result.payload).toBe(rig.calls[0]!.call.payload);
    const { told, diverged } = await rig.recorded(result.dispatchId);
    expect(told.slice(0, 4)).toStrictEqual(["started", "invoked 0", "policy 0", "invoked 1"]);
    expect(diverged).toBeNull();
  });

  it("should allow a plan of which every item is allowed, and one without items", async () => {
    const rig = new Rig({ point: "plan-ready", policy: RULES });
    expect(await rig.dispatch({}, plan(write))).toMatchObject({ allowed: true });
    expect(await rig.dispatch({}, plan())).toMatchObject({ allowed: true, planDecisions: [] });
    expect(await rig.dispatch({}, { planReady: {} })).toMatchObject({ allowed: true, planDecisions: [] });
  });

  it("should deny the chain when it denies every item, and call nobody", async () => {
    const rig = new Rig({ point: "plan-ready", policy: RULES, chain: [{ mode: "observe", does: never }] });
    const result = await rig.dispatch({}, plan(remove));
    expect(result).toMatchObject({
      decision: "deny",
      decidedBy: "kernel:policy",
      allowed: false,
      reason: "policy denied every item of the plan (1)",
      hookErrors: [],
    });
    expect(rig.calls).toHaveLength(0);
  });

  it("should let an incoming DENY stand, with who made it", async () => {
    const rig = new Rig({ point: "plan-ready", policy: RULES });
    const denied = { ...write, id: "d", decision: "PLAN_DECISION_DENY", decidedBy: "the user" } as const;
    const { planDecisions } = await rig.dispatch({}, plan(write, denied));
    expect(planDecisions[1]).toMatchObject({ decision: "deny", decidedBy: "the user", policyDecision: "deny" });
  });

  it("should be overridden for every item by a plugin's DENY, its own verdict readable", async () => {
    const rig = new Rig({ point: "plan-ready", policy: RULES, chain: [{ mode: "veto", id: "gate", does: deny }] });
    const result = await rig.dispatch({}, plan(write, other));
    expect(result).toMatchObject({ decision: "deny", decidedBy: "gate", allowed: false, reason: "not today" });
    expect(result.planDecisions).toMatchObject([
      { itemId: "w", decision: "deny", decidedBy: "gate", policyDecision: "allow" },
      { itemId: "o", decision: "deny", decidedBy: "gate", policyDecision: "ask" },
    ]);
  });

  it("should never be loosened by a later ALLOW", async () => {
    const rig = new Rig({
      point: "plan-ready",
      policy: RULES,
      chain: [
        { mode: "veto", does: allow },
        { mode: "transform", does: keep },
        { mode: "veto", does: allow },
      ],
    });
    const result = await rig.dispatch({}, plan(write, remove));
    expect(result).toMatchObject({ decision: "allow", allowed: false });
    expect(result.planDecisions[1]).toMatchObject({ decision: "deny" });
  });

  it.each([
    [
      "fails",
      { class: "failed", error: { category: "VETO_FAILED", message: "policy: boom" } },
      "VETO_FAILED: policy: boom",
    ],
    [
      "throws",
      () => {
        throw new Error("boom");
      },
      "VETO_FAILED: boom",
    ],
    ["hangs", never, "TIMEOUT: no answer within 1000 ms"],
  ] as const)("should deny by kernel:policy when it %s, without a hook error", async (_, policy, reason) => {
    const rig = new Rig({ point: "plan-ready", policy, chain: [{ mode: "veto", does: allow }] });
    const result = await rig.dispatch({}, plan(write));
    expect(result).toMatchObject({ decision: "deny", decidedBy: "kernel:policy", reason, hookErrors: [] });
    expect(rig.hookErrors).toHaveLength(0);
    expect(rig.calls).toHaveLength(0);
    const { diverged, verdict } = await rig.recorded(result.dispatchId);
    expect(diverged).toBeNull();
    expect(verdict.hookErrors).toStrictEqual([]);
  });

  it("should deny by the clock when it blocks the thread", async () => {
    const clock = new VirtualClock();
    const blocking = {
      name: "slow",
      action: "allow",
      get match() {
        clock.block(2000);
        return {};
      },
    } as const;
    const rig = new Rig({ clock, point: "plan-ready", policy: [blocking] });
    expect(await rig.dispatch({}, plan(write))).toMatchObject({ decision: "deny", decidedBy: "kernel:policy" });
  });

  it("should deny what it cannot record, and leave a record of that", async () => {
    const rig = new Rig({ point: "plan-ready", policy: RULES });
    const many = Array.from({ length: 4000 }, (_, i) => ({ id: `item-${i}`, operationName: "write" }));
    const result = await rig.dispatch({}, plan(...many));
    expect(result).toMatchObject({ decision: "deny", decidedBy: "kernel:policy", allowed: false, recorded: true });
    expect(result.reason).toContain("HL_LIMIT_EVENT");
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
    expect(await rig.dispatch({}, plan({ id: "x".repeat(300_000) }))).toMatchObject({
      decision: "deny",
      recorded: true,
    });
  });

  it("should deny when the stamped plan's redacted copy is over the bound", async () => {
    const redactor = createRedactor({ patterns: ["never matches"], secrets: [] });
    const bounding: Redactor = {
      ...{ active: true, text: (text) => text, json: (value) => value, mayHide: () => false },
      payload(payload) {
        if (!Buffer.from(payload.bytes).includes("policy:writes")) return redactor.payload(payload);
        throw new HookledgerError("HL_LIMIT_PAYLOAD", "the redacted copy is too large");
      },
    };
    const rig = new Rig({ point: "plan-ready", policy: RULES, parts: { redactor: bounding } });
    const result = await rig.dispatch({}, plan(write));
    expect(result).toMatchObject({ decision: "deny", decidedBy: "kernel:policy", planDecisions: [], recorded: true });
    expect(result.reason).toContain("HL_LIMIT_PAYLOAD");
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
  });
});
