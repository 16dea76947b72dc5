/** The protobuf wire format, below any schema: reading positions, writing back to front, checking UTF-8. */

import { isUtf8 } from "node:buffer";
import { HookledgerError } from "../errors.js";

export const MAX_PAYLOAD_BYTES = 64 * 1024 * 1024;
/** Messages inside each other, the outermost counted as one. Map entries are no messages. */
export const MAX_MESSAGE_DEPTH = 100;

export const VARINT = 0;
const FIXED64 = 1;
export const LENGTH = 2;
const FIXED32 = 5;

/** A place in a buffer that moves on. Nothing here throws: `false` means malformed, and `pos` is then meaningless. */
export class Cursor {
  readonly bytes: Uint8Array;
  pos: number;
  /** The last varint: low and high 32 bits, unsigned. */
  lo = 0;
  hi = 0;
  /** Was the last varint as short as it can be? */
  minimal = true;

  constructor(bytes: Uint8Array, pos = 0) {
    this.bytes = bytes;
    this.pos = pos;
  }

  /** Up to ten bytes and 64 bits. */
  varint(end: number): boolean {
    const bytes = this.bytes;
    let pos = this.pos;
    if (pos >= end) return false;
    let byte = bytes[pos++] ?? 0;
    this.hi = 0;
    this.minimal = true;
    if (byte < 0x80) {
      this.lo = byte;
      this.pos = pos;
      return true;
    }
    let lo = byte & 0x7f;
    let shift = 7;
    for (; shift < 28; shift += 7) {
      if (pos >= end) return false;
      byte = bytes[pos++] ?? 0;
      lo |= (byte & 0x7f) << shift;
      if (byte < 0x80) {
        this.lo = lo >>> 0;
        this.minimal = byte !== 0;
        this.pos = pos;
        return true;
      }
    }
    return this.#longVarint(pos, end, lo);
  }

  /** From the fifth byte on, which lies across the two halves. */
  #longVarint(from: number, end: number, low: number): boolean {
    let pos = from;
    let lo = low;
    let hi = 0;
    for (let shift = 28; shift < 70; shift += 7) {
      if (pos >= end) return false;
      const byte = this.bytes[pos++] ?? 0;
      if (shift === 28) {
        lo |= (byte & 0x0f) << 28;
        hi = (byte & 0x7f) >>> 4;
      } else if (shift < 63) {
        hi |= (byte & 0x7f) << (shift - 32);
      } else {
        if (byte > 1) return false;
        hi |= byte << 31;
      }
      if (byte < 0x80) {
        this.lo = lo >>> 0;
        this.hi = hi >>> 0;
        this.minimal = byte !== 0;
        this.pos = pos;
        return true;
      }
    }
    return false;
  }

  /** A tag, left in `lo`: a field number from 1 to 2^29 - 1 and a wire type. */
  tag(end: number): boolean {
    return this.varint(end) && this.hi === 0 && this.lo >= 8;
  }

  /** A length and room for that many bytes; the length is left in `lo`. */
  length(end: number): boolean {
    return this.varint(end) && this.hi === 0 && this.lo <= end - this.pos;
  }

  /** Moves past a value of a wire type, groups being none; `minimal` then speaks of the varint read, if any. */
  skip(wire: number, end: number): boolean {
    switch (wire) {
      case VARINT:
        return this.varint(end);
      case LENGTH:
        if (!this.length(end)) return false;
        this.pos += this.lo;
        return true;
      case FIXED64:
      case FIXED32:
        this.minimal = true;
        this.pos += wire === FIXED64 ? 8 : 4;
        return this.pos <= end;
      default:
        return false;
    }
  }
}

/** Short ASCII is checked here; a native call costs more than it saves. */
const SHORT = 48;

export function isUtf8Range(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start > SHORT) return isUtf8(bytes.subarray(start, end));
  for (let i = start; i < end; i++) {
    if ((bytes[i] ?? 0) >= 0x80) return isUtf8(bytes.subarray(start, end));
  }
  return true;
}

/** Are the double's 8 bytes a NaN other than the canonical one (quiet, positive, no payload)? */
export function isOddNaN(bytes: Uint8Array, pos: number): boolean {
  const b6 = bytes[pos + 6] ?? 0;
  const b7 = bytes[pos + 7] ?? 0;
  if ((b7 & 0x7f) !== 0x7f || b6 < 0xf0) return false;
  const fraction = anyBits(bytes, pos, pos + 6);
  if (b7 === 0x7f && b6 === 0xf8) return fraction;
  return fraction || b6 !== 0xf0;
}

