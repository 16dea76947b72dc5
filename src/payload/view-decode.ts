/** From canonical bytes to the frozen plain objects that subscribers see. */

import type { Field, MessageType } from "./descriptor.js";
import { UNKNOWN_FIELDS } from "./messages.js";
import { setOwn } from "./own-property.js";
import { keepSource } from "./view-source.js";
import { Cursor } from "./wire.js";

/** View of one message, whose canonical encoding is `bytes` from `start` to `end`. Deep-frozen. */
export function decodeCanonical(type: MessageType, bytes: Uint8Array, start = 0, end = bytes.length): object {
  return new Decoder(bytes, start).message(type, end);
}

type View = Record<PropertyKey, unknown>;
const EMPTY: readonly unknown[] = Object.freeze([]);

class Decoder {
  readonly #bytes: Buffer;
  readonly #cursor: Cursor;
  /** Has the plain data read so far lost something that only its bytes still say? */
  #lossy = false;

  constructor(bytes: Uint8Array, start: number) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#cursor = new Cursor(this.#bytes, start);
  }

  message(type: MessageType, end: number): object {
    if (type.wellKnown !== undefined) return this.#plainMessage(type.wellKnown, end);
    const cursor = this.#cursor;
    const view: View = { ...defaultsOf(type) };
    let blobs: Map<Field, Buffer> | undefined;
    let unknown: Buffer[] | undefined;
    while (cursor.pos < end) {
      const at = cursor.pos;
      cursor.varint(end);
      const field = type.byNumber[cursor.lo >>> 3];
      if (field === undefined) {
        unknown ??= [];
        unknown.push(this.#record(at, end));
      } else if (field.kind === "bytes") {
        blobs ??= new Map();
        blobs.set(field, this.#blob(end));
      } else if (field.repeated) {
        view[field.jsonName] = this.#list(field, at, end);
      } else {
        view[field.jsonName] = this.#value(field, end);
      }
    }
    for (const field of bytesFieldsOf(type)) {
      const blob = blobs?.get(field);
      if (blob !== undefined || !field.presence) copyOnAccess(view, field.jsonName, blob ?? NO_BYTES);
    }
    if (unknown !== undefined) copyOnAccess(view, UNKNOWN_FIELDS, Buffer.concat(unknown));
    return Object.freeze(view);
  }

  #value(field: Field, end: number): unknown {
    const cursor = this.#cursor;
    switch (field.kind) {
      case "string":
        return this.#text(end);
      case "message":
      case "map":
        cursor.varint(end);
        return this.message(field.message, cursor.pos + cursor.lo);
      case "bytes":
        return new Uint8Array(this.#blob(end));
      case "double":
        cursor.pos += 8;
        return this.#bytes.readDoubleLE(cursor.pos - 8);
      case "enum":
        cursor.varint(end);
        return field.enum.byNumber.get(cursor.lo) ?? cursor.lo;
      case "bool":
        cursor.varint(end);
        return cursor.lo !== 0;
      case "uint32":
        cursor.varint(end);
        return cursor.lo;
      case "int32":
        cursor.varint(end);
        return cursor.lo | 0;
      case "int64":
        cursor.varint(end);
        return bigintOf(cursor.lo, cursor.hi);
    }
  }

  /** All elements of a field, which stand together; the cursor is behind the first one's tag, which began at `tagStart`. */
  #list(field: Field, tagStart: number, end: number): readonly unknown[] {
    const cursor = this.#cursor;
    const elements: unknown[] = [];
    if (field.packable) {
      cursor.varint(end);
      const listEnd = cursor.pos + cursor.lo;
      while (cursor.pos < listEnd) elements.push(this.#value(field, listEnd));
      return Object.freeze(elements);
    }
    const tagLength = cursor.pos - tagStart;
    for (;;) {
      elements.push(this.#value(field, end));
      if (!this.#again(tagStart, tagLength, end)) return Object.freeze(elements);
    }
  }

  /** Moves behind the next tag if it equals an earlier one. */
  #again(tagStart: number, tagLength: number, end: number): boolean {
    const { pos } = this.#cursor;
    if (pos >= end) return false;
    for (let i = 0; i < tagLength; i++) {
      if (this.#bytes[pos + i] !== this.#bytes[tagStart + i]) return false;
    }
    this.#cursor.pos = pos + tagLength;
    return true;
  }

  #text(end: number): string {
    const cursor = this.#cursor;
    cursor.varint(end);
    const start = cursor.pos;
    cursor.pos += cursor.lo;
    return cursor.lo === 0 ? "" : this.#bytes.toString("utf8", start, cursor.pos);
  }

  #blob(end: number): Buffer {
    const cursor = this.#cursor;
    cursor.varint(end);
    const start = cursor.pos;
    cursor.pos += cursor.lo;
    return this.#bytes.subarray(start, cursor.pos);
  }

  /** The whole record of an unknown field; its tag, which began at `at`, has just been read. */
  #record(at: number, end: number): Buffer {
    this.#cursor.skip(this.#cursor.lo & 7, end);
    return this.#bytes.subarray(at, this.#cursor.pos);
  }

  /** Struct, ListValue, or a Value that stands alone in an object of its own kind. */
  #plainMessage(kind: NonNullable<MessageType["wellKnown"]>, end: number): object {
    switch (kind) {
      case "struct":
        return this.#struct(end);
      case "list":
        return this.#plainList(end);
      case "value":
        throw new TypeError("the wire contract has no Value outside Struct");
    }
  }

  #struct(end: number): object {
    const cursor = this.#cursor;
    const { pos: start } = cursor;
    const outer = this.#lossy;
    this.#lossy = false;
    const view: View = {};
    let unknown: Buffer[] | undefined;
    while (cursor.pos < end) {
      const at = cursor.pos;
      cursor.varint(end);
      if (cursor.lo !== ENTRY_TAG) {
        unknown ??= [];
        unknown.push(this.#record(at, end));
        continue;
      }
      cursor.varint(end);
      const entryEnd = cursor.pos + cursor.lo;
      cursor.pos++;
      const key = this.#text(entryEnd);
      cursor.pos++;
      cursor.varint(entryEnd);
      const value = this.#plain(cursor.pos + cursor.lo);
      setOwn(view, key, value);
      if (cursor.pos < entryEnd) this.#lossy = true;
      cursor.pos = entryEnd;
    }
    if (unknown !== undefined) copyOnAccess(view, UNKNOWN_FIELDS, Buffer.concat(unknown));
    Object.freeze(view);
    if (this.#lossy) keepSource(view, this.#bytes.subarray(start, end));
    this.#lossy ||= outer;
    return view;
  }

  #plainList(end: number): object {
    const cursor = this.#cursor;
    const { pos: start } = cursor;
    const outer = this.#lossy;
    this.#lossy = false;
    const elements: unknown[] = [];
    while (cursor.pos < end) {
      cursor.varint(end);
      if (cursor.lo !== ELEMENT_TAG) {
        this.#lossy = true;
        cursor.skip(cursor.lo & 7, end);
        continue;
      }
      cursor.varint(end);
      elements.push(this.#plain(cursor.pos + cursor.lo));
    }
    Object.freeze(elements);
    if (this.#lossy) keepSource(elements, this.#bytes.subarray(start, end));
    this.#lossy ||= outer;
    return elements;
  }

  /** A Value; null also when it has no kind. */
  #plain(end: number): unknown {
    const cursor = this.#cursor;
    if (cursor.pos >= end) {
      this.#lossy = true;
      return null;
    }
    const tag = this.#bytes[cursor.pos++] ?? 0;
    const value = this.#plainOf(tag, end);
    if (cursor.pos < end) {
      this.#lossy = true;
      cursor.pos = end;
    }
    return value;
  }

  #plainOf(tag: number, end: number): unknown {
    const cursor = this.#cursor;
    switch (tag) {
      case 0x11:
        cursor.pos += 8;
        return this.#bytes.readDoubleLE(cursor.pos - 8);
      case 0x1a:
        return this.#text(end);
      case 0x20:
        cursor.varint(end);
        return cursor.lo !== 0;
      case 0x2a:
        cursor.varint(end);
        return this.#struct(cursor.pos + cursor.lo);
      case 0x32:
        cursor.varint(end);
        return this.#plainList(cursor.pos + cursor.lo);
      case 0x08:
        cursor.varint(end);
        if (cursor.lo !== 0) this.#lossy = true;
        return null;
      default:
        // No kind that is known: whatever it is, its bytes keep it.
        this.#lossy = true;
        cursor.pos = end;
        return null;
    }
  }
}

