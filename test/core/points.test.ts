import { describe, expect, it } from "vitest";
import { HOOK_POINTS, isHookPoint } from "#src/core/points.js";

const TABLE = [
  ["session-start", "session_start", [], false],
  ["pre-model-call", "pre_model_call", ["messages"], false],
  ["post-model-response", "post_model_response", [], false],
  ["pre-tool-call", "pre_tool_call", [], true],
  ["plan-ready", "plan_ready", [], true],
  ["post-tool-call", "post_tool_call", [], false],
  ["post-apply", "post_apply", [], false],
  ["session-end", "session_end", [], false],
] as const;

describe("hook points", () => {
  it.each(TABLE)(
    "should give %s its variant, its mutable fields and its say",
    (point, variant, mutable, vetoBearing) => {
      expect(HOOK_POINTS[point]).toStrictEqual({ variant, mutable, vetoBearing });
      expect(isHookPoint(point)).toBe(true);
    },
  );

  it("should be these eight and no more", () => {
    expect(Object.keys(HOOK_POINTS)).toStrictEqual(TABLE.map(([point]) => point));
  });

  it.each(["context-assemble", "pre_tool_call", "", "__proto__", "toString", "constructor"])(
    "should not know %j",
    (name) => {
      expect(isHookPoint(name)).toBe(false);
    },
  );
});
