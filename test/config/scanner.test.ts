import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ScannedItem, type ScannedValue, scan } from "#src/config/scanner.js";
import { SourceText } from "#src/config/source-text.js";

/** Names and forms, without places. */
function outline(items: readonly ScannedItem[]): unknown[] {
  return items.map((item) =>
    item.kind === "attribute"
      ? [item.name, form(item.value)]
      : [item.type, ...item.labels.map((label) => label.text), outline(item.body)],
  );
}

function form(value: ScannedValue): unknown {
  switch (value.form) {
    case "object":
      return Object.fromEntries(
        value.entries.map(({ key, value: member }) => [key.text ?? "(computed)", form(member)]),
      );
    case "list":
      return value.items.map(form);
    case "env":
      return `env ${value.name}`;
    default:
      return value.form;
  }
}

describe("scan", () => {
  it("should find blocks, labels and attributes wherever they stand", () => {
    const text = `a = 1
b "x" y "z\\"é" { c = "}" } # d = 1
/* e = 1 */ f {
  g {

  }
  h = [1, "two", { i = true, "j k": null }] // l = 1
}
`;
    expect(outline(scan(text).items)).toEqual([
      ["a", "number"],
      ["b", "x", "y", 'z"é', [["c", "string"]]],
      [
        "f",
        [
          ["g", []],
          ["h", ["number", "string", { i: "bool", "j k": "null" }]],
        ],
      ],
    ]);
  });

  it.each([
    ["-1.5e3", "number"],
    ["- 1", "number"],
    ["true", "bool"],
    ["null", "null"],
    [`"$\${x} %%{y} \\"z\\""`, "string"],
    ["<<E\n} a = 1\nE", "string"],
    [`<<-E\n  \${x}\n  E`, "expression"],
    ['env("HOME")', "env HOME"],
    ['env ( "HOME" )', "env HOME"],
    ['env("HOME",)', "expression"],
    ['env("A", "B")', "expression"],
    [`"\${env("HOME")}"`, "expression"],
    [`"a\${"}"}b"`, "expression"],
    ['"%{if x}}%{endif}"', "expression"],
    ["for", "expression"],
    ["(1)", "expression"],
    ["[1, 2][0]", "expression"],
    ["{ a = 1 }.a", "expression"],
    ["[for x in y : x]", "expression"],
    ["{for k, v in y : k => v}", "expression"],
    ["x ? { a = 1 } : [2]", "expression"],
    ["[\n1, # one\n\n2,\n]", ["number", "number"]],
    ["{\n a : 1\n b = (\n2\n)\n}", { a: "number", b: "expression" }],
    ["{ a = x ? y : z, (b) = 1, 80 = 2 }", { a: "expression", "(computed)": "number", 80: "number" }],
    ["[]", []],
    ["{}", {}],
  ])("should take %j as one value", (written, expected) => {
    expect(outline(scan(`b {\n  v = ${written}\n  w = 1\n}\n`).items)).toEqual([
      [
        "b",
        [
          ["v", expected],
          ["w", "number"],
        ],
      ],
    ]);
  });

  it.each([
    ["a = \nb = 1", [["b", "number"]]],
    ["a = ) b\nc = 1", [["c", "number"]]],
    ["a b\nc = 1", [["c", "number"]]],
    ["} a = 1", [["a", "number"]]],
    ["a {\n b = 1", [["a", [["b", "number"]]]]],
    ["a = { b = 1", [["a", { b: "number" }]]],
    ["a = [1, }", [["a", ["number"]]]],
    ['a = "b', [["a", "expression"]]],
    ["a = <<E\nb", [["a", "expression"]]],
    ['"a" = 1\nb = 1', [["b", "number"]]],
    ["= = = =", []],
  ])("should return what it recognises in the broken %j", (text, expected) => {
    expect(outline(scan(text).items)).toEqual(expected);
  });

  it("should find duplicates of attributes and of object keys, spelt whatever way", () => {
    const text =
      'a = 1\nb {\n a = 2\n a = 3\n}\na = { "x" = 1, x = 2, "e\\u0301" = 3, "é" = 4, (y) = 5, (y) = 6, __proto__ = 7, "__proto__" = 8 }\n';
    const found = scan(text).duplicates.map(({ kind, name, at, first }) => [
      kind,
      name,
      text.slice(first.start, first.end),
      text.slice(at.start, at.end),
    ]);
    expect(found).toEqual([
      ["attribute", "a", "a = 2", "a = 3"],
      ["attribute", "a", "a = 1", expect.stringMatching(/^a = \{/)],
      ["key", "x", '"x"', "x"],
      ["key", "é", '"e\\u0301"', '"é"'],
      ["key", "__proto__", "__proto__", '"__proto__"'],
    ]);
  });

  it("should agree with a generator that knows where it put things", () => {
    fc.assert(
      fc.property(fc.array(item(2), { maxLength: 6 }), (pieces) => {
        const writer = new Writer();
        const expected = pieces.map((piece) => piece(writer));
        const source = new SourceText("f", writer.text);
        const places = (items: readonly ScannedItem[]): Placed[] =>
          items.map((found) => {
            const { line, col } = source.place(found.start);
            if (found.kind === "attribute") return { name: found.name, line, col, inner: [] };
            return { name: found.type, line, col, inner: places(found.body) };
          });
        expect(places(scan(writer.text).items)).toEqual(expected);
      }),
      { seed: 20250101, numRuns: 500 },
    );
  });

  it("should place any offset as a naive count of characters does, asked in any order", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), fc.array(fc.nat(40)), (text, offsets) => {
        fc.pre(!text.startsWith("\ufeff"));
        const source = new SourceText("f", text);
        for (const wish of offsets) {
          const characters = [...text];
          const before = characters.slice(0, wish % (characters.length + 1)).join("");
          const lines = before.split("\n");
          const place = source.place(before.length);
          expect(place).toEqual({ file: "f", line: lines.length, col: [...(lines.at(-1) ?? "")].length + 1 });
        }
      }),
    );
  });
});

