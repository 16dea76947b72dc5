import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadConfig } from "#src/config/load.js";
import { scan } from "#src/config/scanner.js";
import { brief, errorsOf, parse } from "./marked.js";

const MIB = 1024 * 1024;

function nested(open: string, close: string, depth: number): string {
  return open.repeat(depth) + close.repeat(depth);
}

describe("hostile configurations", () => {
  it.each([
    ["blocks", (depth: number) => nested("agent_profile {\n", "}\n", depth)],
    ["lists", (depth: number) => `agent_profile "p" {\n  x = ${nested("[", "]", depth - 1)}\n}`],
    [
      "objects",
      (depth: number) => `agent_profile "p" {\n  x = ${"{ a = ".repeat(depth - 1)}1${" }".repeat(depth - 1)}\n}`,
    ],
    [
      "parentheses",
      (depth: number) => `agent_profile "p" {\n  x = ${"(".repeat(depth - 1)}1${")".repeat(depth - 1)}\n}`,
    ],
    [
      "templates",
      (depth: number) => `agent_profile "p" {\n  x = ${'"${'.repeat(depth - 1)}y${'}"'.repeat(depth - 1)}\n}`,
    ],
    ["prefix operators", (depth: number) => `agent_profile "p" {\n  x = ${"!".repeat(depth - 1)}y\n}`],
    ["conditions", (depth: number) => `agent_profile "p" {\n  x = ${"y ? y : ".repeat(depth - 1)}y\n}`],
    ["splats", (depth: number) => `agent_profile "p" {\n  x = y${"[*]".repeat(depth - 1)}\n}`],
    [
      "directives",
      (depth: number) =>
        `agent_profile "p" {\n  x = "${"%{if y}".repeat(depth - 2)}${"%{endif}".repeat(depth - 2)}"\n}`,
    ],
  ])("should take 64 nested %s and no more", async (_, text) => {
    expect((await errorsOf(text(64))).filter(({ code }) => code !== "HL_CONFIG")).toEqual([]);
    expect(scan(text(64)).excess).toBeUndefined();
    const errors = await errorsOf(text(65));
    expect(errors.map(({ code, message }) => [code, message])).toEqual([
      ["HL_LIMIT_DEPTH", "nested more than 64 levels deep"],
    ]);
  });

  it("should point at the bracket that is one too many", async () => {
    expect(brief(await errorsOf(`settings {\n  redact = ${"[".repeat(64)}\n}`))).toEqual([
      "2:75 nested more than 64 levels deep".replace("75", String(12 + 63)),
    ]);
  });

  it("should not mistake many operators side by side for nesting", async () => {
    const text = `agent_profile "p" {\n  x = ${"!a == -1 || ".repeat(100)}b\n  y = [${"-1, a ? b : c, a[*], ".repeat(100)}]\n  z = "${"%{if a}b%{endif}".repeat(100)}"\n}`;
    expect(brief(await errorsOf(text))).toEqual([]);
  });

  it.each([
    ["open braces", "{"],
    ["open brackets", "["],
    ["blocks that never close", "a {\n"],
    ["lists that never close", "a = ["],
    ["strings that never close", '"'],
    ["templates that never close", `"\${`],
    ["closing braces", "}"],
    ["minus signs", "a = -"],
    ["comments that never close", "/* "],
    ["heredocs that never close", "<<A\n"],
    ["heredoc openers", "<<A"],
    ["blank heredoc lines", "<<A\n\n \n"],
    ["backslashes", '"\\'],
    ["dollars", '"$$$'],
    ["NULs", "\0"],
    ["newlines", "\n"],
    ["carriage returns", "\r"],
    ["equals signs", "="],
    ["one long word", "a"],
    ["long numbers", "1"],
    ["dots", "1."],
    ["emoji", "😀"],
    ["combining marks", "e\u0301"],
    ["quotes and newlines", '"\n'],
    ["commas in objects", "a = {,"],
  ])("should survive a file full of %s", async (_, piece) => {
    const text = piece.repeat(Math.floor(MIB / 4 / Buffer.byteLength(piece)));
    const result = await parse(text);
    if (piece === "\n") expect(result.ok).toBe(true);
    else expect(result.ok ? [] : result.errors.length).toBeGreaterThan(0);
  });

  it("should refuse more words and signs than the grammar can take in a moment", async () => {
    const list = (count: number) => `settings {\n  redact = [\n${"1,".repeat(count)}]\n}`;
    const errors = await errorsOf(list(200_000));
    expect(errors.map(({ code, message }) => [code, message])).toEqual([
      ["HL_LIMIT_CONFIG", "more than 300000 words and signs in one file"],
    ]);
  });

  it("should refuse a number that no double holds before anything spells it out", async () => {
    for (const number of ["1e999999999", "1e-999999999", "1".repeat(400), "1".repeat(1000), "0.".padEnd(600, "1")]) {
      const errors = await errorsOf(`settings {\n  chain_budget_ms = ${number}\n}`);
      expect(errors.map(({ code, message, place }) => [code, message, place.line, place.col])).toEqual([
        ["HL_LIMIT_CONFIG", "a number must fit a 64-bit float", 2, 21],
      ]);
    }
  });

  it("should refuse what is larger than a mebibyte", async () => {
    const exact = `#${"x".repeat(MIB - 1)}`;
    expect(await errorsOf(exact)).toEqual([]);
    expect((await errorsOf(`${exact}x`)).map(({ code, message }) => [code, message])).toEqual([
      ["HL_LIMIT_CONFIG", "larger than 1 MiB"],
    ]);
  });

  it.each([
    ["a lone continuation byte", [0x61, 0x0a, 0xc3, 0xa9, 0x80], 2, 2],
    ["a cut sequence at the end", [0x61, 0xe2, 0x82], 1, 2],
    ["an overlong slash", [0x23, 0xc0, 0xaf], 1, 2],
    ["a surrogate", [0x23, 0xed, 0xa0, 0x80], 1, 2],
    ["behind a genuine replacement character", [0x23, 0xef, 0xbf, 0xbd, 0xff], 1, 3],
    ["behind a byte-order mark", [0xef, 0xbb, 0xbf, 0xff], 1, 1],
  ])("should point at %s", async (_, bytes, line, col) => {
    const errors = await errorsOf(Uint8Array.from(bytes));
    expect(brief(errors)).toEqual([`${line}:${col} not UTF-8`]);
  });

  it("should recognise UTF-16", async () => {
    const [error] = await errorsOf(Buffer.from("\ufeffsettings {}", "utf16le"));
    expect(error).toMatchObject({ message: "not UTF-8", hint: "it looks like UTF-16: save it as UTF-8" });
  });

  it("should treat names that objects have themselves as any other name", async () => {
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty"];
    const text = names.map((name) => `${name} = 1\n${name} "x" {\n}\n`).join("");
    const errors = await errorsOf(text);
    expect(errors).toHaveLength(2 * names.length);
    const body = names.map((name) => `  ${name} = { ${name} = 1 }\n`).join("");
    const result = await parse(`required_providers {\n  a = { source = "host" }\n}\nprovider "a" {\n${body}}\n`);
    expect(result.ok).toBe(true);
    const read = result.ok ? result.config.providers.get("a")?.body : undefined;
    expect(Object.keys(read ?? {})).toEqual(names);
    expect(Object.getPrototypeOf(read)).toBe(Object.prototype);
    expect(Object.entries(read ?? {})).toEqual(names.map((name) => [name, expect.objectContaining({ [name]: 1 })]));
  });

  it("should refuse more than 256 subscribers at one point", async () => {
    const hook = (i: number) => `hook "session-end" {\n  provider = "a"\n  mode = "observe"\n  id = "x${i}"\n}\n`;
    const text = (count: number) =>
      `required_providers {\n  a = { source = "host" }\n}\n${Array.from({ length: count }, (_, i) => hook(i)).join("")}`;
    expect(await errorsOf(text(256))).toEqual([]);
    const errors = await errorsOf(text(258));
    expect(errors.map(({ code, message, place }) => [code, message, place.line])).toEqual([
      ["HL_LIMIT_SUBSCRIBERS", "more than 256 subscribers at session-end", 4 + 256 * 5],
    ]);
  });

  it("should never throw, whatever the bytes", async () => {
    const fragments = [
      "hook ",
      '"',
      "{",
      "}",
      "\n",
      "=",
      `\${`,
      "%{",
      "<<E\n",
      "E\n",
      "[",
      "]",
      "(",
      ")",
      ",",
      "#",
      "/*",
      "*/",
      "\\",
      "a",
      "1",
      " ",
      "\0",
      "é",
      "for ",
      "?",
      ":",
      ".",
    ];
    const soup = fc.array(fc.constantFrom(...fragments), { maxLength: 60 }).map((parts) => Buffer.from(parts.join("")));
    await fc.assert(
      fc.asyncProperty(fc.oneof(soup, fc.uint8Array({ maxLength: 80 })), async (bytes) => {
        const result = await parse(bytes);
        const all = result.ok ? result.warnings : [...result.errors, ...result.warnings];
        for (const { place, line } of all) {
          expect(place.line).toBeGreaterThanOrEqual(1);
          expect(place.col).toBeGreaterThanOrEqual(1);
          expect((line ?? "").length).toBeLessThanOrEqual(200);
        }
      }),
      { seed: 4, numRuns: 300 },
    );
  });

  it("should refuse a pattern that is too deep for its engine", async () => {
    const pattern = "(".repeat(50_000) + ")".repeat(50_000);
    const errors = await errorsOf(`settings {\n  redact = ["${pattern}"]\n}`);
    expect(errors.map(({ place, message }) => [place.line, place.col, message.slice(0, 12)])).toEqual([
      [2, 13, 'redact[0] "('],
    ]);
  });

  it("should refuse devices and pipes without reading them", async () => {
    const result = await loadConfig("/dev/zero");
    expect(result.ok ? [] : result.errors).toMatchObject([
      { code: "HL_CONFIG_UNREADABLE", message: "/dev/zero is no file" },
    ]);
  });
});
