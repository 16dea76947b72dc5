import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, type Json } from "#src/payload/canonical-json.js";
import { seal } from "#src/store/seal.js";
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
        const { chain, payloads, ...covered } = JSON.parse(sealed.metadata);
        expect(chain).toBe(sealed.chain);
        expect(payloads).toEqual(withPayloads ? { "sha256:00": "AA==" } : undefined);
        const text = canonicalJson({ data: JSON.parse(sealed.data), metadata: covered, revision, type: "outcome" });
        expect(chain).toBe(createHash("sha256").update(`hookledger/chain/v1\0ab${text}`).digest("hex"));
      }),
    );
  });
});

describe("the chain", () => {
  it("should change with every part", () => {
    const parts = [
      seal("", 0, draft(0)),
      seal("0", 0, draft(0)),
      seal("", 1, draft(0)),
      seal("", 0, { ...draft(0), type: "decided" }),
      seal("", 0, { ...draft(0), data: '{"a":1}' }),
      seal("", 0, { ...draft(0), metadata: '{"a":1}' }),
    ];
    expect(new Set(parts.map(({ chain }) => chain)).size).toBe(parts.length);
  });
});
