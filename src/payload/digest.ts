import { createHash } from "node:crypto";
import type { Digest } from "../core/events.js";

/** What a digest speaks of; the prefix keeps equal bytes of different kinds apart. */
export type DigestDomain = "payload" | "list" | "config" | "chain";

/** Digest of `bytes` (a string counts as UTF-8) in a domain: `sha256:<64 hex digits>`. */
export function digest(domain: DigestDomain, bytes: Uint8Array | string): Digest {
  return `sha256:${createHash("sha256").update(`hookledger/${domain}/v1\0`).update(bytes).digest("hex")}`;
}

const DIGEST = /^sha256:[0-9a-f]{64}$/;

export function isDigest(text: string): text is Digest {
  return DIGEST.test(text);
}
