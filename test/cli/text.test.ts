import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { foreign, foreignBlock, jsonText, prettyJson } from "#src/cli/text.js";

const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

/** Text with a good share of what acts on a terminal. */
const nasty = fc.string({
  unit: fc.oneof(
    fc.constantFrom(
      "\u001b[31m",
      "\r",
      "\n",
      "\t",
      "\u007f",
      "\u0085",
      "\u200b",
      "\u202e",
      "\u2028",
      "\ufeff",
      "\ud800",
    ),
    fc.string({ unit: "binary", minLength: 1, maxLength: 3 }),
  ),
  maxLength: 1200,
});

describe("foreign", () => {
  it("should leave ordinary text as it is", () => {
    expect(foreign('Grüße, 日本語 and "quotes" 🙂')).toBe('Grüße, 日本語 and "quotes" 🙂');
  });

  it("should show escape sequences, line breaks, bidi and zero-width controls as what they are", () => {
    expect(foreign("a\u001b[31mb\r\nc\u202ed\u200be\u2028f\u007f\u0085")).toBe(
      "a\\u{1b}[31mb\\u{d}\\u{a}c\\u{202e}d\\u{200b}e\\u{2028}f\\u{7f}\\u{85}",
    );
  });

  it("should cut between characters, and say that it did", () => {
    const cut = foreign("é".repeat(1000));
    expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(1024);
    expect(cut).toMatch(/^é{500,}…$/);
  });

  it("should keep what is exactly as long as the bound", () => {
    expect(foreign("x".repeat(1024))).toBe("x".repeat(1024));
    expect(foreign("x".repeat(1025))).toBe(`${"x".repeat(1021)}…`);
  });

  it("should never cut an escape in two", () => {
    expect(foreign("\u001b".repeat(1000))).toMatch(/^(?:\\u\{1b\})+…$/);
  });

  it("should print no control and at most 1 024 bytes of whatever text", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const shown = foreign(text);
        return !CONTROLS.test(shown) && shown.isWellFormed() && Buffer.byteLength(shown) <= 1024;
      }),
    );
  });
});

describe("foreignBlock", () => {
  it("should put each line behind the indentation and a bar", () => {
    expect(foreignBlock("one\nhookledger: forged (HL_USAGE)\n", "  ")).toBe(
      "  │ one\n  │ hookledger: forged (HL_USAGE)\n  │ ",
    );
  });

  it("should start no line in column 1", () => {
    fc.assert(
      fc.property(nasty, (text) =>
        foreignBlock(text)
          .split("\n")
          .every((line) => line.startsWith("  │ ") && !CONTROLS.test(line)),
      ),
    );
  });
});

describe("jsonText", () => {
  it("should escape what a terminal would act on, and stay the same JSON", () => {
    fc.assert(
      fc.property(nasty, (text) => {
        const value = { text: text.toWellFormed(), [text.toWellFormed()]: [text.toWellFormed()] };
        const printed = jsonText(value);
        expect(JSON.parse(printed)).toEqual(value);
        expect(JSON.parse(prettyJson(value))).toEqual(value);
        return !CONTROLS.test(printed) && !CONTROLS.test(prettyJson(value).replaceAll("\n", ""));
      }),
    );
  });
});
