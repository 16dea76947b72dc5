import { describe, expect, it } from "vitest";
import { HOOK_POINTS } from "#src/core/points.js";
import { hookPayloadType, messageType, schemaDigest } from "#src/payload/schema.js";

describe("schema", () => {
  it("should have a variant of HookPayload for every hook point, numbered in order", () => {
    expect(hookPayloadType().fields.map(({ number, name }) => [number, name])).toEqual(
      Object.values(HOOK_POINTS).map(({ variant }, i) => [i + 1, variant]),
    );
  });

  it("should know every mutable field of every point", () => {
    for (const { variant, mutable } of Object.values(HOOK_POINTS)) {
      const field = hookPayloadType().byName.get(variant);
      const message = field !== undefined && "message" in field ? field.message : undefined;
      expect(mutable.filter((name) => !message?.byName.has(name))).toEqual([]);
    }
  });

  it("should tell optional fields and oneof members from fields without presence", () => {
    const usage = messageType("pluggableharness.model.v1.Usage");
    expect(usage.fields.map(({ jsonName, presence, oneof }) => ({ jsonName, presence, oneof }))).toEqual([
      { jsonName: "inputTokens", presence: false, oneof: -1 },
      { jsonName: "outputTokens", presence: false, oneof: -1 },
      { jsonName: "cacheReadTokens", presence: true, oneof: -1 },
      { jsonName: "cacheWriteTokens", presence: true, oneof: -1 },
      { jsonName: "reasoningTokens", presence: true, oneof: -1 },
    ]);
    const block = messageType("pluggableharness.content.v1.ContentBlock");
    expect(block.oneofs).toEqual(["block"]);
    expect(new Set(block.fields.map(({ oneof }) => oneof))).toEqual(new Set([0]));
  });

  it("should refuse a name that the contract does not have", () => {
    expect(() => messageType("pluggableharness.hook.v1.Nothing")).toThrow(TypeError);
    expect(() => messageType("__proto__")).toThrow(TypeError);
  });

  it("should digest the contract to the value that ledgers of this version hold", () => {
    expect(schemaDigest()).toBe("sha256:2f954d0a67a23e10c2135cafc2a8d5863ef82e466a118b58067ac7c7fbce7208");
  });
});
