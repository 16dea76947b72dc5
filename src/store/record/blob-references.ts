/** What events refer to that they do not carry, found in their texts without reading the rest of them. */
import type { Digest } from "../../core/events.js";
import { isDigest } from "../../payload/digest.js";
import type { RecordedEvent } from "../port.js";

export type BlobReference = { readonly domain: "payload" | "config"; readonly digest: Digest };

/** As RFC 8785 prints them. Inside a string the quotes would be escaped, and no other object begins with its digest and goes on so. */
const PAYLOAD = '{"digest":"';
const ENCODING = '","encoding":';
const CONFIG = '"configDigest":"';
const DIGEST_LENGTH = 71;

/** What the events refer to and none of `carriers` carries, each once. */
export function blobReferences(
  events: readonly Pick<RecordedEvent, "type" | "data">[],
  carriers: readonly Pick<RecordedEvent, "metadata">[],
): readonly BlobReference[] {
  const found = new Map<Digest, BlobReference>();
  for (const { type, data } of events) {
    if (type !== "started" && type !== "outcome") continue;
    for (let at = data.indexOf(PAYLOAD); at >= 0; at = data.indexOf(PAYLOAD, at + 1)) {
      const digest = digestAt(data, at + PAYLOAD.length);
      if (digest === null || found.has(digest) || !data.startsWith(ENCODING, at + PAYLOAD.length + DIGEST_LENGTH))
        continue;
      const carried = `"${digest}":"`;
      if (!carriers.some(({ metadata }) => metadata.includes(carried)))
        found.set(digest, { domain: "payload", digest });
    }
    const config = type === "started" ? data.indexOf(CONFIG) : -1;
    const digest = config < 0 ? null : digestAt(data, config + CONFIG.length);
    if (digest !== null) found.set(digest, { domain: "config", digest });
  }
  return [...found.values()];
}

function digestAt(data: string, at: number): Digest | null {
  const text = data.slice(at, at + DIGEST_LENGTH);
  return isDigest(text) ? text : null;
}
