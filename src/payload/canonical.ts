/**
 * The one encoding of a message that stands for all of its encodings.
 *
 * - Fields ascend by number, known and unknown alike; unknown fields of one number keep their order.
 * - Map entries ascend by the UTF-8 bytes of their key, the last of equal keys stays, key and value are always written.
 * - The default of a field without presence is absent; an explicit zero of an `optional` or oneof member stays.
 * - Lists of numbers are packed; a singular message that occurs more than once is merged; of a oneof the last member stays.
 * - Varints are as short as can be; every NaN is the same NaN; -0 is not 0.
 *
 * Equal canonical bytes mean equal messages, including the fields that this build does not know.
 */

import { HookledgerError } from "../errors.js";
import { isCanonical } from "./canonical-check.js";
import type { Field, MessageType } from "./descriptor.js";
import { anyBits, Cursor, isOddNaN, isUtf8Range, LENGTH, MAX_MESSAGE_DEPTH, ReverseWriter, VARINT } from "./wire.js";

/**
 * The same object when it is canonical already. Throws HL_PAYLOAD on what is no encoding of the type (truncated, invalid
 * UTF-8, a group, an enum above 2^31 - 1, another wire type than the field's) and HL_LIMIT_DEPTH on nesting above 100
 * messages; the message names the byte and the field, never content.
 */
export function canonicalize(type: MessageType, bytes: Uint8Array): Uint8Array {
  if (isCanonical(type, bytes)) return bytes;
  return new Canonicalizer(bytes).run(type);
}

/** One value on the wire: its bytes, without tag and length. `lo` and `hi` are the halves of a varint. */
type Piece = {
  readonly number: number;
  readonly wire: number;
  readonly start: number;
  readonly end: number;
  readonly lo: number;
  readonly hi: number;
};
type MessageField = Field & { readonly message: MessageType };
type Parts = {
  /** By field index. */
  readonly known: (Piece[] | undefined)[];
  /** Ascending by number. */
  readonly unknown: readonly Piece[];
};

