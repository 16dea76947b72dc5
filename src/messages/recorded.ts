/** Live values as they are recorded: JSON, whatever they are. The live value is unaffected. */

import type { Json } from "../payload/canonical-json.js";

/** Deeper than any event; what lies below is not recorded. */
const MAX_DEPTH = 64;

/**
 * Functions and undefined are left out, in a list null. What has no JSON form becomes `{"$unrecordable": kind}`: bigint, symbol, NaN
 * and the infinities, bytes, a cycle, an object of a class, what throws when it is read, and what is nested too deep. Text is made
 * well-formed. Never throws.
 */
export function recorded(value: unknown): Json {
  return recordedAt(value, new Set()) ?? null;
}

function recordedAt(value: unknown, above: Set<object>): Json | undefined {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : unrecordable(Number.isNaN(value) ? "NaN" : "infinity");
    case "bigint":
    case "symbol":
      return unrecordable(typeof value);
    case "undefined":
    case "function":
      return undefined;
    case "object":
      return value === null ? null : recordedObject(value, above);
  }
}

function recordedObject(value: object, above: Set<object>): Json | undefined {
  try {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return unrecordable("bytes");
    if (above.has(value)) return unrecordable("cycle");
    if (above.size === MAX_DEPTH) return unrecordable("too deep");
    above.add(value);
    try {
      if (Array.isArray(value)) return Array.from(value, (item) => recordedAt(item, above) ?? null);
      return isPlain(value) ? recordedMembers(value, above) : unrecordable("object of a class");
    } finally {
      above.delete(value);
    }
  } catch {
    return unrecordable("unreadable");
  }
}

function recordedMembers(value: object, above: Set<object>): Json {
  const members: [string, Json][] = [];
  for (const key of Object.keys(value)) {
    const member = recordedAt(Reflect.get(value, key), above);
    if (member !== undefined) members.push([key.toWellFormed(), member]);
  }
  return Object.fromEntries(members);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

function unrecordable(kind: string): Json {
  return { $unrecordable: kind };
}
