/** HCL texts: valid ones from a small grammar of HCL, and broken ones cut from them. */
import fc from "fast-check";

const space = fc.constantFrom("", " ", "\t", " /* c */ ", "  ");
const endOfLine = fc.constantFrom("\n", "\n", "\r\n", " # c\n", " // x\n", "\n\n", " /* m\n */\n");
const identifier = fc.constantFrom("a", "b", "foo", "for", "if", "é", "x-y", "_z");
const label = fc.constantFrom(` "l"`, " l", ` "é é"`, ` "a\\"b"`, ` "$\${x}"`);
const leaf = fc.constantFrom(
  "1",
  "2.5",
  "-1",
  "true",
  "null",
  `"s"`,
  `"é\\n"`,
  `""`,
  `"$\${x}"`,
  `"😀"`,
  "x",
  "x.y",
  "x[0]",
  "x[*].z",
  `env("A")`,
  `<<E\nhi\n  \${x}\nE`,
  "<<-E\n  a\n  E",
  "<<E\nE",
);
const key = fc.constantFrom("a", "b", `"c d"`, "(x)", `"q\${x}"`, "1", "true");

const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie("expression");
  const member = fc
    .tuple(key, fc.constantFrom(" = ", ": ", "="), inner, fc.constantFrom("\n", ", ", ",\n", " # c\n"))
    .map((parts) => parts.join(""));
  return {
    expression: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(inner, { maxLength: 3 }).map((items) => `[${items.join(", ")}]`),
      fc.array(inner, { maxLength: 3 }).map((items) => `[\n${items.join(",\n")}\n]`),
      fc.array(member, { maxLength: 3 }).map((members) => `{\n${members.join("")}}`),
      fc.tuple(inner, inner, inner).map(([a, b, c]) => `${a} ? ${b} : ${c}`),
      fc.tuple(inner, fc.constantFrom("+", "-", "==", "&&", "/", "*", "<"), inner).map((parts) => parts.join(" ")),
      inner.map((operand) => `(\n${operand}\n)`),
      inner.map((operand) => `!${operand}`),
      inner.map((argument) => `f(${argument}, 1)`),
      inner.map((part) => `"a\${${part}}b%{if x}c%{endif}"`),
      inner.map((source) => `[for k, v in ${source} : v]`),
      inner.map((source) => `{for k, v in ${source} : k => v}`),
    ),
  };
});

/** Mostly valid: some combinations, such as a heredoc before an operator, are not. */
export const mostlyValid: fc.Arbitrary<string> = fc.letrec<{ body: string; item: string }>((tie) => ({
  body: fc.array(tie("item"), { maxLength: 4 }).map((items) => items.join("")),
  item: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(space, identifier, space, fc.constant("="), space, expression, endOfLine).map((parts) => parts.join("")),
    endOfLine,
    fc
      .tuple(space, identifier, fc.array(label, { maxLength: 2 }), tie("body"), space, endOfLine)
      .map(
        ([before, type, labels, body, after, end]) => `${before}${type}${labels.join("")} {\n${body}${after}}${end}`,
      ),
    fc
      .tuple(identifier, identifier, expression, endOfLine)
      .map(([type, name, v, end]) => `${type} { ${name} = ${v} }${end}`),
    fc.tuple(identifier, endOfLine).map(([type, end]) => `${type} {}${end}`),
  ),
})).body;

/** The same with a few characters cut out and something put in. */
export const broken: fc.Arbitrary<string> = fc
  .tuple(
    mostlyValid,
    fc.nat(),
    fc.nat(3),
    fc.constantFrom("", '"', "{", "}", "\n", "(", "=", "${", "%{", ",", "E", "\\", "#", ":", "?"),
  )
  .map(([text, position, length, inserted]) => {
    const at = text.length === 0 ? 0 : position % text.length;
    return text.slice(0, at) + inserted + text.slice(at + length);
  })
  .filter((text) => text.isWellFormed());

/** Pieces of HCL in any order. Left out: `::`, which the grammar knows and the reference does not, and open comments. */
export const soup: fc.Arbitrary<string> = fc
  .array(
    fc.constantFrom(
      ...`a b for true null 1 2.5 1e3 1..2 1.e é 😀 { } [ ] ( ) " " "x" \${ %{ ~} $\${ %%{ $ % \\ \\n < << . ... & &&`.split(
        " ",
      ),
      ..."| ' ` ; => == = : , ? - ! * / // # _ [*] endif".split(" "),
      ..."\n;\r\n;\r; ;\t;<<E\n;<<-E\n;E\n;  E  \n;/* x */;# c\n;// c\n;\u00a0;\u0000;\u0085;\u2028;e\u0301;if x".split(
        ";",
      ),
    ),
    { maxLength: 14 },
  )
  .map((pieces) => pieces.join(""))
  .filter((text) => !text.includes("::") && !text.replaceAll("/* x */", "").includes("/*"));
