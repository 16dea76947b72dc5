/**
 * A thin scanner over HCL2: it finds every block, label, attribute, object key and literal with its place, and judges
 * nothing but bounds and duplicates. Whether a text is valid and what its expressions are worth is the grammar's affair
 * (`grammar.ts`); on an invalid text the scanner still returns what it recognised. Recursion is bounded by the nesting
 * that is checked first.
 */

import { lex, type Token, type TokenKind } from "./lexer.js";
import { decodeQuoted, outOfRange } from "./literals.js";
import { tooDeep } from "./nesting.js";

/** Offsets are UTF-16 units into the scanned text; `end` is exclusive. */
export type Span = { readonly start: number; readonly end: number };

type ScannedLabel = Span & { readonly text: string };

/** `start`: where the name stands. */
type ScannedAttribute = Span & {
  readonly kind: "attribute";
  readonly name: string;
  readonly value: ScannedValue;
};

/** `start`: where the type stands. */
type ScannedBlock = Span & {
  readonly kind: "block";
  readonly type: string;
  readonly labels: readonly ScannedLabel[];
  readonly body: readonly ScannedItem[];
};

export type ScannedItem = ScannedAttribute | ScannedBlock;

/** `text` is undefined where the key is computed. */
type ScannedKey = Span & { readonly text: string | undefined };
type ScannedEntry = { readonly key: ScannedKey; readonly value: ScannedValue };

export type ScannedLeaf = Span &
  (
    | { readonly form: "number" | "bool" | "null" | "string" | "expression" }
    /** Exactly `env("NAME")`. */
    | { readonly form: "env"; readonly name: string }
  );
export type ScannedValue =
  | ScannedLeaf
  | (Span & { readonly form: "object"; readonly entries: readonly ScannedEntry[] })
  | (Span & { readonly form: "list"; readonly items: readonly ScannedValue[] });

type Duplicate = {
  readonly kind: "attribute" | "key";
  readonly name: string;
  readonly at: Span;
  readonly first: Span;
};

/** More tokens than this, newlines not counted, would occupy the grammar for seconds. */
export const MAX_TOKENS = 300_000;

type Bound = "nesting" | "number" | "tokens";

export type Scan = {
  readonly items: readonly ScannedItem[];
  readonly duplicates: readonly Duplicate[];
  /** The first token that no HCL text may hold. */
  readonly invalid: Span | undefined;
  /** The place where a bound is broken; then nothing else was looked at. */
  readonly excess: (Span & { readonly bound: Bound }) | undefined;
};

const OPENERS: ReadonlySet<TokenKind> = new Set<TokenKind>(["{", "[", "(", "quote", "heredoc", "template"]);
const CLOSERS: ReadonlySet<TokenKind> = new Set<TokenKind>(["}", "]", ")", "end-quote", "end-heredoc", "end-template"]);
const EOF: Token = { kind: "eof", start: 0, end: 0 };

export function scan(text: string): Scan {
  const tokens = lex(text);
  const invalid = tokens.find((token) => token.kind === "invalid");
  const excess = excessOf(text, tokens);
  if (excess !== undefined) return { items: [], duplicates: [], invalid, excess };
  const items = new Scanner(text, tokens).items();
  const duplicates: Duplicate[] = [];
  findDuplicates(items, duplicates);
  return { items, duplicates, invalid, excess };
}

function excessOf(text: string, tokens: readonly Token[]): Scan["excess"] {
  const deep = tooDeep(text, tokens);
  if (deep !== null) return { ...deep, bound: "nesting" };
  const number = tokens.find((token) => token.kind === "number" && outOfRange(text.slice(token.start, token.end)));
  if (number !== undefined) return { ...number, bound: "number" };
  const [surplus] = tokens.filter((token) => token.kind !== "newline").slice(MAX_TOKENS);
  return surplus && { ...surplus, bound: "tokens" };
}

