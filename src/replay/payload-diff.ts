/** What changed between two versions of a payload, member by member, as a person would tell it. */
import type { Json } from "../payload/canonical-json.js";
import { keyPath } from "../payload/json-text.js";

/** `path`: `plan.items[0].decision`, a key that is no plain word as `["a key"]`. List places count in the newer version, but those of removed members in the older. */
export type Change =
  | { readonly kind: "added"; readonly path: string; readonly after: Json }
  | { readonly kind: "removed"; readonly path: string; readonly before: Json }
  | { readonly kind: "changed"; readonly path: string; readonly before: Json; readonly after: Json };

/** Changes in the order of the payload; `more` counts those beyond the limit. */
export type Difference = { readonly changes: readonly Change[]; readonly more: number };

type Members = { readonly [key: string]: Json | undefined };

/** Lists are aligned exactly up to this many comparisons, and place by place beyond. */
const MAX_ALIGNMENT = 250_000;

/** Of two JSON values of bounded nesting. At most `maxChanges` changes are listed. */
export function differenceOf(before: Json, after: Json, maxChanges = 1000): Difference {
  const changes: Change[] = [];
  let more = 0;
  compare("", before, after, (change) => {
    if (changes.length < maxChanges) changes.push(change);
    else more++;
  });
  return { changes, more };
}

type Report = (change: Change) => void;

function compare(path: string, before: Json, after: Json, report: Report): void {
  if (isList(before) && isList(after)) compareLists(path, before, after, report);
  else if (isMembers(before) && isMembers(after)) compareMembers(path, before, after, report);
  else if (!same(before, after)) report({ kind: "changed", path, before, after });
}

function compareMembers(path: string, before: Members, after: Members, report: Report): void {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const key of keys) {
    const old = memberOf(before, key);
    const now = memberOf(after, key);
    const inner = memberPath(path, key);
    if (old !== undefined && now !== undefined) compare(inner, old, now, report);
    else if (now !== undefined) report({ kind: "added", path: inner, after: now });
    else if (old !== undefined) report({ kind: "removed", path: inner, before: old });
  }
}

/** What is common at both ends stays out of the alignment: that is all of it in most rewrites. */
function compareLists(path: string, before: readonly Json[], after: readonly Json[], report: Report): void {
  let start = 0;
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && same(before[start], after[start])) start++;
  let tail = 0;
  while (tail < shorter - start && same(before[before.length - 1 - tail], after[after.length - 1 - tail])) tail++;
  const old = { items: before.slice(start, before.length - tail), from: start };
  const now = { items: after.slice(start, after.length - tail), from: start };
  for (const { before: a, after: b } of gapsBetween(old, now)) compareGap(path, a, b, report);
}

type Part = { readonly items: readonly Json[]; readonly from: number };

/** Members without a counterpart: the first are taken for rewritten, place by place, the rest for removed or added. */
function compareGap(path: string, before: Part, after: Part, report: Report): void {
  const longer = Math.max(before.items.length, after.items.length);
  for (let i = 0; i < longer; i++) {
    const old = before.items[i];
    const now = after.items[i];
    if (old !== undefined && now !== undefined) compare(`${path}[${after.from + i}]`, old, now, report);
    else if (now !== undefined) report({ kind: "added", path: `${path}[${after.from + i}]`, after: now });
    else if (old !== undefined) report({ kind: "removed", path: `${path}[${before.from + i}]`, before: old });
  }
}

/** The stretches between equal members of a longest common subsequence. */
function gapsBetween(before: Part, after: Part): readonly { readonly before: Part; readonly after: Part }[] {
  const rows = before.items.length;
  const columns = after.items.length;
  if (rows === 0 || columns === 0 || rows * columns > MAX_ALIGNMENT) return [{ before, after }];
  const equal = before.items.map((old) => after.items.map((now) => same(old, now)));
  const lengths = commonLengths(equal, rows, columns);
  const gaps: { readonly before: Part; readonly after: Part }[] = [];
  let row = 0;
  let column = 0;
  let gapRow = 0;
  let gapColumn = 0;
  const close = (): void => {
    gaps.push({ before: part(before, gapRow, row), after: part(after, gapColumn, column) });
  };
  while (row < rows && column < columns) {
    if (equal[row]?.[column]) {
      close();
      row++;
      column++;
      gapRow = row;
      gapColumn = column;
    } else if (at(lengths, row + 1, column) >= at(lengths, row, column + 1)) row++;
    else column++;
  }
  row = rows;
  column = columns;
  close();
  return gaps;
}

/** `[row][column]`: members in common from there to the ends. */
function commonLengths(equal: readonly (readonly boolean[])[], rows: number, columns: number): readonly Uint32Array[] {
  const lengths = Array.from({ length: rows + 1 }, () => new Uint32Array(columns + 1));
  for (let row = rows - 1; row >= 0; row--) {
    for (let column = columns - 1; column >= 0; column--) {
      const length = equal[row]?.[column]
        ? at(lengths, row + 1, column + 1) + 1
        : Math.max(at(lengths, row + 1, column), at(lengths, row, column + 1));
      lengths[row]?.fill(length, column, column + 1);
    }
  }
  return lengths;
}

function at(lengths: readonly Uint32Array[], row: number, column: number): number {
  return lengths[row]?.[column] ?? 0;
}

function part({ items, from }: Part, start: number, end: number): Part {
  return { items: items.slice(start, end), from: from + start };
}

function same(a: Json | undefined, b: Json | undefined): boolean {
  if (Object.is(a, b)) return true;
  if (a === undefined || b === undefined) return false;
  if (isList(a)) return isList(b) && a.length === b.length && a.every((item, place) => same(item, b[place]));
  if (!isMembers(a) || !isMembers(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && same(memberOf(a, key), memberOf(b, key)))
  );
}

function memberOf(members: Members, key: string): Json | undefined {
  return Object.hasOwn(members, key) ? members[key] : undefined;
}

/** The path of a member: `call.name`, `arguments["a key"]`. */
export function memberPath(path: string, key: string): string {
  const step = keyPath(key);
  return path === "" && step.startsWith(".") ? step.slice(1) : path + step;
}

function isList(value: Json): value is readonly Json[] {
  return Array.isArray(value);
}

function isMembers(value: Json): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
