import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { clone } from "#src/messages/clone.js";
import { recordedJson } from "#src/messages/document.js";
import { recorded } from "#src/messages/recorded.js";
import { canonicalJson } from "#src/payload/canonical-json.js";
import { createRedactor } from "#src/payload/redaction.js";

/** `{ a: { a: … } }` */
function nested(levels: number): object {
  let value: object = {};
  for (let i = 0; i < levels; i++) value = { a: value };
  return value;
}

/** Each level holds the one below it twice. */
function doubled(levels: number): object {
  let value: object = { end: true };
  for (let i = 0; i < levels; i++) value = { a: value, b: value };
  return value;
}

describe("clone", () => {
  it("should be equal and share nothing that can be changed", () => {
    fc.assert(
      fc.property(fc.object({ withDate: true, withNullPrototype: false }), (value) => {
        const copy = clone(value);
        expect(copy).toEqual(value);
        expect(copy).not.toBe(value);
      }),
    );
  });

  it("should copy bytes, dates and what is shared once, and keep a cycle", () => {
    const shared = { bytes: Buffer.of(1, 2), at: new Date(5) };
    const value: { [key: string]: unknown } = { one: shared, two: shared };
    value["self"] = value;
    const copy = clone(value) as { one: typeof shared; two: unknown; self: unknown };
    expect(copy.self).toBe(copy);
    expect(copy.two).toBe(copy.one);
    expect(copy.one).not.toBe(shared);
    expect(copy.one.bytes).not.toBe(shared.bytes);
    expect([...copy.one.bytes]).toEqual([1, 2]);
    expect(copy.one.at).toEqual(shared.at);
  });

  it("should leave bytes of the kind that they were, and plain objects of another realm nobody's but the copy's", () => {
    const value = {
      buffer: Buffer.from("text"),
      bytes: Uint8Array.of(1),
      foreign: runInNewContext("({ a: { b: 1 } })"),
    };
    const copy = clone(value);
    expect([String(copy.buffer), Buffer.isBuffer(copy.bytes)]).toEqual(["text", false]);
    copy.foreign.a.b = 2;
    expect(value.foreign.a.b).toBe(1);
  });

  it("should hand on functions and objects of a class, and not be led by __proto__", () => {
    const map = new Map();
    const on = (): void => {};
    const copy = clone({ map, on, evil: JSON.parse('{"__proto__": {"admin": true}}') });
    expect(copy.map).toBe(map);
    expect(copy.on).toBe(on);
    expect(copy.evil.admin).toBeUndefined();
    expect(Object.keys(copy.evil)).toEqual(["__proto__"]);
  });

  it("should copy what nests too deep for a stack", () => {
    let copy: unknown = clone(nested(200_000));
    let levels = 0;
    while (typeof copy === "object" && copy !== null && "a" in copy) {
      copy = copy.a;
      levels++;
    }
    expect(levels).toBe(200_000);
  });
});

describe("recorded", () => {
  it.each([
    ["bigint", 1n],
    ["symbol", Symbol("x")],
    ["NaN", Number.NaN],
    ["infinity", Number.POSITIVE_INFINITY],
    ["bytes", Buffer.of(1)],
    ["bytes", new ArrayBuffer(1)],
    ["object of a class", new Map()],
    [
      "unreadable",
      Object.defineProperty({}, "x", {
        enumerable: true,
        get: () => {
          throw new Error("no");
        },
      }),
    ],
  ])("should say that there is no JSON for %s", (kind, value) => {
    expect(recorded({ value })).toEqual({ value: { $unrecordable: kind } });
  });

  it("should leave functions and undefined out, and mend text", () => {
    expect(recorded({ f: () => {}, u: undefined, list: [undefined, () => {}], text: "\ud800" })).toEqual({
      list: [null, null],
      text: "\ufffd",
    });
  });

  it("should leave out the host's handles, wherever they stand", () => {
    const cfg = { token: "the host's" };
    expect(recorded({ handled: true, cfg, list: [cfg], deep: { cfg, x: 1 } }, new Set([cfg]))).toEqual({
      handled: true,
      list: [null],
      deep: { x: 1 },
    });
  });

  it("should name a cycle where it closes, and nothing that is only shared", () => {
    const shared = { x: 1 };
    const value: { [key: string]: unknown } = { one: shared, two: shared };
    value["self"] = value;
    expect(recorded(value)).toEqual({ one: { x: 1 }, two: { x: 1 }, self: { $unrecordable: "cycle" } });
  });

  it("should end at a bound, in depth and in all", () => {
    expect(JSON.stringify(recorded(nested(1000)))).toContain('{"$unrecordable":"too deep"}');
    expect(recorded(doubled(24))).toEqual({ $unrecordable: "too large" });
    expect(recorded("x".repeat(64 * 1024 * 1024 + 1))).toEqual({ $unrecordable: "too large" });
  });

  it("should always have a canonical form", () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withTypedArray: true }), (value) => {
        expect(() => canonicalJson(recorded(value))).not.toThrow();
      }),
    );
  });
});

describe("a recorded document", () => {
  it("should never be larger than a ledger takes, counted in bytes and not in characters", () => {
    const { bytes, ref } = recordedJson("€".repeat(23 * 1024 * 1024), createRedactor({ patterns: [], secrets: [] }));
    expect(Buffer.from(bytes).toString()).toBe('{"$unrecordable":"too large"}');
    expect(ref.size).toBe(bytes.byteLength);
  });
});
