/** Where two canonical messages differ, in words that hold no content. */

import { HOOK_POINTS } from "../core/points.js";
import type { MessageType } from "./descriptor.js";
import { type Payload, variantOf } from "./payload.js";
import { recordsOf, type WireRecord } from "./records.js";
import { hookPayloadType } from "./schema.js";

/**
 * The first field in which two payloads of one hook point differ though no transform may change it: `model.id`,
 * `call.arguments`, `unknown field 9 of model`. Undefined when they are equal there. Plain data is not looked into: its keys
 * are content.
 */
export function immutableDifference(a: Payload, b: Payload): string | undefined {
  const { field, record } = variantOf(a.bytes);
  const given = variantOf(b.bytes).record;
  return (
    firstDifference(field.message, inside(a, record), inside(b, given), HOOK_POINTS[a.point].mutable) ??
    firstDifference(hookPayloadType(), whole(a), whole(b), [field.name])
  );
}

/** A message inside a larger encoding. */
type Body = { readonly bytes: Uint8Array; readonly start: number; readonly end: number };

function firstDifference(type: MessageType, a: Body, b: Body, except: readonly string[]): string | undefined {
  const difference = find(type, a, b, except);
  if (difference === undefined) return undefined;
  const path = difference.path.join(".");
  if (difference.unknown === undefined) return path;
  return path === "" ? `unknown field ${difference.unknown}` : `unknown field ${difference.unknown} of ${path}`;
}

/** `unknown`: the number of the field that differs in the message at `path`. */
type Difference = { readonly path: readonly string[]; readonly unknown?: number };

function find(type: MessageType, a: Body, b: Body, except: readonly string[]): Difference | undefined {
  const left = byNumber(a);
  const right = byNumber(b);
  const numbers = [...new Set([...left.keys(), ...right.keys()])].sort((x, y) => x - y);
  for (const number of numbers) {
    const field = type.byNumber[number];
    if (field !== undefined && except.includes(field.name)) continue;
    const ours = left.get(number) ?? [];
    const theirs = right.get(number) ?? [];
    for (let i = 0; i < Math.max(ours.length, theirs.length); i++) {
      const x = ours[i];
      const y = theirs[i];
      if (x !== undefined && y !== undefined && sameRecord(a, x, b, y)) continue;
      if (field === undefined) return { path: [], unknown: number };
      const name = field.repeated ? `${field.jsonName}[${i}]` : field.jsonName;
      const opaque = field.kind !== "message" || field.message.wellKnown !== undefined;
      if (opaque || x === undefined || y === undefined) return { path: [name] };
      const inner = find(field.message, inside(a, x), inside(b, y), []);
      return { ...inner, path: [name, ...(inner?.path ?? [])] };
    }
  }
  return undefined;
}

function byNumber({ bytes, start, end }: Body): Map<number, WireRecord[]> {
  const groups = new Map<number, WireRecord[]>();
  for (const record of recordsOf(bytes, start, end)) {
    const group = groups.get(record.number);
    if (group === undefined) groups.set(record.number, [record]);
    else group.push(record);
  }
  return groups;
}

function sameRecord(a: Body, x: WireRecord, b: Body, y: WireRecord): boolean {
  const left = a.bytes.subarray(x.start, x.end);
  return left.length === y.end - y.start && Buffer.compare(left, b.bytes.subarray(y.start, y.end)) === 0;
}

function inside({ bytes }: { readonly bytes: Uint8Array }, { value, end }: WireRecord): Body {
  return { bytes, start: value, end };
}

function whole({ bytes }: Payload): Body {
  return { bytes, start: 0, end: bytes.length };
}