class Canonicalizer {
  readonly #bytes: Uint8Array;
  readonly #cursor: Cursor;
  readonly #out: ReverseWriter;
  readonly #path: string[] = [];

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#cursor = new Cursor(bytes);
    this.#out = new ReverseWriter(bytes.length + 16);
  }

  run(type: MessageType): Uint8Array {
    const whole = { number: 0, wire: LENGTH, start: 0, end: this.#bytes.length, lo: 0, hi: 0 };
    this.#message(type, [whole], 1);
    return this.#out.finish();
  }

  /** One message, which may be scattered over several pieces. */
  #message(type: MessageType, pieces: readonly Piece[], level: number): void {
    if (level > MAX_MESSAGE_DEPTH) {
      throw new HookledgerError("HL_LIMIT_DEPTH", `${this.#where()} nests more than ${MAX_MESSAGE_DEPTH} messages`);
    }
    const parts = this.#take(type, pieces, level);
    let waiting = parts.unknown.length;
    for (let index = type.fields.length - 1; index >= 0; index--) {
      const field = type.fields[index];
      const values = parts.known[index];
      if (field === undefined || values === undefined) continue;
      waiting = this.#writeUnknown(parts.unknown, waiting, field.number);
      this.#writeField(field, values, level);
    }
    this.#writeUnknown(parts.unknown, waiting, 0);
  }

  /** Sorts the records of a message by field. */
  #take(type: MessageType, pieces: readonly Piece[], level: number): Parts {
    const known: (Piece[] | undefined)[] = new Array(type.fields.length).fill(undefined);
    const unknown: Piece[] = [];
    const cursor = this.#cursor;
    let sorted = true;
    for (const { start, end } of pieces) {
      cursor.pos = start;
      while (cursor.pos < end) {
        const at = cursor.pos;
        if (!cursor.tag(end)) this.#fail("is no field tag", at);
        const number = cursor.lo >>> 3;
        const wire = cursor.lo & 7;
        const field = number < type.byNumber.length ? type.byNumber[number] : undefined;
        if (field === undefined) {
          sorted &&= (unknown.at(-1)?.number ?? 0) <= number;
          unknown.push(this.#piece(number, wire, end, `field ${number}`));
          continue;
        }
        const values = known[field.index] ?? this.#firstOf(field, type, known, level);
        this.#takeField(field, wire, end, values);
      }
    }
    if (!sorted) unknown.sort((a, b) => a.number - b.number);
    return { known, unknown };
  }

  #takeField(field: Field, wire: number, end: number, values: Piece[]): void {
    const at = this.#cursor.pos;
    const packed = field.repeated && field.packable && wire === LENGTH;
    if (wire !== field.wire && !packed) this.#fail(`has wire type ${wire}`, at, field.jsonName);
    const piece = this.#piece(field.number, wire, end, field.jsonName);
    if (!packed) {
      this.#judge(field, piece);
      values.push(piece);
      return;
    }
    this.#cursor.pos = piece.start;
    while (this.#cursor.pos < piece.end) {
      const element = this.#piece(field.number, field.wire, piece.end, field.jsonName);
      this.#judge(field, element);
      values.push(element);
    }
  }

  #piece(number: number, wire: number, within: number, name: string): Piece {
    const cursor = this.#cursor;
    const at = cursor.pos;
    if (wire === 3 || wire === 4) this.#fail("is a group", at, name);
    if (!cursor.skip(wire, within)) this.#fail("is truncated or malformed", at, name);
    const end = cursor.pos;
    const start = wire === LENGTH ? end - cursor.lo : at;
    return { number, wire, start, end, lo: cursor.lo, hi: cursor.hi };
  }

  #judge(field: Field, piece: Piece): void {
    if (field.kind === "string" && !isUtf8Range(this.#bytes, piece.start, piece.end)) {
      this.#fail("is not valid UTF-8", piece.start, field.jsonName);
    }
    if (field.kind === "enum" && (piece.hi !== 0 || piece.lo > 0x7fffffff)) {
      this.#fail("is no enum number from 0 to 2^31 - 1", piece.start, field.jsonName);
    }
  }

  /** Where a field's values go from now on; of its oneof it alone stays. */
  #firstOf(field: Field, type: MessageType, known: (Piece[] | undefined)[], level: number): Piece[] {
    const values: Piece[] = [];
    known[field.index] = values;
    if (field.oneof < 0) return values;
    for (const other of type.fields) {
      const given = known[other.index];
      if (other === field || other.oneof !== field.oneof || given === undefined) continue;
      known[other.index] = undefined;
      if ("message" in other) this.#discard(other, given, level);
    }
    return values;
  }

  /** What gives way is read to its end like anything else, so that a message is valid or not whatever wins. */
  #discard(field: MessageField, pieces: readonly Piece[], level: number): void {
    const { pos } = this.#cursor;
    const { length } = this.#out;
    this.#path.push(field.jsonName);
    this.#message(field.message, pieces, level + 1);
    this.#path.pop();
    this.#out.rewind(length);
    this.#cursor.pos = pos;
  }

  /** Writes those above `number`, last first; returns how many still wait. */
  #writeUnknown(unknown: readonly Piece[], count: number, number: number): number {
    let left = count;
    for (; left > 0; left--) {
      const piece = unknown[left - 1];
      if (piece === undefined || piece.number < number) break;
      if (piece.wire === VARINT) this.#out.varint(piece.lo, piece.hi);
      else if (piece.wire === LENGTH) this.#out.block(this.#bytes, piece.start, piece.end);
      else this.#out.raw(this.#bytes, piece.start, piece.end);
      this.#out.tag(piece.number, piece.wire);
    }
    return left;
  }

  #writeField(field: Field, pieces: readonly Piece[], level: number): void {
    switch (field.kind) {
      case "map":
        this.#writeMap(field, pieces, level);
        return;
      case "message":
        if (!field.repeated) this.#writeMessage(field, pieces, level, field.jsonName);
        else
          for (const [i, piece] of [...pieces.entries()].reverse())
            this.#writeMessage(field, [piece], level, `${field.jsonName}[${i}]`);
        return;
      case "string":
      case "bytes":
      case "double":
      case "int32":
      case "int64":
      case "uint32":
      case "bool":
      case "enum":
        if (field.repeated && field.packable) this.#writePacked(field, pieces);
        else
          for (const piece of field.repeated ? pieces.toReversed() : pieces.slice(-1)) this.#writeScalar(field, piece);
        return;
    }
  }

  #writeMessage(field: MessageField, pieces: readonly Piece[], level: number, place: string): void {
    const before = this.#out.length;
    this.#path.push(place);
    this.#message(field.message, pieces, level + 1);
    this.#path.pop();
    this.#out.uint(this.#out.length - before);
    this.#out.tag(field.number, LENGTH);
  }

  #writeMap(field: MessageField, pieces: readonly Piece[], level: number): void {
    const [keyField, valueField] = field.message.fields;
    if (keyField === undefined || valueField === undefined || !("message" in valueField)) return;
    const entries = new Map<string, Parts>();
    for (const piece of pieces) {
      const parts = this.#take(field.message, [piece], level);
      const key = parts.known[keyField.index]?.at(-1) ?? EMPTY;
      // One character a byte: such strings compare as their bytes do.
      const name = latin1(this.#bytes, key.start, key.end);
      const earlier = entries.get(name)?.known[valueField.index];
      if (earlier !== undefined) this.#discard(valueField, earlier, level);
      entries.set(name, parts);
    }
    for (const [, parts] of [...entries].sort(([a], [b]) => (a < b ? 1 : -1))) {
      const before = this.#out.length;
      const key = parts.known[keyField.index]?.at(-1) ?? EMPTY;
      this.#writeUnknown(parts.unknown, parts.unknown.length, 0);
      this.#writeMessage(valueField, parts.known[valueField.index] ?? [], level, `${field.jsonName}{}`);
      this.#out.block(this.#bytes, key.start, key.end);
      this.#out.tag(keyField.number, LENGTH);
      this.#out.uint(this.#out.length - before);
      this.#out.tag(field.number, LENGTH);
    }
  }

  #writePacked(field: Field, elements: readonly Piece[]): void {
    if (elements.length === 0) return;
    const before = this.#out.length;
    for (const element of elements.toReversed()) this.#writeBareScalar(field, element);
    this.#out.uint(this.#out.length - before);
    this.#out.tag(field.number, LENGTH);
  }

  #writeScalar(field: Field, piece: Piece): void {
    const before = this.#out.length;
    const isDefault = this.#writeBareScalar(field, piece);
    if (isDefault && !field.presence && !field.repeated) this.#out.rewind(before);
    else this.#out.tag(field.number, field.wire);
  }

  /** Returns whether it was the kind's default. */
  #writeBareScalar(field: Field, { start, end, lo, hi }: Piece): boolean {
    switch (field.kind) {
      case "string":
      case "bytes":
        this.#out.block(this.#bytes, start, end);
        return start === end;
      case "double":
        if (isOddNaN(this.#bytes, start)) this.#out.double(Number.NaN);
        else this.#out.raw(this.#bytes, start, end);
        return !anyBits(this.#bytes, start, end);
      case "int32":
        this.#out.int32(lo | 0);
        return lo === 0;
      case "uint32":
        this.#out.uint(lo);
        return lo === 0;
      case "bool":
        this.#out.uint(lo === 0 && hi === 0 ? 0 : 1);
        return lo === 0 && hi === 0;
      case "int64":
      case "enum":
        this.#out.varint(lo, hi);
        return lo === 0 && hi === 0;
      case "map":
      case "message":
        throw new TypeError(`${field.name} is no scalar`);
    }
  }

  #where(): string {
    return this.#path.length === 0 ? "payload" : this.#path.join(".");
  }

  #fail(what: string, at: number, name?: string): never {
    const field = name === undefined ? this.#where() : [...this.#path, name].join(".");
    throw new HookledgerError("HL_PAYLOAD", `${field} ${what} at byte ${at}`);
  }
}

const EMPTY = { start: 0, end: 0 };

function latin1(bytes: Uint8Array, start: number, end: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("latin1");
}
