import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isUlid, ulid } from "#src/store/ulid.js";

const random = fc.uint8Array({ minLength: 10, maxLength: 10 });
const time = fc.nat({ max: 2 ** 48 - 1 });

describe("ulid", () => {
  it("should print time and randomness in Crockford's base 32", () => {
    expect(ulid(0, new Uint8Array(10))).toBe("0".repeat(26));
    expect(ulid(2 ** 48 - 1, new Uint8Array(10).fill(255))).toBe(`7${"Z".repeat(25)}`);
    expect(ulid(1469918176385, new Uint8Array(10))).toBe("01ARYZ6S410000000000000000");
    expect(ulid(0, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 33))).toBe(`${"0".repeat(24)}11`);
  });

  it("should make ULIDs that sort by time", () => {
    fc.assert(
      fc.property(time, time, random, random, (a, b, x, y) => {
        expect(isUlid(ulid(a, x))).toBe(true);
        if (a < b) expect(ulid(a, x) < ulid(b, y)).toBe(true);
      }),
    );
  });

  it("should keep every bit", () => {
    fc.assert(
      fc.property(time, random, random, (at, x, y) => {
        expect(ulid(at, x) === ulid(at, y)).toBe(Buffer.from(x).equals(y));
      }),
    );
  });

  it("should refuse what no ULID holds", () => {
    for (const at of [-1, 1.5, 2 ** 48, Number.NaN]) expect(() => ulid(at, new Uint8Array(10))).toThrow(RangeError);
    expect(() => ulid(0, new Uint8Array(9))).toThrow(RangeError);
  });
});

describe("isUlid", () => {
  it("should tell canonical ULIDs from anything else", () => {
    expect(isUlid("01ARYZ6S410000000000000000")).toBe(true);
    const others = ["", "01aryz6s410000000000000000", "81ARYZ6S410000000000000000", "01ARYZ6S41000000000000000U"];
    for (const text of [...others, "01ARYZ6S4100000000000000000", "01ARYZ6S410000000000000000\n"]) {
      expect(isUlid(text)).toBe(false);
    }
  });
});
