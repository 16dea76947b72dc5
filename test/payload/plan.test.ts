import { describe, expect, it } from "vitest";
import { isCanonical } from "#src/payload/canonical-check.js";
import type { PlanReadyPayload } from "#src/payload/messages.js";
import { payloadFromBytes } from "#src/payload/payload.js";
import { readPlan, stampPlan } from "#src/payload/plan.js";
import { hookPayloadType } from "#src/payload/schema.js";
import { payload, planReady, preToolCall } from "./payloads.js";
import { type Bytes, block, bytes, hex, int } from "./wire.js";

function plan(...items: readonly Bytes[]): Bytes {
  return block(5, block(1, ...items.map((item) => block(2, item))));
}

describe("readPlan", () => {
  it("should say what policy matches on, item by item", () => {
    expect(readPlan(payload(planReady))).toEqual([
      {
        itemId: "a",
        provider: "fs",
        toolName: "write",
        kind: "resource",
        risk: "high",
        incoming: "pending",
        decidedBy: "",
      },
      { itemId: "b", provider: "web", toolName: "fetch", kind: "data_source", incoming: "deny", decidedBy: "guard" },
    ]);
  });

  it("should take kinds, risks and decisions that it does not know for unspecified", () => {
    const strange = payloadFromBytes(plan(bytes(block(1, "a"), int(6, 9), int(8, 9), int(9, 9))));
    expect(readPlan(strange)).toEqual([
      { itemId: "a", provider: "", toolName: "", kind: "unspecified", incoming: "unspecified", decidedBy: "" },
    ]);
  });

  it("should find an absent and an empty plan empty", () => {
    expect(readPlan(payloadFromBytes(block(5)))).toEqual([]);
    expect(readPlan(payloadFromBytes(plan()))).toEqual([]);
  });

  it.each([
    ["two items with one id", plan(block(1, "a"), block(1, "b"), block(1, "a")), 2],
    ["two items without one", plan(bytes(), bytes()), 1],
  ])("should refuse %s", (_, encoded, index) => {
    expect(() => readPlan(payloadFromBytes(encoded))).toThrow(
      expect.objectContaining({
        code: "HL_PAYLOAD",
        message: `planReady.plan.items[${index}].id is the id of an earlier item`,
      }),
    );
  });

  it("should not be asked of another point", () => {
    expect(() => readPlan(payload(preToolCall))).toThrow(expect.objectContaining({ code: "HL_INTERNAL" }));
  });
});

describe("stampPlan", () => {
  it("should write decision and decider, and nothing else", () => {
    const stamped = stampPlan(payload(planReady), [
      { itemId: "b", decision: "deny", decidedBy: "guard" },
      { itemId: "a", decision: "ask", decidedBy: "policy:default", reason: "why" },
    ]);
    const { plan: before } = payload(planReady).view as PlanReadyPayload;
    const { plan: after } = stamped.view as PlanReadyPayload;
    expect(after).toEqual({
      ...before,
      items: [{ ...before!.items[0], decision: "PLAN_DECISION_ASK", decidedBy: "policy:default" }, before!.items[1]],
    });
  });

  it("should keep unknown fields at every depth, and stay canonical", () => {
    const before = bytes(
      block(
        5,
        block(1, block(1, "turn"), block(2, block(1, "a"), int(6, 1), block(10, "text"), int(99, 5)), int(98, 4)),
        int(97, 3),
      ),
      int(96, 2),
    );
    const stamped = stampPlan(payloadFromBytes(before), [{ itemId: "a", decision: "allow", decidedBy: "policy:r" }]);
    expect(hex(stamped.bytes)).toBe(
      hex(
        bytes(
          block(
            5,
            block(
              1,
              block(1, "turn"),
              block(2, block(1, "a"), int(6, 2), block(7, "policy:r"), block(10, "text"), int(99, 5)),
              int(98, 4),
            ),
            int(97, 3),
          ),
          int(96, 2),
        ),
      ),
    );
    expect(isCanonical(hookPayloadType(), stamped.bytes)).toBe(true);
  });

  it("should leave items alone that are not named, and take any decider", () => {
    const before = payloadFromBytes(plan(block(1, "a"), bytes(block(1, "b"), block(7, "old"))));
    expect(hex(stampPlan(before, []).bytes)).toBe(hex(before.bytes));
    expect(hex(stampPlan(before, [{ itemId: "b", decision: "deny", decidedBy: "" }]).bytes)).toBe(
      hex(plan(block(1, "a"), bytes(block(1, "b"), int(6, 4)))),
    );
    expect(hex(stampPlan(payloadFromBytes(block(5)), []).bytes)).toBe(hex(block(5)));
  });
});
