/** Encodings by hand, one record at a time, so that tests say the bytes they mean. */

export type Bytes = Uint8Array;

export function bytes(...parts: readonly (Bytes | readonly number[])[]): Bytes {
  return new Uint8Array(Buffer.concat(parts.map((part) => Buffer.from(part))));
}

/** `padding` more bytes than the shortest form takes. */
export function varint(value: number | bigint, padding = 0): Bytes {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest > 0x7fn) {
    out.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  out.push(Number(rest));
  for (let i = 0; i < padding; i++) {
    out[out.length - 1]! |= 0x80;
    out.push(0);
  }
  return new Uint8Array(out);
}

export function tag(number: number, wire: number, padding = 0): Bytes {
  return varint(BigInt(number) * 8n + BigInt(wire), padding);
}

export function int(number: number, value: number | bigint): Bytes {
  return bytes(tag(number, 0), varint(value));
}

export function double(number: number, value: number): Bytes {
  const eight = Buffer.alloc(8);
  eight.writeDoubleLE(value);
  return bytes(tag(number, 1), eight);
}

export function fixed32(number: number, value: number): Bytes {
  const four = Buffer.alloc(4);
  four.writeUInt32LE(value);
  return bytes(tag(number, 5), four);
}

/** A length-delimited record: a string, or records inside. */
export function block(number: number, ...content: readonly (string | Bytes)[]): Bytes {
  const inner = bytes(...content.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  return bytes(tag(number, 2), varint(inner.length), inner);
}

/** An entry of a Struct, with the records of its Value. */
export function entry(key: string, ...value: readonly Bytes[]): Bytes {
  return block(1, block(1, key), block(2, ...value));
}

export function hex(value: Bytes): string {
  return Buffer.from(value).toString("hex");
}
