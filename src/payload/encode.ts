/** From JavaScript values to canonical bytes, whatever notation the values are in; each is read once. */

import { isUint8Array } from "node:util/types";
import { HookledgerError } from "../errors.js";
import { canonicalize } from "./canonical.js";
import { isCanonical } from "./canonical-check.js";
import type { Field, MessageType } from "./descriptor.js";
import { keyPath } from "./json-text.js";
import { UNKNOWN_FIELDS } from "./messages.js";
import { recordsOf, type WireRecord } from "./records.js";
import { messageType } from "./schema.js";
import { sourceOf } from "./view-source.js";
import { LENGTH, MAX_MESSAGE_DEPTH, ReverseWriter } from "./wire.js";

/** A value that is not what the message takes. `path` says where, as `messages[0].content[1].text`. */
export class ViewError extends Error {
  override readonly name = "ViewError";
  readonly path: string;
  readonly code: "HL_PAYLOAD" | "HL_LIMIT_DEPTH";

  constructor(path: string, problem: string, code: ViewError["code"] = "HL_PAYLOAD") {
    super(path === "" ? `payload ${problem}` : `${path} ${problem}`);
    this.path = path;
    this.code = code;
  }
}

/** What differs between the notations. A conversion gives undefined where the value is of no use. */
export type Notation = {
  /** First part of every path. */
  readonly root: string;
  /** Do paths name the keys of plain data? Those are content. */
  readonly namesKeys: boolean;
  /** May fields that this build does not know ride along? */
  readonly carriesUnknown: boolean;
  readonly field: (type: MessageType, name: string) => Field | undefined;
  readonly isAbsent: (value: unknown) => boolean;
  readonly integer: (value: unknown) => number | undefined;
  readonly int64: (value: unknown) => bigint | undefined;
  readonly double: (value: unknown) => number | undefined;
  readonly bytes: (value: unknown) => Uint8Array | undefined;
};

/**
 * Encodes `value`, which stands `level` messages deep. Throws a ViewError, HL_LIMIT_PAYLOAD over 64 MiB, and whatever
 * reading the value throws.
 */
export function encode(type: MessageType, value: unknown, notation: Notation, level = 1): Uint8Array {
  return new Encoder(notation).run(type, value, level);
}

export function isPlainObject(value: unknown): value is Record<PropertyKey, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  // An Object.prototype, of whichever realm, is the one object whose own prototype is null.
  return prototype === null || prototype === Object.prototype || Object.getPrototypeOf(prototype) === null;
}

/** What a value is, without saying what is in it. */
export function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (isUint8Array(value)) return "bytes";
  if (value === undefined) return "nothing";
  if (typeof value === "object") return isPlainObject(value) ? "an object" : "an object that is not plain";
  return `a ${typeof value}`;
}

const INT32_MAX = 0x7fffffff;
const UINT32_MAX = 0xffffffff;
const INT64_MAX = 2n ** 63n - 1n;
const STRUCT = "google.protobuf.Struct";
/** Knows no field. */
const BARE_TYPE: MessageType = {
  name: "",
  fields: [],
  byNumber: [],
  byJsonName: new Map(),
  byName: new Map(),
  oneofs: [],
  wellKnown: undefined,
};

class Encoder {
  readonly #out = new ReverseWriter(1024);
  readonly #notation: Notation;
  /** Names of fields and keys, and indices of lists; put together only for an error. */
  readonly #path: (string | number)[] = [];
  #usesSources = false;

  constructor(notation: Notation) {
    this.#notation = notation;
  }

  run(type: MessageType, value: unknown, level: number): Uint8Array {
    this.#message(type, value, level);
    const bytes = this.#out.finish();
    // What came encoded brings its own depth along.
    if (this.#usesSources && !isCanonical(type, bytes, level)) throw this.#tooDeep();
    return bytes;
  }

  #message(type: MessageType, value: unknown, level: number): void {
    if (level > MAX_MESSAGE_DEPTH) throw this.#tooDeep();
    if (type.wellKnown === "struct") {
      this.#struct(type, value, level);
      return;
    }
    if (!isPlainObject(value)) this.#expected("an object", value);
    const values = this.#read(type, value);
    const unknown = this.#unknownOf(type, value);
    let waiting = unknown.records.length;
    for (let index = type.fields.length - 1; index >= 0; index--) {
      const field = type.fields[index];
      const given = values[index];
      if (field === undefined || given === undefined) continue;
      waiting = this.#writeUnknown(unknown, waiting, field.number);
      this.#path.push(field.jsonName);
      this.#field(field, given, level);
      this.#path.pop();
    }
    this.#writeUnknown(unknown, waiting, 0);
  }

