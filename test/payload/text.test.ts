import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { boundedMessage, boundedReason } from "#src/payload/text.js";

const anyText = fc.string({
  unit: fc.oneof(fc.constantFrom("\ud800", "\udc00", "\u{1F600}", "\n", "é", "\u202e"), fc.string()),
});

describe("boundedMessage", () => {
  it.each([
    ["controls", "a\u0000\n\u001b[31m\u007f\u009b", "a\\u{0}\\u{a}\\u{1b}[31m\\u{7f}\\u{9b}"],
    ["bidi controls", "\u202eabc\u2066\u200f\u061c", "\\u{202e}abc\\u{2066}\\u{200f}\\u{61c}"],
    ["zero-width characters", "a\u200bb\u200d\u2060\ufeff", "a\\u{200b}b\\u{200d}\\u{2060}\\u{feff}"],
    ["line and paragraph separators", "a\u2028b\u2029", "a\\u{2028}b\\u{2029}"],
    ["tags outside the basic plane", "\u{E0041}", "\\u{e0041}"],
  ])("should escape %s", (_, text, shown) => {
    expect(boundedMessage(text)).toBe(shown);
  });

  it("should leave ordinary text alone and replace lone surrogates", () => {
    expect(boundedMessage("Grüße, 世界 \u{1F600} \\u{1b}")).toBe("Grüße, 世界 \u{1F600} \\u{1b}");
    expect(boundedMessage("a\ud800b\udc00")).toBe("a\ufffdb\ufffd");
  });

  it("should cut between characters and between escapes", () => {
    expect(boundedMessage("x".repeat(3000))).toBe("x".repeat(2048));
    expect(boundedMessage("abc\u{1F600}", 4)).toBe("abc");
    expect(boundedMessage("abc\u{1F600}d", 5)).toBe("abc\u{1F600}");
    expect(boundedMessage("ab\nc", 6)).toBe("ab");
    expect(boundedMessage("ab\nc", 7)).toBe("ab\\u{a}");
    expect(boundedMessage("\n".repeat(5000)).length).toBe(2045);
  });

  it("should keep any text within bounds, well-formed and without controls", () => {
    fc.assert(
      fc.property(anyText, fc.nat(40), (text, max) => {
        const bounded = boundedMessage(text, max);
        expect(bounded.length).toBeLessThanOrEqual(max);
        expect(bounded.isWellFormed()).toBe(true);
        expect(bounded).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
        expect(boundedMessage(bounded, max)).toBe(bounded);
      }),
    );
  });
});

describe("boundedReason", () => {
  it("should cut at 1 024 bytes, between characters", () => {
    expect(boundedReason("no")).toBe("no");
    expect(boundedReason("é".repeat(600))).toBe("é".repeat(512));
    expect(boundedReason(`x${"\u{1F600}".repeat(300)}`)).toBe(`x${"\u{1F600}".repeat(255)}`);
    expect(boundedReason("\ud800")).toBe("\ufffd");
    expect(boundedReason("a\nb")).toBe("a\nb");
  });

  it("should keep any text within bounds and well-formed", () => {
    fc.assert(
      fc.property(anyText, fc.nat(100), (text, times) => {
        const reason = boundedReason(text.repeat(times));
        expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(1024);
        expect(reason.isWellFormed()).toBe(true);
      }),
    );
  });
});
