/** JSON values from payloads as bounded, printable text. */
import type { Json } from "../payload/canonical-json.js";
import { memberPath } from "../replay/payload-diff.js";
import { foreign } from "./text.js";

const CUT = "…";
/** Characters that stay in view before a difference. */
const LEAD = 16;

/** Compact JSON of at most about `max` characters. */
export function valueText(value: Json, max: number): string {
  const writer = new BoundedWriter(max);
  writer.value(value);
  return foreign(writer.text);
}

/** Two values side by side; where long texts agree at their beginning, what they share is left out. */
export function pairText(before: Json, after: Json, max: number): readonly [before: string, after: string] {
  if (typeof before !== "string" || typeof after !== "string" || Math.max(before.length, after.length) < max - 2)
    return [valueText(before, max), valueText(after, max)];
  const shared = sharedLength(before, after);
  const from = shared > LEAD * 2 ? shared - LEAD : 0;
  const lead = from > 0 ? CUT : "";
  return [lead + valueText(before.slice(from), max - 1), lead + valueText(after.slice(from), max - 1)];
}

function sharedLength(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let length = 0;
  while (length < shorter && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

type Leaf = { readonly path: string; readonly value: Json };

/** The scalar members of a value and its empty ones, in order; `more` counts those beyond `max`. */
export function leavesOf(value: Json, max: number): { readonly leaves: readonly Leaf[]; readonly more: number } {
  const leaves: Leaf[] = [];
  let more = 0;
  walk("", value, (leaf) => {
    if (leaves.length < max) leaves.push(leaf);
    else more++;
  });
  return { leaves, more };
}

function walk(path: string, value: Json, report: (leaf: Leaf) => void): void {
  if (typeof value !== "object" || value === null) {
    report({ path, value });
    return;
  }
  const members: (readonly [string, Json | undefined])[] = isList(value)
    ? value.map((item, place) => [`${path}[${place}]`, item])
    : Object.entries(value).map(([key, member]) => [memberPath(path, key), member]);
  if (members.length === 0) report({ path, value });
  for (const [inner, member] of members) if (member !== undefined) walk(inner, member, report);
}

/** Stops where its room ends, so that a large value costs no more than a small one. */
class BoundedWriter {
  text = "";
  readonly #max: number;
  #over = false;

  constructor(max: number) {
    this.#max = max;
  }

  value(value: Json): void {
    if (typeof value === "string") this.#string(value);
    else if (typeof value !== "object" || value === null) this.#raw(String(value));
    else if (isList(value)) this.#list(value);
    else this.#members(value);
  }

  /** Is there no more room? Says so in the text, once. */
  #isOver(): boolean {
    if (!this.#over && this.text.length >= this.#max) {
      this.text += CUT;
      this.#over = true;
    }
    return this.#over;
  }

  #list(items: readonly Json[]): void {
    this.#raw("[");
    for (const [place, item] of items.entries()) {
      if (place > 0) this.#raw(", ");
      if (this.#isOver()) return;
      this.value(item);
    }
    this.#raw("]");
  }

  #members(members: { readonly [key: string]: Json | undefined }): void {
    this.#raw("{");
    let first = true;
    for (const [key, member] of Object.entries(members)) {
      if (member === undefined) continue;
      if (!first) this.#raw(", ");
      if (this.#isOver()) return;
      first = false;
      this.#string(key);
      this.#raw(": ");
      this.value(member);
    }
    this.#raw("}");
  }

  #string(text: string): void {
    const room = Math.max(8, this.#max - this.text.length - 2);
    const shown = Array.from(text.slice(0, room * 2))
      .slice(0, room)
      .join("");
    this.#raw(shown.length < text.length ? `${JSON.stringify(shown).slice(0, -1)}${CUT}"` : JSON.stringify(text));
  }

  #raw(text: string): void {
    if (!this.#over) this.text += text;
  }
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}
