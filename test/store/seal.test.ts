import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, type Json } from "#src/payload/canonical-json.js";
import { chainOf, linkOf, seal, splitMetadata } from "#src/store/seal.js";
import { draft } from "../support/store-fixtures.js";

const text = fc.string({ unit: "binary" });
const object = fc.dictionary(
  text.filter((key) => key !== "chain" && key !== "payloads"),
  fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }),
  { minKeys: 1, maxKeys: 6 },
) as fc.Arbitrary<Record<string, Json>>;

describe("seal", () => {
  it("should hash the domain, the chain before, and the canonical text of the event", () => {
    const { chain } = seal("", 0, draft(0));
    const covered =
      '{"data":{"index":0},"metadata":{"at":"2026-01-01T00:00:00.000Z","offsetNs":0},"revision":0,"type":"started"}';
    expect(chain).toBe(createHash("sha256").update(`hookledger/chain/v1\0${covered}`).digest("hex"));
    const next = seal(chain, 1, draft(1));
    expect(next.chain).toBe(
      createHash("sha256")
        .update(
          `hookledger/chain/v1\0${chain}{"data":{"index":1},"metadata":{"at":"2026-01-01T00:00:00.000Z","offsetNs":1},"revision":1,"type":"outcome"}`,
        )
        .digest("hex"),
    );
  });

  it("should keep the chain and the payloads behind the other metadata", () => {
    const { chain, metadata } = seal("", 0, draft(0, { payloads: '{"sha256:00":"AA=="}' }));
    expect(metadata).toBe(
      `{"at":"2026-01-01T00:00:00.000Z","offsetNs":0,"chain":"${chain}","payloads":{"sha256:00":"AA=="}}`,
    );
    expect(seal("", 0, draft(0)).metadata).toBe(
      `{"at":"2026-01-01T00:00:00.000Z","offsetNs":0,"chain":"${seal("", 0, draft(0)).chain}"}`,
    );
  });

  it("should be what verification computes from what was stored", () => {
    fc.assert(
      fc.property(object, object, fc.nat(), fc.boolean(), (data, metadata, revision, withPayloads) => {
        const sealed = seal("ab", revision, {
          ...draft(1),
          data: canonicalJson(data),
          metadata: canonicalJson(metadata),
          ...(withPayloads ? { payloads: '{"sha256:00":"AA=="}' } : {}),
        });
        const split = splitMetadata(sealed.metadata);
        expect(split?.chain).toBe(sealed.chain);
        expect(split?.payloads).toEqual(withPayloads ? { "sha256:00": "AA==" } : undefined);
        expect(chainOf("ab", revision, "outcome", data, split?.covered ?? {})).toBe(sealed.chain);
        expect(linkOf("ab", revision, "outcome", canonicalJson(data), canonicalJson(metadata))).toBe(sealed.chain);
      }),
    );
  });
});

describe("chainOf", () => {
  it("should change with every part", () => {
    const parts = [
      chainOf("", 0, "started", {}, {}),
      chainOf("0", 0, "started", {}, {}),
      chainOf("", 1, "started", {}, {}),
      chainOf("", 0, "decided", {}, {}),
      chainOf("", 0, "started", { a: 1 }, {}),
      chainOf("", 0, "started", {}, { a: 1 }),
    ];
    expect(new Set(parts).size).toBe(parts.length);
  });

  it("should quote a type that is no type", () => {
    expect(chainOf("", 0, '","x":"', {}, {})).not.toBe(chainOf("", 0, "", {}, {}));
  });

  it("should refuse nesting that would overflow the stack", () => {
    const deep: Json = JSON.parse(`${"[".repeat(50_000)}${"]".repeat(50_000)}`);
    expect(() => chainOf("", 0, "started", deep, {})).toThrow(RangeError);
    expect(() => chainOf("", 0, "started", {}, { deep })).toThrow(RangeError);
    const shallow: Json = JSON.parse(`${"[".repeat(100)}${"]".repeat(100)}`);
    expect(chainOf("", 0, "started", shallow, {})).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe("splitMetadata", () => {
  it("should be null for anything but the text of an object", () => {
    for (const text of ["", "null", "[]", '"x"', "{", "1"]) expect(splitMetadata(text)).toBeNull();
  });

  it("should take foreign names for names", () => {
    const split = splitMetadata('{"__proto__":{"chain":"x"},"payloads":1}');
    expect(split?.chain).toBeUndefined();
    expect(split?.payloads).toBe(1);
    expect(Object.keys(split?.covered ?? {})).toEqual(["__proto__"]);
  });
});
