/** Payloads for the archive's tests, written byte by byte, and chunks kept in a map. */
import { createHash } from "node:crypto";
import { assemble } from "#src/payload/archive/assemble.js";
import { cut } from "#src/payload/archive/cut.js";
import type { BlobRead, Cut } from "#src/payload/archive/types.js";

export function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

export function field(number: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
}

/** A pre-model-call payload of these messages. */
export function conversation(messages: readonly Uint8Array[]): Buffer {
  const model = field(2, Buffer.concat([field(1, Buffer.from("acme")), field(2, Buffer.from("model-1"))]));
  return field(2, Buffer.concat([...messages.map((message) => field(1, message)), model]));
}

/** Bytes that do not repeat, the same for the same seed. */
export function noise(seed: string, length: number): Buffer {
  const blocks = Array.from({ length: Math.ceil(length / 32) }, (_, i) =>
    createHash("sha256").update(`${seed}/${i}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, length);
}

/** A message with that many bytes of content. */
export function message(seed: string, length: number): Buffer {
  return Buffer.concat([Buffer.from([8, 1]), field(2, field(1, field(1, noise(seed, length))))]);
}

export function keptOf({ chunks }: Cut): Map<string, Uint8Array> {
  return new Map(chunks.map(({ hash, bytes }) => [hash, bytes]));
}

export async function restored({ root, ...rest }: Cut): Promise<BlobRead> {
  const kept = keptOf({ root, ...rest });
  return assemble(root, async () => kept);
}

/** Bytes of the chunks of `next` that `previous` does not have, and of its root. */
export function newBytes(previous: Uint8Array, next: Uint8Array): number {
  const had = keptOf(cut(previous));
  const { root, chunks } = cut(next);
  return chunks.reduce((sum, { hash, bytes }) => sum + (had.has(hash) ? 0 : bytes.length), root.length);
}
