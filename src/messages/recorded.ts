/** Live values as they are recorded: JSON, whatever they are. The live value is unaffected. */

import type { Json } from "../payload/canonical-json.js";

/** Deeper than any event; what lies below is not recorded. */
const MAX_DEPTH = 64;
/** Values in all: one that refers to another twice holds it twice. */
const MAX_VALUES = 1_000_000;
/** UTF-16 units in all; what is recorded is 64 MiB at most. */
const MAX_TEXT = 64 * 1024 * 1024;

/**
 * Functions and undefined are left out, in a list null. What has no JSON form becomes `{"$unrecordable": kind}`: bigint, symbol, NaN
 * and the infinities, bytes, a cycle, an object of a class, what throws when it is read, and what is nested too deep. Text is made
 * well-formed. A value that is too large as a whole is `{"$unrecordable": "too large"}`. Never throws.
 */
export function recorded(value: unknown): Json {
  try {
    return new Recording().of(value) ?? null;
  } catch (error) {
    if (error instanceof TooLarge) return unrecordable("too large");
    throw error;
  }
}

class TooLarge extends Error {}

class Recording {
  readonly #above = new Set<object>();
  #values = 0;
  #text = 0;

  of(value: unknown): Json | undefined {
    if (++this.#values > MAX_VALUES) throw new TooLarge();
    switch (typeof value) {
      case "string":
        return this.#string(value);
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
        return value === null ? null : this.#object(value);
    }
  }

  #string(text: string): string {
    this.#text += text.length;
    if (this.#text > MAX_TEXT) throw new TooLarge();
    return text.toWellFormed();
  }

  #object(value: object): Json {
    try {
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return unrecordable("bytes");
      if (this.#above.has(value)) return unrecordable("cycle");
      if (this.#above.size === MAX_DEPTH) return unrecordable("too deep");
      return this.#below(value);
    } catch (error) {
      if (error instanceof TooLarge) throw error;
      return unrecordable("unreadable");
    }
  }

  #below(value: object): Json {
    this.#above.add(value);
    try {
      if (Array.isArray(value)) return Array.from(value, (item) => this.of(item) ?? null);
      return isPlain(value) ? this.#members(value) : unrecordable("object of a class");
    } finally {
      this.#above.delete(value);
    }
  }

  #members(value: object): Json {
    const members: [string, Json][] = [];
    for (const key of Object.keys(value)) {
      const member = this.of(Reflect.get(value, key));
      if (member !== undefined) members.push([this.#string(key), member]);
    }
    return Object.fromEntries(members);
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

function unrecordable(kind: string): Json {
  return { $unrecordable: kind };
}