class Scanner {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string, tokens: readonly Token[]) {
    this.#text = text;
    this.#tokens = tokens;
  }

  items(): readonly ScannedItem[] {
    const items: ScannedItem[] = [];
    while (this.#peek().kind !== "eof") {
      for (const item of this.#body()) items.push(item);
      this.#skipOver("}");
    }
    return items;
  }

  /** Up to the closing brace (not consumed) or the end. */
  #body(): ScannedItem[] {
    const items: ScannedItem[] = [];
    for (let { kind } = this.#peek(); kind !== "eof" && kind !== "}"; kind = this.#peek().kind) {
      if (this.#skipOver("newline")) continue;
      const item = kind === "ident" ? this.#item() : undefined;
      if (item === undefined) this.#skipLine();
      else items.push(item);
    }
    return items;
  }

  #item(): ScannedItem | undefined {
    const name = this.#take();
    if (this.#skipOver("=")) {
      const value = this.#value(true);
      if (value === undefined) return undefined;
      return { kind: "attribute", name: this.#textOf(name), start: name.start, end: value.end, value };
    }
    const labels = this.#labels();
    if (labels === undefined) return undefined;
    const body = this.#body();
    const end = this.#peek().end;
    this.#skipOver("}");
    return { kind: "block", type: this.#textOf(name), start: name.start, end, labels, body };
  }

  /** Labels and the opening brace; undefined where something else stands. */
  #labels(): readonly ScannedLabel[] | undefined {
    const labels: ScannedLabel[] = [];
    while (!this.#skipOver("{")) {
      const token = this.#peek();
      if (token.kind !== "ident" && token.kind !== "quote") return undefined;
      this.#skipOne();
      const end = this.#previous().end;
      const text = this.#text.slice(token.start, end);
      labels.push({ start: token.start, end, text: token.kind === "quote" ? decodeQuoted(text) : text });
    }
    return labels;
  }

  /** An expression, up to what ends it. `newlineEnds`: in a body or an object, but not in a list. */
  #value(newlineEnds: boolean): ScannedValue | undefined {
    const first = this.#next;
    const { kind, start } = this.#peek();
    const entries = kind === "{" ? this.#object() : undefined;
    const items = kind === "[" ? this.#list() : undefined;
    const end = this.#previous().end;
    if (!newlineEnds) this.#skipNewlines();
    if (this.#endsValue(newlineEnds)) {
      if (entries !== undefined) return { form: "object", start, end, entries };
      if (items !== undefined) return { form: "list", start, end, items };
      return undefined;
    }
    return this.#leaf(first, this.#run(newlineEnds, false));
  }

  /** Goes to the end of an expression; the index behind its last token. */
  #run(newlineEnds: boolean, isKey: boolean): number {
    let behind = this.#next;
    for (let questions = 0; ; ) {
      const { kind } = this.#peek();
      if (kind === "newline" && !newlineEnds) {
        this.#next++;
        continue;
      }
      if (this.#endsValue(newlineEnds) || (isKey && (kind === "=" || (kind === ":" && questions === 0)))) return behind;
      if (kind === "?") questions++;
      if (kind === ":" && questions > 0) questions--;
      this.#skipOne();
      behind = this.#next;
    }
  }

  #endsValue(newlineEnds: boolean): boolean {
    const { kind } = this.#peek();
    return kind === "eof" || kind === "," || CLOSERS.has(kind) || (newlineEnds && kind === "newline");
  }

  #leaf(first: number, behind: number): ScannedLeaf {
    const tokens = this.#tokens.slice(first, Math.min(behind, first + 5));
    const kinds = tokens.map((token) => token.kind).join(" ");
    const start = this.#tokens[first]?.start ?? 0;
    const end = this.#tokens[behind - 1]?.end ?? start;
    const span = { start, end };
    if (kinds === "number" || kinds === "- number") return { ...span, form: "number" };
    if (kinds === "ident") {
      const word = this.#text.slice(start, end);
      if (word === "true" || word === "false") return { ...span, form: "bool" };
      return { ...span, form: word === "null" ? "null" : "expression" };
    }
    if (this.#isPlainString(first, behind)) return { ...span, form: "string" };
    const [word, , , name] = tokens;
    if (kinds.startsWith("ident ( quote literal end-quote") && behind === first + 6 && word !== undefined) {
      const closes = this.#tokens[first + 5]?.kind === ")";
      if (closes && this.#textOf(word) === "env") return { ...span, form: "env", name: this.#textOf(name ?? EOF) };
    }
    return { ...span, form: "expression" };
  }

  /** One string or heredoc without a template in it. */
  #isPlainString(first: number, behind: number): boolean {
    const opener = this.#tokens[first]?.kind;
    if (opener !== "quote" && opener !== "heredoc") return false;
    for (let i = first + 1; i < behind - 1; i++) if (this.#tokens[i]?.kind !== "literal") return false;
    return this.#tokens[behind - 1]?.kind === (opener === "quote" ? "end-quote" : "end-heredoc");
  }

  /** Undefined, with nothing consumed, for a `for` expression. */
  #object(): readonly ScannedEntry[] | undefined {
    if (this.#isFor()) return undefined;
    this.#take();
    const entries: ScannedEntry[] = [];
    while (!this.#skipOver("}") && this.#peek().kind !== "eof") {
      if (this.#skipOver("newline") || this.#skipOver(",")) continue;
      const key = this.#key();
      const value = this.#skipOver("=") || this.#skipOver(":") ? this.#value(true) : undefined;
      if (value !== undefined) entries.push({ key, value });
      else if (this.#peek().kind !== "}" && this.#peek().kind !== "eof") this.#skipOne();
    }
    return entries;
  }

  #key(): ScannedKey {
    const first = this.#next;
    const start = this.#peek().start;
    const behind = this.#run(true, true);
    const end = this.#tokens[behind - 1]?.end ?? start;
    const text = this.#text.slice(start, end);
    const kind = this.#tokens[first]?.kind;
    if (behind === first + 1 && kind === "ident") return { start, end, text };
    if (behind === first + 1 && kind === "number") return { start, end, text: String(Number(text)) };
    const quoted = kind === "quote" && this.#isPlainString(first, behind);
    return { start, end, text: quoted ? decodeQuoted(text).normalize() : undefined };
  }

  /** Undefined, with nothing consumed, for a `for` expression. */
  #list(): readonly ScannedValue[] | undefined {
    if (this.#isFor()) return undefined;
    this.#take();
    const items: ScannedValue[] = [];
    while (!this.#skipOver("]") && this.#peek().kind !== "eof") {
      if (this.#skipOver("newline") || this.#skipOver(",")) continue;
      const item = this.#value(false);
      if (item === undefined) this.#next++;
      else items.push(item);
    }
    return items;
  }

  /** Does `for` stand behind the bracket here? */
  #isFor(): boolean {
    let i = this.#next + 1;
    while (this.#tokens[i]?.kind === "newline") i++;
    const token = this.#tokens[i];
    return token?.kind === "ident" && this.#textOf(token) === "for";
  }

  /** Over the rest of a line that made no sense, as the grammar does it. */
  #skipLine(): void {
    for (let { kind } = this.#peek(); kind !== "newline" && kind !== "eof" && kind !== "}"; kind = this.#peek().kind) {
      this.#skipOne();
    }
  }

  /** Over one token, or over everything up to the partner of an opening one. */
  #skipOne(): void {
    let open = 0;
    do {
      const { kind } = this.#take();
      if (OPENERS.has(kind)) open++;
      else if (CLOSERS.has(kind)) open--;
    } while (open > 0 && this.#peek().kind !== "eof");
  }

  #skipNewlines(): void {
    while (this.#skipOver("newline"));
  }

  #skipOver(kind: TokenKind): boolean {
    if (this.#peek().kind !== kind) return false;
    this.#next++;
    return true;
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? EOF;
  }

  #take(): Token {
    const token = this.#peek();
    this.#next++;
    return token;
  }

  #previous(): Token {
    return this.#tokens[this.#next - 1] ?? EOF;
  }

  #textOf(token: Token): string {
    return this.#text.slice(token.start, token.end);
  }
}

function findDuplicates(items: readonly ScannedItem[], found: Duplicate[]): void {
  const seen = new Map<string, ScannedAttribute>();
  for (const item of items) {
    if (item.kind === "block") {
      findDuplicates(item.body, found);
      continue;
    }
    const first = seen.get(item.name);
    if (first === undefined) seen.set(item.name, item);
    else found.push({ kind: "attribute", name: item.name, at: item, first });
    findDuplicateKeys(item.value, found);
  }
}

function findDuplicateKeys(value: ScannedValue, found: Duplicate[]): void {
  if (value.form === "list") {
    for (const item of value.items) findDuplicateKeys(item, found);
  } else if (value.form === "object") {
    const seen = new Map<string, ScannedKey>();
    for (const { key, value: member } of value.entries) {
      const first = key.text === undefined ? undefined : seen.get(key.text);
      if (first !== undefined) found.push({ kind: "key", name: key.text ?? "", at: key, first });
      else if (key.text !== undefined) seen.set(key.text, key);
      findDuplicateKeys(member, found);
    }
  }
}
