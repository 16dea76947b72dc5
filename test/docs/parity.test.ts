import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "#src/cli/commands.js";
import { EXIT, exitCodeOf } from "#src/cli/exit.js";
import { HOOK_POINTS } from "#src/core/points.js";
import { ERROR_CODES, type ErrorCode } from "#src/errors.js";
import { anchorsOf, documentAt, documents, localLinksOf, ROOT, rowsOf, sectionOf } from "./documents.js";

const NAMES = COMMANDS.map(({ name }) => name);
const CODES = Object.keys(ERROR_CODES).filter((code): code is ErrorCode => Object.hasOwn(ERROR_CODES, code));

describe("docs/errors.md", () => {
  const rows = rowsOf(documentAt("docs/errors.md").text).filter(([code]) => code?.startsWith("`HL_"));

  it("should have an entry for every code, and no other", () => {
    expect(rows.map(([code]) => code?.replaceAll("`", "")).toSorted()).toEqual(CODES.toSorted());
  });

  it("should say which exit code each comes to", () => {
    const said = Object.fromEntries(rows.map(([code = "", , , , exit]) => [code.replaceAll("`", ""), exit]));
    const thrown = CODES.map((code) => [code, code === "HL_LIMIT_OBSERVERS" ? "none" : String(exitCodeOf(code))]);
    expect(said).toEqual(Object.fromEntries(thrown));
  });
});

describe("the error codes", () => {
  it("should each be used somewhere in src", () => {
    const sources = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts") && name !== "errors.ts")
      .map((name) => withoutComments(readFileSync(join(ROOT, "src", name), "utf8")));
    expect(CODES.filter((code) => !sources.some((source) => new RegExp(`\\b${code}\\b`).test(source)))).toEqual([]);
  });

  it("should be those that the documentation speaks of", () => {
    const said = documents().flatMap(({ path, text }) =>
      Array.from(text.matchAll(/HL_[A-Z]+(?:_[A-Z]+)*(?![A-Z_…])/g), ([code]) => `${path} ${code}`),
    );
    expect(said.filter((line) => !Object.hasOwn(ERROR_CODES, line.split(" ")[1] ?? ""))).toEqual([]);
  });
});

describe("docs/cli.md", () => {
  const document = documentAt("docs/cli.md");

  it("should have a section for every command, and no other", () => {
    const headings = Array.from(sectionOf(document, "## Commands").matchAll(/^### (.+)$/gm), ([, name]) => name);
    expect(headings).toEqual(NAMES);
  });

  it.each(COMMANDS)("should have every option of $name, and no other", ({ name, options }) => {
    const rows = rowsOf(sectionOf(document, `### ${name}`)).map(([option = ""]) => option);
    const said = rows.filter((option) => option.startsWith("`--")).map((option) => option.replaceAll("`", ""));
    expect(said).toEqual(options.map(({ flags }) => flags));
  });

  it("should have every global option", () => {
    const help = spawnSync(process.execPath, [join(ROOT, "dist/cli/main.js"), "--help"], { encoding: "utf8" }).stdout;
    const options = Array.from(help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm), ([, option = ""]) => option);
    const said = rowsOf(document.text.slice(0, document.text.indexOf("\n## "))).flatMap(([option = ""]) =>
      Array.from(option.matchAll(/--[a-z-]+/g), ([flag]) => flag),
    );
    expect(said.toSorted()).toEqual(options.toSorted());
  });

  it.each(["README.md", "docs/cli.md"])("should agree with %s on the exit codes", (path) => {
    const table = documentAt(path).text.match(/^\| exit \|.*\n(?:\|.*\n)+/m)?.[0] ?? "";
    const said = rowsOf(table).flatMap(([exit = ""]) => exit.split(", ").map(Number));
    expect(said).toEqual(Object.values(EXIT).toSorted((a, b) => a - b));
  });
});

describe("the documentation", () => {
  it("should name only commands that there are", () => {
    const said = documents().flatMap(({ path, text }) =>
      Array.from(
        text.matchAll(/(?:^|`|npx |&& )hookledger ((?:audit |queue )?[a-z]+)/gm),
        ([, name = ""]) => `${path}: ${name}`,
      ),
    );
    const known = new Set([...NAMES, "audit", "queue", "help"]);
    expect(said.filter((line) => !known.has(line.slice(line.indexOf(": ") + 2)))).toEqual([]);
  });

  it("should list every command in the README", () => {
    const rows = rowsOf(sectionOf(documentAt("README.md"), "## Command line"));
    const said = rows.flatMap(([cell = ""]) => /^`hookledger (.+)`$/.exec(cell)?.[1] ?? []);
    expect(said).toEqual(NAMES);
  });

  it("should name only scripts that there are", () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const said = documents().flatMap(({ path, text }) =>
      Array.from(text.matchAll(/npm run ([a-z:-]+)/g), ([, name = ""]) => `${path}: ${name}`),
    );
    expect(said.filter((line) => !Object.hasOwn(scripts, line.slice(line.indexOf(": ") + 2)))).toEqual([]);
  });

  it("should tell the truth about the hook points", () => {
    const rows = rowsOf(sectionOf(documentAt("docs/concepts.md"), "## Hook points"));
    const said = rows.map(([point = "", , mutable = "", veto]) => [
      point.replaceAll("`", ""),
      mutable === "nothing" ? [] : [mutable.replaceAll("`", "")],
      veto === "yes",
    ]);
    expect(said).toEqual(Object.entries(HOOK_POINTS).map(([name, rules]) => [name, rules.mutable, rules.vetoBearing]));
  });

  it("should link to what there is", () => {
    const broken = documents().flatMap((document) =>
      localLinksOf(document)
        .filter(({ target, anchor }) => !resolves(target, anchor))
        .map(({ target, anchor }) => `${document.path}: ${target}${anchor === undefined ? "" : `#${anchor}`}`),
    );
    expect(broken).toEqual([]);
  });
});

function resolves(target: string, anchor: string | undefined): boolean {
  if (!existsSync(join(ROOT, target))) return false;
  return anchor === undefined || anchorsOf(documentAt(target)).has(anchor);
}

function withoutComments(source: string): string {
  return source.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");
}