type Placed = { readonly name: string; readonly line: number; readonly col: number; readonly inner: readonly Placed[] };
type Piece = (writer: Writer) => Placed;

/** Writes a text and knows the place of the next character. */
class Writer {
  text = "";
  line = 1;
  col = 1;
  write(text: string): void {
    this.text += text;
    for (const character of text) {
      if (character === "\n") {
        this.line++;
        this.col = 1;
      } else {
        this.col++;
      }
    }
  }
}

const space = fc.constantFrom("", " ", "\t", "\n", "\r\n", "/* {\n */ ", "# }\n", '// "\n', "  ");
const name = fc.constantFrom("a", "hook", "é", "x-1", "for", "_");
const value = fc.constantFrom(
  "1",
  '"}\\" = {"',
  '"😀"',
  "[\n1,\n{ a = 1 }]",
  '{\n b = 1, c : "{"\n}',
  `"a\${ { x = "}" } }"`,
  "<<E\nq = 1\n}\nE",
  `<<-E\n  \${\n"E"}\n  E`,
  "(\n1\n)",
  'env("A")',
);

function item(depth: number): fc.Arbitrary<Piece> {
  const attribute = fc.tuple(space, name, value).map(
    ([before, key, written]): Piece =>
      (writer) => {
        writer.write(before);
        const placed = { name: key, line: writer.line, col: writer.col, inner: [] };
        writer.write(`${key} = ${written}\n`);
        return placed;
      },
  );
  if (depth === 0) return attribute;
  const label = fc.constantFrom("", ' "l"', " l", ' "é {" "m"');
  const block = fc.tuple(space, name, label, fc.array(item(depth - 1), { maxLength: 3 })).map(
    ([before, type, labels, body]): Piece =>
      (writer) => {
        writer.write(before);
        const { line, col } = writer;
        writer.write(`${type}${labels} {\n`);
        const inner = body.map((piece) => piece(writer));
        writer.write("}\n");
        return { name: type, line, col, inner };
      },
  );
  return fc.oneof(attribute, block);
}
