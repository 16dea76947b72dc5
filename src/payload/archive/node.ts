/**
 * A node of the digest tree; the manifest at its root is one, too:
 *
 *   0x00, format version 1, varint of the bytes it stands for, and then its parts, in order, until its end:
 *   varint(size × 4 + kind), and for a literal (kind 0) those bytes, for a leaf (1) or a node (2) its 32 bytes of hash.
 */
import { Cursor } from "../wire.js";
import { HASH_BYTES } from "./hash.js";

const MARK = 0x00;
const VERSION = 1;

const KINDS = ["literal", "leaf", "node"] as const;
export type PartKind = (typeof KINDS)[number];

/** `size` counts the payload's bytes that the part stands for; `bytes` are a literal's own, or the hash of what holds them. */
export type Part = { readonly kind: PartKind; readonly size: number; readonly bytes: Uint8Array };

export type Node = { readonly size: number; readonly parts: readonly Part[] };

/** Is it a node of any version? No payload and no configuration begins like one. */
export function isNode(bytes: Uint8Array): boolean {
  return bytes[0] === MARK;
}

/** null: no node of this version. Sizes add up, and no part is empty. */
export function decodeNode(bytes: Uint8Array): Node | null {
  if (!isNode(bytes) || bytes[1] !== VERSION) return null;
  const end = bytes.length;
  const cursor = new Cursor(bytes, 2);
  if (!cursor.varint(end) || cursor.hi !== 0) return null;
  const size = cursor.lo;
  const parts: Part[] = [];
  let sum = 0;
  while (cursor.pos < end) {
    if (!cursor.varint(end) || cursor.hi !== 0) return null;
    const part = { kind: KINDS[cursor.lo & 3], size: cursor.lo >>> 2 };
    if (part.kind === undefined || part.size === 0) return null;
    const length = part.kind === "literal" ? part.size : HASH_BYTES;
    if (length > end - cursor.pos) return null;
    parts.push({ kind: part.kind, size: part.size, bytes: bytes.subarray(cursor.pos, cursor.pos + length) });
    cursor.pos += length;
    sum += part.size;
  }
  return sum === size ? { size, parts } : null;
}

/** The encoded parts of a node that is not closed yet. */
export type Body = { readonly size: number; readonly bytes: Uint8Array };

export function encodeNode(bodies: readonly Body[]): Uint8Array {
  const size = bodies.reduce((sum, body) => sum + body.size, 0);
  return Buffer.concat([Uint8Array.of(MARK, VERSION), varint(size), ...bodies.map(({ bytes }) => bytes)]);
}

/** Header of a part: its kind and size. */
export function encodeHeader(kind: PartKind, size: number): Uint8Array {
  return varint(size * 4 + KINDS.indexOf(kind));
}

function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Uint8Array.from(bytes);
}