  /** The values by field index, absent ones undefined. */
  #read(type: MessageType, value: Record<PropertyKey, unknown>): readonly unknown[] {
    const values: unknown[] = new Array(type.fields.length).fill(undefined);
    let chosen: (Field | undefined)[] | undefined;
    for (const name of Object.keys(value)) {
      const field = this.#notation.field(type, name);
      if (field === undefined) throw new ViewError(this.#where(), `has no property ${quotedName(name)}`);
      const given = value[name];
      if (given === undefined || this.#notation.isAbsent(given)) continue;
      if (values[field.index] !== undefined) throw new ViewError(this.#where(), `has ${field.jsonName} twice`);
      if (field.oneof >= 0) {
        chosen ??= [];
        const rival = chosen[field.oneof];
        if (rival !== undefined) {
          throw new ViewError(
            this.#where(),
            `has both ${rival.jsonName} and ${field.jsonName}, of which one may be set`,
          );
        }
        chosen[field.oneof] = field;
      }
      values[field.index] = given;
    }
    return values;
  }

  #unknownOf(type: MessageType, value: Record<PropertyKey, unknown>): Unknown {
    if (!this.#notation.carriesUnknown || !Object.hasOwn(value, UNKNOWN_FIELDS)) return NOTHING_UNKNOWN;
    const given = value[UNKNOWN_FIELDS];
    if (given === undefined) return NOTHING_UNKNOWN;
    if (!isUint8Array(given))
      throw new ViewError(this.#where(), `has unknown fields that are ${kindOf(given)}, not bytes`);
    const bytes = this.#sorted(given);
    const records = recordsOf(bytes);
    const known = records.find(({ number }) => type.byNumber[number] !== undefined);
    if (known === undefined) return { bytes, records };
    throw new ViewError(this.#where(), `has field ${known.number} among its unknown fields`);
  }

  #sorted(unknown: Uint8Array): Uint8Array {
    try {
      return canonicalize(BARE_TYPE, new Uint8Array(unknown));
    } catch (error) {
      if (!(error instanceof HookledgerError)) throw error;
      throw new ViewError(this.#where(), "has unknown fields that are no valid encoding");
    }
  }

  /** Writes those above `number`, last first; returns how many still wait. */
  #writeUnknown({ bytes, records }: Unknown, count: number, number: number): number {
    let left = count;
    for (; left > 0; left--) {
      const record = records[left - 1];
      if (record === undefined || record.number < number) break;
      this.#out.raw(bytes, record.start, record.end);
    }
    return left;
  }

  #field(field: Field, value: unknown, level: number): void {
    if (!field.repeated) this.#single(field, value, level);
    else if (field.kind === "map") throw new TypeError(`${field.name} is a map outside Struct`);
    else this.#list(field, value, level);
  }

  #list(field: Field, value: unknown, level: number): void {
    if (!Array.isArray(value)) this.#expected("an array", value);
    const { length } = value;
    const before = this.#out.length;
    for (let i = length - 1; i >= 0; i--) {
      this.#path.push(i);
      const element: unknown = value[i];
      if (field.packable) this.#bare(field, element, level);
      else this.#single(field, element, level);
      this.#path.pop();
    }
    if (!field.packable || length === 0) return;
    this.#out.uint(this.#out.length - before);
    this.#out.tag(field.number, LENGTH);
  }

  /** One value with its tag, unless it is a default that goes without saying. */
  #single(field: Field, value: unknown, level: number): void {
    const before = this.#out.length;
    const isDefault = this.#bare(field, value, level);
    if (isDefault && !field.presence && !field.repeated) this.#out.rewind(before);
    else this.#out.tag(field.number, field.wire);
  }

  /** Returns whether it is the kind's default. */
  #bare(field: Field, value: unknown, level: number): boolean {
    switch (field.kind) {
      case "string":
        return this.#text(value);
      case "bytes":
        return this.#bytes(value);
      case "bool":
        if (typeof value !== "boolean") this.#expected("a boolean", value);
        this.#out.uint(value ? 1 : 0);
        return !value;
      case "enum": {
        const number = typeof value === "string" ? field.enum.byName.get(value) : value;
        if (number === undefined) throw new ViewError(this.#where(), `is no name of ${field.enum.name}`);
        return this.#uint(number, 0, INT32_MAX, `a name of ${field.enum.name}`, value);
      }
      case "uint32":
        return this.#uint(this.#notation.integer(value), 0, UINT32_MAX, "a whole number of 32 bits, unsigned", value);
      case "int32":
        return this.#uint(this.#notation.integer(value), -INT32_MAX - 1, INT32_MAX, "a whole number of 32 bits", value);
      case "int64":
        return this.#int64(value);
      case "double": {
        const number = this.#notation.double(value);
        if (number === undefined) this.#expected("a number", value);
        this.#out.double(number);
        return Object.is(number, 0);
      }
      case "map":
      case "message": {
        const before = this.#out.length;
        this.#message(field.message, value, level + 1);
        this.#out.uint(this.#out.length - before);
        return false;
      }
    }
  }

  #uint(number: unknown, min: number, max: number, expected: string, given: unknown): boolean {
    if (typeof number !== "number") this.#expected(expected, given);
    if (!Number.isInteger(number) || number < min || number > max) {
      throw new ViewError(this.#where(), `is a number, but not ${expected}`);
    }
    if (number < 0) this.#out.int32(number);
    else this.#out.uint(number);
    return number === 0;
  }

