import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { canonicalize } from "#src/payload/canonical.js";
import { isCanonical } from "#src/payload/canonical-check.js";
import { hookPayloadType, messageType } from "#src/payload/schema.js";
import { encodeView } from "#src/payload/view.js";
import { decodeCanonical } from "#src/payload/view-decode.js";
import { HookPayload, meaningOf, root } from "./naive.js";
import { encodingOf, modelOf, payloadModel } from "./random-messages.js";
import { hex } from "./wire.js";

const FLAVOUR = { unknown: "everywhere", sayable: false } as const;
const TYPES = [
  "pluggableharness.hook.v1.HookPayload",
  "pluggableharness.render.v1.RenderTree",
  "pluggableharness.model.v1.Usage",
  "google.protobuf.Struct",
  "hookledger.v1.DescribeResponse",
  "hookledger.v1.DispatchResult",
];
const anyModel = fc.constantFrom(...TYPES).chain((name) => modelOf(messageType(name), FLAVOUR));
const seed = fc.integer();

describe("canonical form, for any message", () => {
  it("should be the same for every encoding of it", () => {
    fc.assert(
      fc.property(anyModel, seed, seed, (model, one, other) => {
        const a = canonicalize(model.type, encodingOf(model, one));
        const b = canonicalize(model.type, encodingOf(model, other));
        expect(hex(a)).toBe(hex(b));
      }),
      { numRuns: 400 },
    );
  });

  it("should mean the same message, be its own canonical form, and be recognised", () => {
    fc.assert(
      fc.property(anyModel, seed, (model, one) => {
        const encoded = encodingOf(model, one);
        const canonical = canonicalize(model.type, encoded);
        const reflected = root.lookupType(model.type.name);
        expect(meaningOf(reflected, canonical)).toEqual(meaningOf(reflected, encoded));
        expect(canonicalize(model.type, canonical)).toBe(canonical);
        expect(isCanonical(model.type, canonical)).toBe(true);
      }),
      { numRuns: 400 },
    );
  });

  it("should be equal exactly for equal messages", () => {
    const small = modelOf(messageType("pluggableharness.tool.v1.ToolError"), FLAVOUR, 3);
    fc.assert(
      fc.property(small, small, seed, seed, fc.boolean(), (a, b, one, other, twice) => {
        const left = encodingOf(a, one);
        const right = encodingOf(twice ? a : b, other);
        const reflected = root.lookupType(a.type.name);
        const equal =
          JSON.stringify(meaningOf(reflected, canonicalize(a.type, left))) ===
          JSON.stringify(meaningOf(reflected, canonicalize(a.type, right)));
        expect(hex(canonicalize(a.type, left)) === hex(canonicalize(a.type, right))).toBe(equal);
      }),
      { numRuns: 300 },
    );
  });

  it("should survive the view and the way back", () => {
    fc.assert(
      fc.property(anyModel, seed, (model, one) => {
        const canonical = canonicalize(model.type, encodingOf(model, one));
        expect(hex(encodeView(model.type, decodeCanonical(model.type, canonical)))).toBe(hex(canonical));
      }),
      { numRuns: 300 },
    );
  });

  it("should survive a view that is rebuilt by spreading at every depth", () => {
    const rebuild = (value: unknown): unknown => {
      if (value instanceof Uint8Array || typeof value !== "object" || value === null) return value;
      if (Array.isArray(value)) return value.map(rebuild);
      const copy: Record<PropertyKey, unknown> = { ...value };
      for (const key of Object.keys(copy))
        Object.defineProperty(copy, key, { value: rebuild(copy[key]), enumerable: true });
      return copy;
    };
    // Plain data keeps unknown fields only while it is returned as it came.
    const model = modelOf(messageType("pluggableharness.content.v1.Message"), { unknown: "messages", sayable: false });
    fc.assert(
      fc.property(model, seed, (given, one) => {
        const canonical = canonicalize(given.type, encodingOf(given, one));
        expect(hex(encodeView(given.type, rebuild(decodeCanonical(given.type, canonical))))).toBe(hex(canonical));
      }),
      { numRuns: 200 },
    );
  });
});

describe("canonical form, for any bytes", () => {
  function attempt(bytes: Uint8Array): Uint8Array | null {
    try {
      return canonicalize(hookPayloadType(), bytes);
    } catch (error) {
      expect(error).toBeInstanceOf(HookledgerError);
      return null;
    }
  }

  it("should be found or refused, never crash", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (garbage) => {
        const canonical = attempt(garbage);
        if (canonical !== null) expect(isCanonical(hookPayloadType(), canonical)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it("should mean what a damaged encoding means, where it still means something", () => {
    const damaged = fc
      .tuple(
        payloadModel(hookPayloadType(), FLAVOUR),
        seed,
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }),
      )
      .map(([model, one, edits]) => {
        const bytes = encodingOf(model, one);
        for (const [at, byte] of edits) if (bytes.length > 0) bytes[at % bytes.length] = byte;
        return bytes;
      });
    fc.assert(
      fc.property(damaged, (bytes) => {
        const canonical = attempt(bytes);
        if (canonical === null) return;
        expect(meaningOf(HookPayload, canonical)).toEqual(meaningOf(HookPayload, bytes));
        expect(isCanonical(hookPayloadType(), canonical)).toBe(true);
        encodeView(hookPayloadType(), decodeCanonical(hookPayloadType(), canonical));
      }),
      { numRuns: 1000 },
    );
  });
});
