import { createHash } from "node:crypto";

/** Bytes of a chunk's hash. */
export const HASH_BYTES = 32;

/** SHA-256 over "hookledger/chunk/v1\0" and the bytes. */
export function chunkHash(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(DOMAIN).update(bytes).digest();
}

const DOMAIN = Buffer.from("hookledger/chunk/v1\0");
