import { describe, expect, it } from "vitest";
import { canonicalJson, type Json } from "#src/payload/canonical-json.js";

describe("canonical JSON", () => {
  it("should order members by their UTF-16 units, at every depth", () => {
    const value = {
      "\u20ac": 1,
      "\r": 2,
      "\ufb33": 3,
      "1": 4,
      "\u{1F600}": 5,
      "\u0080": 6,
      "\u00f6": { b: 1, a: [{ d: 1, c: 2 }] },
    };
    expect(canonicalJson(value)).toBe(
      '{"\\r":2,"1":4,"\u0080":6,"\u00f6":{"a":[{"c":2,"d":1}],"b":1},"\u20ac":1,"\u{1F600}":5,"\ufb33":3}',
    );
  });

  it("should print numbers and texts as ECMAScript does, without white space", () => {
    const cases: readonly (readonly [Json, string])[] = [
      [-0, "0"],
      [1e21, "1e+21"],
      [0.000001, "0.000001"],
      [1e-7, "1e-7"],
      [4.35, "4.35"],
      [true, "true"],
      [null, "null"],
      [[], "[]"],
      [{}, "{}"],
      ['"\\/\b\f\n\r\t\u000f\u2028\u007f', '"\\"\\\\/\\b\\f\\n\\r\\t\\u000f\u2028\u007f"'],
      [[1, [2, { a: null }]], '[1,[2,{"a":null}]]'],
    ];
    for (const [value, text] of cases) expect(canonicalJson(value)).toBe(text);
  });

  it("should leave out members that are undefined, and keep those that are called like a prototype's", () => {
    expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
    expect(canonicalJson(JSON.parse('{"toString":2,"__proto__":{"x":1}}'))).toBe('{"__proto__":{"x":1},"toString":2}');
  });

  it("should refuse what has no JSON form", () => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, "\ud800", "a\udc00b"]) {
      expect(() => canonicalJson(value)).toThrow(TypeError);
      expect(() => canonicalJson({ a: [value] })).toThrow(TypeError);
    }
    expect(() => canonicalJson({ "\udfff": 1 })).toThrow(TypeError);
  });
});