export function anyBits(bytes: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) {
    if (bytes[i] !== 0) return true;
  }
  return false;
}

/** Orders two ranges of a buffer by their bytes: negative, zero, positive. */
export function compareRanges(bytes: Uint8Array, aStart: number, aEnd: number, bStart: number, bEnd: number): number {
  const shorter = Math.min(aEnd - aStart, bEnd - bStart);
  for (let i = 0; i < shorter; i++) {
    const difference = (bytes[aStart + i] ?? 0) - (bytes[bStart + i] ?? 0);
    if (difference !== 0) return difference;
  }
  return aEnd - aStart - (bEnd - bStart);
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a === b || (a.length === b.length && Buffer.compare(a, b) === 0);
}

/**
 * Writes back to front, so that the length of a message is known when it is written, in one pass and without copying.
 * Whatever is put first ends up last. Throws HL_LIMIT_PAYLOAD when the whole grows beyond `maxBytes`.
 */
export class ReverseWriter {
  #bytes: Buffer;
  #pos: number;
  readonly #maxBytes: number;

  constructor(expectedBytes: number, maxBytes = MAX_PAYLOAD_BYTES) {
    this.#bytes = Buffer.allocUnsafe(Math.max(64, Math.min(expectedBytes, maxBytes)));
    this.#pos = this.#bytes.length;
    this.#maxBytes = maxBytes;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#bytes.length - this.#pos;
  }

  /** Forgets what was written since `length` was this. */
  rewind(length: number): void {
    this.#pos = this.#bytes.length - length;
  }

  finish(): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(this.#pos));
  }

  tag(number: number, wire: number): void {
    this.uint(number * 8 + wire);
  }

  /** A whole number from 0 to 2^32 - 1. */
  uint(value: number): void {
    this.varint(value, 0);
  }

  /** 64 bits as two unsigned halves. */
  varint(lo: number, hi: number): void {
    if (hi === 0 && lo < 0x80) {
      this.#room(1);
      this.#bytes[--this.#pos] = lo;
      return;
    }
    const size = varintSize(lo, hi);
    this.#room(size);
    this.#pos -= size;
    let low = lo;
    let high = hi;
    let at = this.#pos;
    for (let left = size; left > 1; left--) {
      this.#bytes[at++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.#bytes[at] = low;
  }

  int32(value: number): void {
    this.varint(value >>> 0, value < 0 ? 0xffffffff : 0);
  }

  double(value: number): void {
    this.#room(8);
    this.#pos -= 8;
    this.#bytes.writeDoubleLE(value, this.#pos);
    if (Number.isNaN(value)) this.#bytes.set(CANONICAL_NAN, this.#pos);
  }

  raw(bytes: Uint8Array, start: number, end: number): void {
    const size = end - start;
    this.#room(size);
    this.#pos -= size;
    if (size > 24) {
      this.#bytes.set(bytes.subarray(start, end), this.#pos);
      return;
    }
    for (let i = 0; i < size; i++) this.#bytes[this.#pos + i] = bytes[start + i] ?? 0;
  }

  /** Bytes with their length before them. */
  block(bytes: Uint8Array, start: number, end: number): void {
    this.raw(bytes, start, end);
    this.uint(end - start);
  }

  /** A well-formed string as UTF-8, with its length before it. */
  text(value: string): void {
    const size = Buffer.byteLength(value);
    this.#room(size);
    this.#pos -= size;
    this.#bytes.write(value, this.#pos, size, "utf8");
    this.uint(size);
  }

  #room(size: number): void {
    if (this.#pos >= size) return;
    const used = this.length;
    if (used + size > this.#maxBytes) {
      throw new HookledgerError("HL_LIMIT_PAYLOAD", `payload is over ${this.#maxBytes} bytes`);
    }
    const grown = Buffer.allocUnsafe(Math.min(Math.max(used + size, 2 * this.#bytes.length), this.#maxBytes));
    this.#bytes.copy(grown, grown.length - used, this.#pos);
    this.#bytes = grown;
    this.#pos = grown.length - used;
  }
}

const CANONICAL_NAN = Uint8Array.of(0, 0, 0, 0, 0, 0, 0xf8, 0x7f);

function varintSize(lo: number, hi: number): number {
  const bits = hi === 0 ? 32 - Math.clz32(lo) : 64 - Math.clz32(hi);
  return Math.max(1, Math.ceil(bits / 7));
}