const ENTRY_TAG = 0x0a;
const ELEMENT_TAG = 0x0a;
const NO_BYTES = Buffer.alloc(0);

function bigintOf(lo: number, hi: number): bigint {
  return hi === 0 ? BigInt(lo) : BigInt.asIntN(64, (BigInt(hi) << 32n) | BigInt(lo));
}

function copyOnAccess(view: View, key: PropertyKey, blob: Uint8Array): void {
  Object.defineProperty(view, key, { enumerable: true, get: () => new Uint8Array(blob) });
}

const defaults = new Map<MessageType, View>();

/** What a view says of the fields that were not sent, where that is something. */
function defaultsOf(type: MessageType): View {
  let view = defaults.get(type);
  if (view === undefined) {
    view = {};
    for (const field of type.fields) {
      const value = field.repeated ? EMPTY : field.presence ? undefined : defaultOf(field);
      if (value !== undefined) view[field.jsonName] = value;
    }
    defaults.set(type, view);
  }
  return view;
}

function defaultOf(field: Field): unknown {
  switch (field.kind) {
    case "string":
      return "";
    case "bool":
      return false;
    case "double":
    case "int32":
    case "uint32":
      return 0;
    case "int64":
      return 0n;
    case "enum":
      return field.enum.byNumber.get(0) ?? 0;
    case "bytes":
    case "message":
    case "map":
      return undefined;
  }
}

const bytesFields = new Map<MessageType, readonly Field[]>();

function bytesFieldsOf(type: MessageType): readonly Field[] {
  let fields = bytesFields.get(type);
  if (fields === undefined) {
    fields = type.fields.filter((field) => field.kind === "bytes" && !field.repeated);
    bytesFields.set(type, fields);
  }
  return fields;
}
