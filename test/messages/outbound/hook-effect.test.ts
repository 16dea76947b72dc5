import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  boundedEffect,
  MAX_CANCEL_METADATA_BYTES,
  MAX_CANCEL_METADATA_KEYS,
  MAX_CANCEL_REASON,
} from "#src/messages/outbound/hook-effect.js";
import { scene } from "./scene.js";

/** Bytes of `{"k":"…"}`. */
const FRAME = 8;

/** Keys of every member in order, as RFC 8785 has them for plain keys; what it leaves out is left out. */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}

describe("the metadata of a cancellation", () => {
  it("should be kept up to 4 096 bytes of canonical JSON, and be replaced beyond", () => {
    const metadata = { k: "x".repeat(MAX_CANCEL_METADATA_BYTES - FRAME) };
    expect(boundedEffect({ metadata })).toEqual({ effect: { metadata } });
    expect(boundedEffect({ metadata: { k: `${metadata.k}x` } })).toEqual({
      effect: { metadata: { truncated: true, bytes: 4097 } },
      truncatedBytes: 4097,
    });
  });

  it("should be measured in bytes, not in characters", () => {
    const metadata = { k: "é".repeat((MAX_CANCEL_METADATA_BYTES - FRAME) / 2 + 1) };
    expect(boundedEffect({ metadata }).truncatedBytes).toBe(4098);
  });

  it("should be kept up to 32 keys, and be replaced beyond", () => {
    const members = Array.from({ length: MAX_CANCEL_METADATA_KEYS }, (_, n) => [`k${n}`, n] as const);
    const metadata = Object.fromEntries(members);
    expect(boundedEffect({ metadata })).toEqual({ effect: { metadata } });
    const more = { ...metadata, one: 1 };
    const bytes = Buffer.byteLength(canonical(more));
    expect(boundedEffect({ metadata: more })).toEqual({
      effect: { metadata: { truncated: true, bytes } },
      truncatedBytes: bytes,
    });
  });

  it("should come as plain JSON, whatever the handler returned", () => {
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    expect(boundedEffect({ metadata: { big: 1n, no: Number.NaN, on: () => {}, cyclic } }).effect?.metadata).toEqual({
      big: { $unrecordable: "bigint" },
      no: { $unrecordable: "NaN" },
      cyclic: { self: { $unrecordable: "cycle" } },
    });
  });

  it("should not reach the prototype of anything", () => {
    const { effect } = boundedEffect({ metadata: JSON.parse('{"__proto__":{"polluted":true}}') });
    expect(Object.keys(effect?.metadata ?? {})).toEqual(["__proto__"]);
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });

  it("should survive nesting that would overflow a stack", () => {
    let metadata: { [key: string]: unknown } = {};
    for (let depth = 0; depth < 100_000; depth++) metadata = { metadata };
    expect(boundedEffect({ metadata }).truncatedBytes).toBeUndefined();
  });

  it("should never exceed its bounds, and be as it was within them", () => {
    const key = fc.string({ maxLength: 8 });
    fc.assert(
      fc.property(fc.dictionary(key, fc.jsonValue({ maxDepth: 3 }), { maxKeys: 60 }), fc.nat(5000), (given, size) => {
        const metadata: { [key: string]: unknown } = JSON.parse(JSON.stringify({ ...given, fill: "x".repeat(size) }));
        const text = canonical(metadata);
        const bytes = Buffer.byteLength(text);
        const fits = bytes <= 4096 && Object.keys(metadata).length <= 32;
        const { effect, truncatedBytes } = boundedEffect({ metadata });
        expect(canonical(effect?.metadata)).toBe(fits ? text : canonical({ truncated: true, bytes }));
        expect(truncatedBytes).toBe(fits ? undefined : bytes);
      }),
    );
  });

  it("should come with a warning where it was replaced, which names the handler", async () => {
    const { deliverOne, warnings } = await scene((api) => {
      api.on("message_sending", () => ({ cancel: true, metadata: { k: "x".repeat(5000) } }));
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({
      status: "suppressed",
      hookEffect: { metadata: { truncated: true, bytes: 5008 } },
    });
    expect(warnings).toEqual([{ kind: "cancel-metadata-truncated", by: "p", bytes: 5008 }]);
  });

  it("should be that of the last handler that defined it, whole, and the reason that of the last that gave one", async () => {
    const { deliverOne } = await scene((api) => {
      api.on("message_sending", () => ({ cancelReason: "first", metadata: { a: 1, b: 1 } }));
      api.on("message_sending", () => ({ metadata: { b: 2 } }));
      api.on("message_sending", () => ({ cancel: true }));
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({
      hookEffect: { cancelReason: "first", metadata: { b: 2 } },
    });
  });
});

describe("the reason of a cancellation", () => {
  it("should have at most 512 characters, and never half of one", () => {
    const reason = (cancelReason: string) => boundedEffect({ cancelReason }).effect?.cancelReason;
    expect(reason("x".repeat(MAX_CANCEL_REASON))).toHaveLength(512);
    expect(reason("x".repeat(MAX_CANCEL_REASON + 1))).toBe("x".repeat(512));
    expect(reason(`${"x".repeat(511)}😀`)).toBe("x".repeat(511));
  });

  it("should be bounded for reply_payload_sending as well", async () => {
    const { deliverOne } = await scene((api) => {
      api.on("reply_payload_sending", () => ({ cancel: true, reason: "x".repeat(600) }));
    });
    expect(await deliverOne({ text: "x" })).toMatchObject({ hookEffect: { cancelReason: "x".repeat(512) } });
  });
});
