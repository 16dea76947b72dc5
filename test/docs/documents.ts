/** The documentation as data: fenced blocks with what is to be done with each, links, and headings. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** What stands in the comment above a fence. */
export type Directive =
  /** Written under this name, then compiled if it is TypeScript; `run`: and run by Node. */
  | { readonly kind: "file"; readonly path: string; readonly run: boolean }
  /** The file of this name is started first and stops last; it prints a line once it is ready. */
  | { readonly kind: "serve"; readonly path: string }
  /** Shell lines, run in this folder; `# exit 3` at the end of a line is what it has to end with. */
  | { readonly kind: "run"; readonly folder: string }
  /** What the block before it prints; `…` stands for anything. */
  | { readonly kind: "prints" }
  /** A whole configuration, which has to load. */
  | { readonly kind: "config" }
  /** Proven by a test of its own. */
  | { readonly kind: "example"; readonly name: string }
  | { readonly kind: "not run"; readonly why: string };

export type Block = {
  readonly language: string;
  readonly text: string;
  /** 1-based line of the fence. */
  readonly line: number;
  readonly directive: Directive | null;
};

export type Document = { readonly path: string; readonly text: string; readonly blocks: readonly Block[] };

export function documentAt(path: string): Document {
  const text = readFileSync(join(ROOT, path), "utf8");
  return { path, text, blocks: blocksOf(text) };
}

/** Every Markdown file that ships or greets a reader, by path from the root. */
export function documents(): readonly Document[] {
  const docs = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  const paths = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "examples/README.md",
    ...docs.map((name) => `docs/${name}`),
  ];
  return paths.map(documentAt);
}

function blocksOf(text: string): readonly Block[] {
  const lines = text.split("\n");
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; at++) {
    const language = /^```(\S*)$/.exec(lines[at] ?? "")?.[1];
    if (language === undefined) continue;
    const end = lines.indexOf("```", at + 1);
    if (end === -1) throw new Error(`the fence in line ${at + 1} is never closed`);
    const directive = directiveOf(lines[at - 1] ?? "");
    blocks.push({ language, text: `${lines.slice(at + 1, end).join("\n")}\n`, line: at + 1, directive });
    at = end;
  }
  return blocks;
}

function directiveOf(line: string): Directive | null {
  const [, kind = "", rest = ""] =
    /^<!-- (file|serve|run|prints|config|example|not run)(?:: (.+))? -->$/.exec(line) ?? [];
  switch (kind) {
    case "file":
      return { kind, path: rest.replace(/, run$/, ""), run: rest.endsWith(", run") };
    case "serve":
      return { kind, path: rest };
    case "run":
      return { kind, folder: rest === "" ? "." : rest };
    case "prints":
    case "config":
      return { kind };
    case "example":
      return { kind, name: rest };
    case "not run":
      return { kind, why: rest };
    default:
      return null;
  }
}

/** Anchors as GitHub makes them of headings. */
export function anchorsOf({ text }: Document): ReadonlySet<string> {
  const headings = withoutFences(text).matchAll(/^#{1,6} (.+)$/gm);
  return new Set(Array.from(headings, ([, title = ""]) => anchorOf(title)));
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(" ", "-");
}

export type Link = { readonly target: string; readonly anchor: string | undefined };

/** Links into this repository, their targets by path from the root; "" is the document itself. */
export function localLinksOf({ path, text }: Document): readonly Link[] {
  const links = withoutFences(text).matchAll(/\]\(([^)\s]+)\)/g);
  return Array.from(links, ([, link = ""]) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : relative(ROOT, join(ROOT, dirname(path), file));
      return { target, anchor };
    });
}

export function withoutFences(text: string): string {
  return text.replace(/^```[\s\S]*?^```$/gm, "");
}

/** The section below a heading, up to the next of the same or a higher level. */
export function sectionOf({ path, text }: Document, heading: string): string {
  const lines = text.split("\n");
  const start = lines.indexOf(heading);
  if (start === -1) throw new Error(`${path} has no heading ${heading}`);
  const level = heading.indexOf(" ");
  const length = lines.slice(start + 1).findIndex((line) => new RegExp(`^#{1,${level}} `).test(line));
  return lines.slice(start + 1, length === -1 ? undefined : start + 1 + length).join("\n");
}

/** Cells of the rows of a Markdown table, the heading and the rule below it left out. */
export function rowsOf(section: string): readonly (readonly string[])[] {
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .slice(1, line.lastIndexOf("|"))
        .split(/(?<!\\)\|/)
        .map((cell) => cell.trim()),
    );
}