  #int64(value: unknown): boolean {
    const number = this.#notation.int64(value);
    if (number === undefined) this.#expected("a bigint or a safe whole number", value);
    if (number > INT64_MAX || number < -INT64_MAX - 1n) throw new ViewError(this.#where(), "does not fit into 64 bits");
    const bits = BigInt.asUintN(64, number);
    this.#out.varint(Number(bits & 0xffffffffn), Number(bits >> 32n));
    return number === 0n;
  }

  #text(value: unknown): boolean {
    if (typeof value !== "string") this.#expected("a string", value);
    if (!value.isWellFormed()) throw new ViewError(this.#where(), "has a lone surrogate");
    this.#out.text(value);
    return value === "";
  }

  #bytes(value: unknown): boolean {
    const bytes = this.#notation.bytes(value);
    if (bytes === undefined) this.#expected("bytes", value);
    const { length } = bytes;
    this.#out.block(bytes, 0, length);
    return length === 0;
  }

  #struct(type: MessageType, value: unknown, level: number): void {
    if (!isPlainObject(value)) this.#expected("a plain object", value);
    if (this.#asItCame(value)) return;
    const unknown = this.#unknownOf(type, value);
    this.#writeUnknown(unknown, unknown.records.length, 0);
    for (const key of Object.keys(value).sort(descendingUtf8)) {
      if (!key.isWellFormed()) throw new ViewError(this.#where(), "has a key with a lone surrogate");
      const before = this.#out.length;
      this.#path.push(this.#notation.namesKeys ? key : "*");
      this.#value(value[key], level + 1);
      this.#path.pop();
      this.#out.tag(2, LENGTH);
      this.#out.text(key);
      this.#out.tag(1, LENGTH);
      this.#out.uint(this.#out.length - before);
      this.#out.tag(1, LENGTH);
    }
  }

  /** A Value with its length. */
  #value(value: unknown, level: number): void {
    if (level > MAX_MESSAGE_DEPTH) throw this.#tooDeep();
    const before = this.#out.length;
    if (value === null) {
      this.#out.uint(0);
      this.#out.tag(1, 0);
    } else if (typeof value === "number") {
      this.#out.double(value);
      this.#out.tag(2, 1);
    } else if (typeof value === "string") {
      this.#text(value);
      this.#out.tag(3, LENGTH);
    } else if (typeof value === "boolean") {
      this.#out.uint(value ? 1 : 0);
      this.#out.tag(4, 0);
    } else if (Array.isArray(value)) {
      this.#plainList(value, level + 1);
      this.#out.uint(this.#out.length - before);
      this.#out.tag(6, LENGTH);
    } else {
      if (!isPlainObject(value)) this.#expected("plain data", value);
      if (level >= MAX_MESSAGE_DEPTH) throw this.#tooDeep();
      this.#struct(messageType(STRUCT), value, level + 1);
      this.#out.uint(this.#out.length - before);
      this.#out.tag(5, LENGTH);
    }
    this.#out.uint(this.#out.length - before);
  }

  #plainList(value: readonly unknown[], level: number): void {
    if (level > MAX_MESSAGE_DEPTH) throw this.#tooDeep();
    if (this.#asItCame(value)) return;
    for (let i = value.length - 1; i >= 0; i--) {
      this.#path.push(i);
      this.#value(value[i], level + 1);
      this.#path.pop();
      this.#out.tag(1, LENGTH);
    }
  }

  #asItCame(value: object): boolean {
    const source = sourceOf(value);
    if (source === undefined) return false;
    this.#usesSources = true;
    this.#out.raw(source, 0, source.length);
    return true;
  }

  #expected(what: string, found: unknown): never {
    throw new ViewError(this.#where(), `is ${kindOf(found)}, not ${what}`);
  }

  #tooDeep(): ViewError {
    return new ViewError(this.#where(), `nests more than ${MAX_MESSAGE_DEPTH} messages`, "HL_LIMIT_DEPTH");
  }

  #where(): string {
    const { root } = this.#notation;
    const path = this.#path.map((step) => (typeof step === "number" ? `[${step}]` : stepOf(step))).join("");
    return root === "" && path.startsWith(".") ? path.slice(1) : root + path;
  }
}

function stepOf(name: string): string {
  return name === "*" ? ".*" : keyPath(name);
}

type Unknown = { readonly bytes: Uint8Array; readonly records: readonly WireRecord[] };
const NOTHING_UNKNOWN: Unknown = { bytes: new Uint8Array(0), records: [] };

/** A foreign name in a message. Whole or not at all: of one that is cut, nobody could tell that it was a secret. */
export function quotedName(name: string): string {
  return name.length > 64 ? `of ${name.length} characters` : JSON.stringify(name);
}

/** UTF-16 units order surrogates before U+E000 and above; code points, and so UTF-8, do not. */
function descendingUtf8(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(y) - rank(x);
  }
  return b.length - a.length;
}

function rank(unit: number): number {
  return unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit;
}
