/** How a payload is cut: where its fields end, so that what two payloads have in common is kept once. */
import { Cursor, LENGTH } from "../wire.js";
import { chunkHash } from "./hash.js";
import { Level } from "./level.js";
import { type Body, encodeNode, isNode } from "./node.js";
import { MAX_PIECE, pieceEnd } from "./pieces.js";
import type { Chunk, Cut } from "./types.js";

/** Bytes up to which a payload is its own root. */
const WHOLE = 4 * 1024;
/** Bytes below which a reference costs more than it saves. */
const MIN_LEAF = 96;
/** Bytes of parts in a manifest. */
const MAX_ROOT = 400;

/**
 * The same bytes are always cut alike. Each length-delimited field of the payload's variant is a chunk (one above 64 KiB
 * several), and so are the pieces of bytes that are no such message. Chunks are views of `bytes`.
 */
export function cut(bytes: Uint8Array): Cut {
  if (bytes.length <= WHOLE && !isNode(bytes)) return { root: bytes, chunks: [] };
  const chunks = new Chunks();
  let level = new Leaves(bytes, chunks).bodies();
  while (lengthOf(level) > MAX_ROOT) level = parents(level, chunks);
  return { root: encodeNode(level), chunks: chunks.all };
}

function lengthOf(level: readonly Body[]): number {
  return level.reduce((sum, { bytes }) => sum + bytes.length, 0);
}

function parents(children: readonly Body[], chunks: Chunks): readonly Body[] {
  const level = new Level();
  for (const child of children) level.reference("node", child.size, chunks.add(encodeNode([child])));
  return level.end();
}

/** Each once, in the order of their first use. */
class Chunks {
  readonly all: Chunk[] = [];
  readonly #hashes = new Set<string>();

  add(bytes: Uint8Array): Uint8Array {
    const raw = chunkHash(bytes);
    const hash = raw.toString("hex");
    if (this.#hashes.has(hash)) return raw;
    this.#hashes.add(hash);
    this.all.push({ hash, bytes });
    return raw;
  }
}

/** The lowest level: a payload in literals and leaves. */
class Leaves {
  readonly #bytes: Uint8Array;
  readonly #chunks: Chunks;
  readonly #level = new Level();

  constructor(bytes: Uint8Array, chunks: Chunks) {
    this.#bytes = bytes;
    this.#chunks = chunks;
  }

  bodies(): readonly Body[] {
    const end = this.#bytes.length;
    const cursor = new Cursor(this.#bytes);
    if (cursor.tag(end) && (cursor.lo & 7) === LENGTH && cursor.length(end) && cursor.lo === end - cursor.pos) {
      this.#part(0, cursor.pos);
      this.#fields(cursor);
    } else {
      this.#pieces(0, end);
    }
    return this.#level.end();
  }

  #fields(cursor: Cursor): void {
    const end = this.#bytes.length;
    while (cursor.pos < end) {
      const start = cursor.pos;
      if (!cursor.tag(end) || !cursor.skip(cursor.lo & 7, end)) {
        this.#pieces(start, end);
        return;
      }
      if (cursor.pos - start > MAX_PIECE) this.#pieces(start, cursor.pos);
      else this.#part(start, cursor.pos);
    }
  }

  #pieces(start: number, end: number): void {
    for (let from = start; from < end; ) {
      const to = pieceEnd(this.#bytes, from, end);
      this.#part(from, to);
      from = to;
    }
  }

  #part(start: number, end: number): void {
    const bytes = this.#bytes.subarray(start, end);
    if (bytes.length < MIN_LEAF) this.#level.literal(bytes);
    else this.#level.reference("leaf", bytes.length, this.#chunks.add(bytes));
  }
}
