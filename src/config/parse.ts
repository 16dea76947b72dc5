import { type Diagnostics, at as placeText, quoted } from "./diagnostics.js";
import { parseGrammar, type Verdict } from "./grammar.js";
import { join } from "./join.js";
import { MAX_NESTING } from "./nesting.js";
import { MAX_TOKENS, type Scan, type Span, scan } from "./scanner.js";
import { SourceText } from "./source-text.js";
import type { Item } from "./value.js";

/** A file, parsed as far as it is HCL. */
export type Document = {
  readonly source: SourceText;
  readonly items: readonly Item[];
  /** Types of the blocks that could not be read; `*`: something unknown could not. */
  readonly lost: readonly string[];
};

/**
 * Reports the first syntax error, duplicates and broken bounds, and returns what can be read around them: the top-level
 * item with the syntax error is left out, or everything from there on where the rest makes no sense either.
 */
export async function parseSource(source: SourceText, report: Diagnostics): Promise<Document> {
  const unreadable: Document = { source, items: [], lost: ["*"] };
  const scanned = scan(source.text);
  if (scanned.excess !== undefined) {
    reportExcess(source, scanned.excess, report);
    return unreadable;
  }
  for (const { kind, name, at, first } of scanned.duplicates) {
    const before = placeText(source.place(first.start));
    report.error(source.place(at.start), `${kind} ${quoted(name)} is set twice; first at ${before}`);
  }
  const repeated = scanned.duplicates.filter(({ kind }) => kind === "attribute").map(({ at }) => at);
  const text = blank(source.text, repeated);
  const verdict = await judge(text, scanned);
  switch (verdict.kind) {
    case "valid":
    case "shapeless":
      return finish(source, text, [], report);
    case "invalid": {
      const offset = new SourceText(source.file, text).offsetOfGrapheme(verdict.line, verdict.column);
      report.error(source.place(offset), clause(verdict.summary), { hint: verdict.detail });
      return recover(source, text, offset, report);
    }
    case "exhausted":
      reportExhausted(source, report);
      return unreadable;
  }
}

/** The grammar's verdict. Of a text with an impossible token it gets no more than it needs to say so. */
async function judge(text: string, scanned: Scan): Promise<Verdict> {
  if (scanned.invalid !== undefined) {
    const verdict = await parseGrammar(text.slice(0, scanned.invalid.end));
    if (verdict.kind === "invalid") return verdict;
  }
  return parseGrammar(text);
}

async function recover(source: SourceText, text: string, offset: number, report: Diagnostics): Promise<Document> {
  const { items } = scan(text);
  const broken = items.find(({ start, end }) => start <= offset && offset < end);
  const before = items.filter(({ end }) => end <= offset).at(-1)?.end ?? 0;
  const after = items.find(({ start }) => start > offset)?.start ?? text.length;
  const gap = { start: before, end: after };
  const name = broken?.kind === "block" ? broken.type : broken?.name;
  const attempts: readonly { readonly without: Span; readonly lost: string }[] = [
    { without: broken ?? gap, lost: name ?? "*" },
    { without: { start: (broken ?? gap).start, end: text.length }, lost: "*" },
  ];
  for (const { without, lost } of attempts) {
    const rest = blank(text, [without]);
    const verdict = await judge(rest, scan(rest));
    if (verdict.kind === "valid" || verdict.kind === "shapeless") return finish(source, rest, [lost], report);
  }
  return { source, items: [], lost: ["*"] };
}

async function finish(
  source: SourceText,
  text: string,
  lost: readonly string[],
  report: Diagnostics,
): Promise<Document> {
  const items = await join(source, scan(text).items);
  if (items !== undefined) return { source, items, lost };
  reportExhausted(source, report);
  return { source, items: [], lost: ["*"] };
}

function reportExcess(source: SourceText, excess: NonNullable<Scan["excess"]>, report: Diagnostics): void {
  const place = source.place(excess.start);
  switch (excess.bound) {
    case "nesting":
      report.error(place, `nested more than ${MAX_NESTING} levels deep`, { code: "HL_LIMIT_DEPTH" });
      break;
    case "number":
      report.error(place, "a number must fit a 64-bit float", { code: "HL_LIMIT_CONFIG" });
      break;
    case "tokens":
      report.error(place, `more than ${MAX_TOKENS} words and signs in one file`, { code: "HL_LIMIT_CONFIG" });
      break;
  }
}

function reportExhausted(source: SourceText, report: Diagnostics): void {
  report.error(source.place(0), "too intricate to parse", { code: "HL_LIMIT_CONFIG" });
}

/** `text` with spaces in place of some of it; offsets and lines stay. */
function blank(text: string, spans: readonly Span[]): string {
  let blanked = "";
  let at = 0;
  for (const { start, end } of [...spans].sort((a, b) => a.start - b.start)) {
    if (start < at) continue;
    blanked += text.slice(at, start) + text.slice(start, end).replace(/[^\r\n]/g, " ");
    at = end;
  }
  return blanked + text.slice(at);
}

/** The grammar's "Missing newline after argument." as our messages begin and end. */
function clause(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1).replace(/\.$/, "");
}
