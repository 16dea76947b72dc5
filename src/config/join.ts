import { HookledgerError } from "../errors.js";
import { parseGrammar } from "./grammar.js";
import type { ScannedItem, ScannedLeaf, ScannedValue, Span } from "./scanner.js";
import type { SourceText } from "./source-text.js";
import type { Attribute, Item, Value } from "./value.js";

/**
 * Gives scanned items their values. The grammar reads every literal once more, in one list, so that the two are joined by
 * position and no name, label or duplicate can come between them. Undefined when the grammar gave up.
 */
export async function join(source: SourceText, items: readonly ScannedItem[]): Promise<readonly Item[] | undefined> {
  const literals: ScannedLeaf[] = [];
  for (const item of items) collectLiterals(item, literals);
  const texts = literals.map(({ start, end }) => `,${source.text.slice(start, end)}\n`);
  // The first element is ours: `for` behind an opening bracket would be read as a keyword.
  const verdict = await parseGrammar(`values = [null\n${texts.join("")}]\n`);
  if (verdict.kind === "exhausted") return undefined;
  const values = verdict.kind === "valid" ? listOf(verdict.values) : undefined;
  if (values?.length !== literals.length + 1) throw new HookledgerError("HL_INTERNAL", disagreement(source));
  const worth = new Map(literals.map((leaf, i) => [leaf, values[i + 1]]));
  return new Joiner(source, worth).items(items);
}

function listOf(values: unknown): readonly unknown[] | undefined {
  const list = typeof values === "object" && values !== null && "values" in values ? values.values : undefined;
  return Array.isArray(list) ? list : undefined;
}

function disagreement(source: SourceText): string {
  return `the scanner and the grammar read ${source.file} differently`;
}

function collectLiterals(item: ScannedItem, literals: ScannedLeaf[]): void {
  if (item.kind === "block") for (const inner of item.body) collectLiterals(inner, literals);
  else collectLiteralsOf(item.value, literals);
}

function collectLiteralsOf(value: ScannedValue, literals: ScannedLeaf[]): void {
  switch (value.form) {
    case "object":
      for (const entry of value.entries) collectLiteralsOf(entry.value, literals);
      break;
    case "list":
      for (const item of value.items) collectLiteralsOf(item, literals);
      break;
    case "number":
    case "bool":
    case "string":
      literals.push(value);
      break;
    case "null":
    case "env":
    case "expression":
      break;
  }
}

class Joiner {
  readonly #source: SourceText;
  readonly #worth: ReadonlyMap<ScannedLeaf, unknown>;

  constructor(source: SourceText, worth: ReadonlyMap<ScannedLeaf, unknown>) {
    this.#source = source;
    this.#worth = worth;
  }

  items(items: readonly ScannedItem[]): readonly Item[] {
    const names = new Set<string>();
    const joined: Item[] = [];
    for (const item of items) {
      const place = this.#source.place(item.start);
      if (item.kind === "block") {
        const labels = item.labels.map((label) => ({ text: label.text, place: this.#source.place(label.start) }));
        joined.push({ kind: "block", type: item.type, labels, body: this.items(item.body), place });
      } else if (!names.has(item.name)) {
        names.add(item.name);
        joined.push({ kind: "attribute", name: item.name, computed: false, place, value: this.#value(item.value) });
      }
    }
    return joined;
  }

  #value(value: ScannedValue): Value {
    const place = this.#source.place(value.start);
    switch (value.form) {
      case "object":
        return { type: "object", place, members: this.#members(value.entries) };
      case "list":
        return { type: "list", place, items: value.items.map((item) => this.#value(item)) };
      case "null":
        return { type: "null", place };
      case "env":
        return { type: "env", place, name: value.name };
      case "expression":
        return { type: "expression", place, text: this.#textOf(value) };
      case "bool":
      case "number":
      case "string":
        return this.#literal(value, place);
    }
  }

  #literal(leaf: ScannedLeaf, place: Value["place"]): Value {
    const worth = this.#worth.get(leaf);
    switch (typeof worth) {
      case "boolean":
        return { type: "bool", place, value: worth };
      case "number":
        return { type: "number", place, value: worth };
      case "string":
        return { type: "string", place, value: withoutTemplateEscapes(worth) };
      default:
        throw new HookledgerError("HL_INTERNAL", disagreement(this.#source));
    }
  }

  #members(
    entries: readonly { readonly key: Span & { readonly text: string | undefined }; readonly value: ScannedValue }[],
  ) {
    const names = new Set<string>();
    const members: Attribute[] = [];
    for (const { key, value } of entries) {
      const name = key.text ?? this.#textOf(key);
      const computed = key.text === undefined;
      if (!computed && names.has(name)) continue;
      if (!computed) names.add(name);
      const place = this.#source.place(key.start);
      members.push({ kind: "attribute", name, computed, place, value: this.#value(value) });
    }
    return members;
  }

  #textOf({ start, end }: Span): string {
    return this.#source.text.slice(start, end);
  }
}

/** The grammar hands literals over as templates: a literal `${` or `%{` arrives doubled. */
function withoutTemplateEscapes(text: string): string {
  return text.replace(/\$\$\{|%%\{/g, (doubled) => doubled.slice(1));
}
