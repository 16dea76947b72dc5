import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasUnknown, lostUnknown, withoutUnknown } from "#src/conformance/bare.js";
import { hostileRequests } from "#src/conformance/hostile-requests.js";
import { payloadsOf } from "#src/conformance/payloads.js";
import { HOOK_POINTS, isHookPoint } from "#src/core/points.js";
import {
  type Payload,
  payloadFromBytes,
  payloadFromJson,
  payloadFromView,
  payloadToJson,
} from "#src/payload/payload.js";
import { UNKNOWN_FIELDS } from "#src/payload/view.js";
import { sameBytes } from "#src/payload/wire.js";

const POINTS = Object.keys(HOOK_POINTS).filter(isHookPoint);
const BLOCKS = ["text", "toolUse", "toolResult", "image", "thinking", "redactedThinking", "document"];

function sample(
  point: (typeof POINTS)[number],
  flavour: "full" | "sparse" | "unknown",
  numRuns = 200,
): readonly Payload[] {
  return fc.sample(payloadsOf(point, flavour), { seed: 1, numRuns });
}

describe("generated payloads", () => {
  it.each(POINTS)("should be valid, canonical and of their point: %s", (point) => {
    for (const flavour of ["full", "sparse", "unknown"] as const) {
      for (const payload of sample(point, flavour, 50)) {
        expect(payload.point).toBe(point);
        expect(sameBytes(payloadFromBytes(payload.bytes).bytes, payload.bytes)).toBe(true);
      }
    }
  });

  it("should be sayable in JSON but for unknown fields", () => {
    for (const payload of POINTS.flatMap((point) => sample(point, "full", 50))) {
      expect(sameBytes(payloadFromJson(JSON.stringify(payloadToJson(payload))).bytes, payload.bytes)).toBe(true);
    }
  });

  it("should hold every kind of content, large texts, and numbers to the end of their range", () => {
    const messages = JSON.stringify(sample("pre-model-call", "full", 500).map(payloadToJson));
    for (const block of BLOCKS) expect(messages).toContain(`{"${block}":{`);
    expect(messages).toContain("large large large");
    expect(messages).toContain('"__proto__"');
    const usage = JSON.stringify(sample("post-model-response", "full", 500).map(payloadToJson));
    for (const extreme of [2n ** 63n - 1n, -(2n ** 63n)]) expect(usage).toContain(`"${extreme}"`);
  });

  it("should have messages that are missing only where they are sparse", () => {
    const plans = (flavour: "full" | "sparse") => sample("plan-ready", flavour).map(({ view }) => "plan" in view);
    expect(plans("full")).not.toContain(false);
    expect(plans("sparse")).toContain(false);
  });

  it("should have unknown fields where they are to have them, and none without", () => {
    expect(sample("pre-model-call", "unknown").some(hasUnknown)).toBe(true);
    expect(sample("pre-model-call", "full").some(hasUnknown)).toBe(false);
    expect(sample("pre-model-call", "unknown").map(withoutUnknown).some(hasUnknown)).toBe(false);
  });
});

describe("lostUnknown", () => {
  const unknown = Uint8Array.of(0xa2, 0x38, 1, 1);
  const block = { text: { text: "hello" }, [UNKNOWN_FIELDS]: unknown };
  const asked = payloadFromView({ preModelCall: { messages: [{ id: "m", content: [block] }], model: { id: "x" } } });
  const answered = (...messages: readonly object[]) =>
    payloadFromView({ preModelCall: { messages, model: { id: "x" } } });

  it.each([
    ["nothing changed", answered({ id: "m", content: [block] }), undefined],
    ["another message was put before", answered({ id: "n" }, { id: "m", content: [block] }), undefined],
    ["the message is gone", answered(), undefined],
    ["the block was rewritten", answered({ id: "m", content: [{ text: { text: "bye" } }] }), undefined],
    [
      "the block lost its field",
      answered({ id: "m", content: [{ text: { text: "hello" } }] }),
      "pluggableharness.content.v1.Message",
    ],
    [
      "the block of a rewritten message lost its field",
      answered({ id: "other", content: [{ text: { text: "hello" } }] }),
      "pluggableharness.content.v1.ContentBlock",
    ],
  ])("should tell, where %s", (_, answer, lost) => {
    expect(lostUnknown(asked, answer)).toBe(lost);
  });
});

describe("hostile requests", () => {
  it("should be of every size up to more than gRPC takes by itself", () => {
    const requests = fc.sample(hostileRequests({ point: "plan-ready", mode: "veto" }), { seed: 1, numRuns: 500 });
    const sizes = requests.map(({ length }) => length);
    expect(Math.min(...sizes)).toBe(0);
    expect(Math.max(...sizes)).toBeGreaterThan(4 * 1024 * 1024);
  });
});
