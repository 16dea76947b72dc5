import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cursorOf, placeOf } from "#src/audit/cursor.js";
import { HookledgerError } from "#src/errors.js";

const place = fc.record({ position: fc.maxSafeNat(), part: fc.maxSafeNat() }, { noNullPrototype: true });

describe("cursor", () => {
  it("should come back as the place that it stands for, in letters that need no quoting", () => {
    fc.assert(
      fc.property(place, (at) => {
        const cursor = cursorOf(at);
        expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
        expect(placeOf(cursor)).toStrictEqual(at);
      }),
    );
  });

  it("should be refused when one letter of it is another, or when it is cut or longer", () => {
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ";
    const letter = fc.constantFrom(...letters);
    fc.assert(
      fc.property(place, fc.nat(), letter, (at, where, other) => {
        const cursor = cursorOf(at);
        const spot = where % cursor.length;
        fc.pre(cursor[spot] !== other);
        expect(() => placeOf(cursor.slice(0, spot) + other + cursor.slice(spot + 1))).toThrow(HookledgerError);
        expect(() => placeOf(cursor.slice(0, spot))).toThrow(HookledgerError);
        expect(() => placeOf(cursor + other)).toThrow(HookledgerError);
      }),
    );
  });

  it.each(["", "0", "42", "null", "a1.1.0", Buffer.from("a1.1.0").toString("base64url"), "x".repeat(1000), "\0"])(
    "should refuse %j as HL_CURSOR",
    (text) => {
      expect(() => placeOf(text)).toThrow(expect.objectContaining({ code: "HL_CURSOR" }));
    },
  );
});
