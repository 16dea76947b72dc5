/** Live values as they are recorded: JSON, whatever they are. The live value is unaffected. */

import type { Json } from "../payload/canonical-json.js";
import { isPlain } from "./clone.js";

/** Deeper than any event; what lies below is not recorded. */
const MAX_DEPTH = 64;
/** Values in all: one that refers to another twice holds it twice. */
const MAX_VALUES = 1_000_000;
/** UTF-16 units in all; what is recorded is 64 MiB at most. */
const MAX_TEXT = 64 * 1024 * 1024;

/**
 * Functions and undefined are left out, in a list null. What has no JSON form becomes `{"$unrecordable": kind}`: bigint, symbol, NaN
 * and the infinities, bytes, a cycle, an object of a class, what throws when it is read, and what is nested too deep. Text is made
 * well-formed. A value that is too large as a whole is `{"$unrecordable": "too large"}`. `handles` are left out like functions. Never
 * throws.
 */
export function recorded(value: unknown, handles: ReadonlySet<unknown> = NONE): Json {
  try {
    return new Recording(handles).of(value) ?? null;
  } catch (error) {
    if (error instanceof TooLarge) return unrecordable("too large");
    throw error;
  }
}

const NONE: ReadonlySet<unknown> = new Set();

class TooLarge extends Error {}

class Recording {
  readonly #handles: ReadonlySet<unknown>;
  readonly #above = new Set<object>();
  #values = 0;
  #text = 0;

  constructor(handles: ReadonlySet<unknown>) {
    this.#handles = handles;
  }

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
        if (value === null) return null;
        return this.#handles.has(value) ? undefined : this.#object(value);
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

function unrecordable(kind: string): Json {
  return { $unrecordable: kind };
}
