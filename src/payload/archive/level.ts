/**
 * One level of the digest tree, cut into nodes. Where a node ends depends on its last part alone, so that an edit rewrites the node
 * that holds it and, with little probability, the next one.
 */
import { type Body, encodeHeader, type PartKind } from "./node.js";

/** Bytes of parts before which no node ends: each holds four references or more, so every level is shorter than the one below. */
const MIN_NODE = 128;
/** Bytes of parts that a node has beyond that, on the average. Larger nodes cost each turn of a session more, smaller ones more rows. */
const USUAL_NODE = 64;
/** Bytes of parts from which on a node ends. */
const MAX_NODE = 512;

export class Level {
  readonly #closed: Body[] = [];
  #parts: Uint8Array[] = [];
  #length = 0;
  #size = 0;
  /** Adjacent literals are one part. */
  #literal: Uint8Array[] = [];
  #literalSize = 0;

  /** Bytes that stay in the node. */
  literal(bytes: Uint8Array): void {
    this.#literal.push(bytes);
    this.#literalSize += bytes.length;
    this.#added(bytes.length, bytes.length, mix(bytes));
  }

  /** What stands under a hash. */
  reference(kind: Exclude<PartKind, "literal">, size: number, hash: Uint8Array): void {
    this.#endLiteral();
    const header = encodeHeader(kind, size);
    this.#parts.push(header, hash);
    this.#added(header.length + hash.length, size, new DataView(hash.buffer, hash.byteOffset).getUint32(0));
  }

  end(): readonly Body[] {
    this.#close();
    return this.#closed;
  }

  /** Every byte of a node is as likely to be its last. */
  #added(length: number, size: number, random: number): void {
    this.#length += length;
    this.#size += size;
    const ends = this.#length >= MIN_NODE && random < (length / USUAL_NODE) * 2 ** 32;
    if (ends || this.#length >= MAX_NODE) this.#close();
  }

  #endLiteral(): void {
    if (this.#literalSize === 0) return;
    this.#parts.push(encodeHeader("literal", this.#literalSize), ...this.#literal);
    this.#literal = [];
    this.#literalSize = 0;
  }

  #close(): void {
    this.#endLiteral();
    if (this.#size === 0) return;
    this.#closed.push({ size: this.#size, bytes: Buffer.concat(this.#parts) });
    this.#parts = [];
    this.#length = 0;
    this.#size = 0;
  }
}

/** 32 bits of all the bytes: FNV-1a, and the last step of MurmurHash3 for the high bits. */
function mix(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
