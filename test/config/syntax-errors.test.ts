import { describe, expect, it } from "vitest";
import { parseConfig } from "#src/config/load.js";
import { brief, errorsOf, everything, unmark } from "./marked.js";

describe("syntax errors", () => {
  it.each([
    ["a missing expression", "settings {\n  strict =‸\n}", "invalid expression"],
    ["an expression that ends with the file", "a = ‸", "missing expression"],
    ["an unclosed block", 'hook "plan-ready" ‸{\n  mode = "veto"\n', "unclosed configuration block"],
    ["a quoted name", '‸"strict" = true', "invalid argument name"],
    ["two attributes on a line", "settings {\n  strict = true ‸recording = 1\n}", "missing newline after argument"],
    [
      "two attributes in a one-line block",
      "settings { strict = true‸, x = 1 }",
      "invalid single-argument block definition",
    ],
    ["something after a block", "settings {\n} ‸x", "missing newline after block definition"],
    ["a string over two lines", 'settings {\n  host_label = "a‸\n"\n}', "invalid multi-line string"],
    ["single quotes", "settings {\n  host_label = ‸'a'\n}", "invalid character"],
    ["a semicolon", "settings {\n  strict = true‸;\n}", "invalid character"],
    ["an unknown escape", 'settings {\n  host_label = "a‸\\d"\n}', "invalid escape sequence"],
    ["a label with a template", `hook "‸\${x}" {\n}`, "invalid string literal"],
    ["an unclosed list", "settings {\n  redact = [\n‸", "missing expression"],
    ["an unclosed object", "settings {\n  dev_overrides = {\n‸", "missing expression"],
    ["an unclosed comment", "settings {\n  strict = true /‸* x\n}", "invalid expression"],
    ["a heredoc without its end", "a = <<E\nx\n‸", "unterminated template string"],
    ["a stray brace", "settings {\n}\n‸}", "argument or block definition required"],
    ["a number", "settings {\n  max_message_bytes = ‸1.2.3\n}", "invalid number literal"],
    ["a NUL", "settings {\n  ‸\u0000strict = true\n}", "invalid character"],
    ["a byte-order mark inside", "settings {\n  ‸\ufeffstrict = true\n}", "invalid character"],
    ["a carriage return alone", "settings {‸\r  strict = true\n}", "invalid character"],
    [
      "a place behind a family of emoji",
      'settings {\n  host_label = "👩‍👩‍👧e\u0301" ‸x\n}',
      "missing newline after argument",
    ],
    ["a place behind tabs", "settings {\n\t\tstrict =\t‸*\n}", "invalid expression"],
  ])("should point at %s", async (_, marked, message) => {
    const { text, line, col } = unmark(marked);
    const errors = await errorsOf(text);
    expect(brief(errors)).toEqual([`${line}:${col} ${message}`]);
    expect(errors[0]).toMatchObject({ code: "HL_CONFIG", hint: expect.stringMatching(/\.$|\?$/) });
  });

  it("should drop a byte-order mark at the start, which takes up no column", async () => {
    expect(brief(await errorsOf("\ufeffx = 1"))).toEqual(['1:1 unknown attribute "x"']);
    expect(brief(await errorsOf("\ufeffx = = 1"))).toEqual(["1:5 invalid expression"]);
    expect(brief(await errorsOf("\ufeff\ufeffx = 1"))).toEqual(["1:1 invalid character"]);
  });

  it("should count lines that end with a carriage return and a newline", async () => {
    expect(brief(await errorsOf("settings {\r\n  strict = true\r\n  x = 1\r\n}\r\n"))).toEqual([
      '3:3 unknown attribute "x" in settings',
    ]);
  });

  it("should report the schema errors around a syntax error, and only the first of those", async () => {
    const text = `first = 1
hook "plan-ready" {
  mode = = "veto"
}
hook "nowhere" {
  provider = "x"
  mode = "veto"
}
settings {
  strict = 1
}
`;
    expect(brief(await errorsOf(text))).toEqual([
      '1:1 unknown attribute "first"',
      "3:10 invalid expression",
      '5:6 unknown hook point "nowhere"',
      '6:14 provider "x" is not in required_providers',
      "10:12 strict must be true or false, not the number 1",
    ]);
  });

  it("should report what stands before a syntax error where nothing behind it makes sense", async () => {
    const text = 'first = 1\nhook "plan-ready" {\n  mode = "veto\n}\nsecond = 1\nthird = "x"\n';
    expect(brief(await errorsOf(text))).toEqual(['1:1 unknown attribute "first"', "3:15 invalid multi-line string"]);
  });

  it("should blame no hook for a provider whose declaration cannot be read", async () => {
    const text =
      'required_providers {\n  a = { source = = "host" }\n}\nhook "plan-ready" {\n  provider = "a"\n  mode = "veto"\n}\nprovider "a" {\n}\n';
    expect(brief(await errorsOf(text))).toEqual(["2:18 invalid expression"]);
  });

  it("should call no provider unused whose hook cannot be read", async () => {
    const result = await parseConfig(
      [
        {
          name: "agent.hcl",
          text: 'required_providers {\n  a = { source = "host" }\n}\nhook "plan-ready" {\n  provider == "a"\n}\n',
        },
      ],
      { probe: everything },
    );
    expect(result.warnings).toEqual([]);
    expect(result.ok ? [] : brief(result.errors)).toEqual(["5:3 argument or block definition required"]);
  });

  it("should report the first syntax error of each file, and the schema errors of all", async () => {
    const result = await parseConfig(
      [
        { name: "conf/b.hcl", text: "x = = 1\ny = = 1\n" },
        { name: "conf/a.hcl", text: "settings {\n  strict = }\n" },
        { name: "conf/c.hcl", text: "settings {\n  strikt = true\n}\n" },
      ],
      { probe: everything },
    );
    expect(
      result.ok ? [] : result.errors.map(({ place, message }) => `${place.file}:${place.line}:${place.col} ${message}`),
    ).toEqual([
      "conf/a.hcl:2:12 invalid expression",
      "conf/b.hcl:1:5 invalid expression",
      'conf/c.hcl:2:3 unknown attribute "strikt" in settings',
    ]);
  });

  it("should show the offending line with controls escaped, cut to 200 characters", async () => {
    const [error] = await errorsOf(`settings {\n\tstrict = "\u001b[31m${"x".repeat(300)}"\n}`);
    expect(error?.line).toHaveLength(200);
    expect(error?.line).toMatch(/^ strict = "\\u\{1b\}\[31mx+$/);
    expect(error?.message).toMatch(/not the string "\\u\{1b\}\[31mx+…"$/);
  });
});
