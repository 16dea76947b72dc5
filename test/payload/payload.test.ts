import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { HOOK_POINTS } from "#src/core/points.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFrom, payloadFromBytes, payloadFromView } from "#src/payload/payload.js";
import { everyPoint, preModelCall } from "./payloads.js";
import { type Bytes, block, bytes, hex, int } from "./wire.js";

const sessionEnd = block(8, block(1, "s"), int(2, 2));

describe("payload", () => {
  it("should take its point from the variant that is set", () => {
    expect(everyPoint.map((input) => payloadFromView(input).point)).toEqual(Object.keys(HOOK_POINTS));
  });

  it("should hold the canonical bytes, whatever came in", () => {
    const scrambled = block(8, int(2, 2), block(1, "s"));
    const made = payloadFromBytes(scrambled);
    expect(hex(made.bytes)).toBe(hex(sessionEnd));
    expect(payloadFromView({ sessionEnd: { sessionId: "s", status: 2 } }).bytes).toEqual(made.bytes);
    expect(payloadFromBytes(block(8)).bytes).not.toEqual(made.bytes);
  });

  it("should not change when its caller's bytes do", () => {
    const mine = bytes(sessionEnd);
    const made = payloadFromBytes(mine);
    mine.fill(0);
    expect(hex(made.bytes)).toBe(hex(sessionEnd));
  });

  it("should make its view and its reference once", () => {
    const made = payloadFromBytes(sessionEnd);
    expect(made.view).toEqual({ sessionId: "s", status: "SESSION_STATUS_COMPLETED" });
    expect(made.view).toBe(made.view);
    expect(made.ref).toEqual({
      digest: `sha256:${createHash("sha256").update("hookledger/payload/v1\0").update(sessionEnd).digest("hex")}`,
      size: sessionEnd.length,
      encoding: "proto",
    });
    expect(made.ref).toBe(made.ref);
  });

  it("should be taken in every form a host may have", () => {
    const made = payloadFromView(preModelCall);
    expect(payloadFrom(made)).toBe(made);
    expect(payloadFrom(made.bytes).bytes).toEqual(made.bytes);
    expect(payloadFrom(preModelCall).bytes).toEqual(made.bytes);
    expect(payloadFrom({ point: made.point, bytes: made.bytes, view: {}, ref: made.ref }).bytes).toEqual(made.bytes);
  });

  it.each<[string, Bytes, string]>([
    ["nothing", bytes(), "payload sets no hook point"],
    ["only unknown fields", int(99, 1), "payload sets no hook point"],
    ["two variants", bytes(block(1), block(8)), "payload sets more than one hook point: sessionStart and sessionEnd"],
    ["a variant twice", bytes(block(8), block(8)), "payload sets more than one hook point: sessionEnd and sessionEnd"],
    ["garbage", bytes([0xff, 0xff]), "payload is no field tag at byte 0"],
    ["a variant of another wire type", int(8, 1), "sessionEnd has wire type 0 at byte 1"],
    ["a cut payload", sessionEnd.subarray(0, 4), "sessionEnd is truncated or malformed at byte 1"],
  ])("should refuse %s", (_, encoded, message) => {
    expect(() => payloadFromBytes(encoded)).toThrow(expect.objectContaining({ code: "HL_PAYLOAD", message }));
  });

  it("should refuse what is too large", () => {
    expect(() => payloadFromBytes(sessionEnd, { maxBytes: 4 })).toThrow(
      expect.objectContaining({
        code: "HL_LIMIT_PAYLOAD",
        message: `payload of ${sessionEnd.length} bytes is over 4 bytes`,
      }),
    );
    expect(() => payloadFromBytes(new Uint8Array(64 * 1024 * 1024 + 1))).toThrow(
      expect.objectContaining({ code: "HL_LIMIT_PAYLOAD" }),
    );
  });

  it.each<[string, unknown, string]>([
    ["no key", {}, "payload sets no hook point"],
    [
      "two keys",
      { sessionEnd: {}, sessionStart: {} },
      "payload has both sessionEnd and sessionStart, of which one may be set",
    ],
    ["another key", { sessionEnds: {} }, 'payload has no property "sessionEnds"'],
    [
      "a wrong field",
      { preModelCall: { messages: [{ role: "X" }] } },
      "preModelCall.messages[0].role is no name of pluggableharness.content.v1.Role",
    ],
  ])("should refuse an object with %s", (_, input, message) => {
    const refused = { name: "HookledgerError", code: "HL_PAYLOAD", message };
    expect(() => payloadFromView(input as HookPayloadInput)).toThrow(expect.objectContaining(refused));
  });
});
