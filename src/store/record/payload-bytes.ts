/** The bytes behind a digest, from the events that carry them or from the store. */
import type { Digest } from "../../core/events.js";
import { digest as digestOf } from "../../payload/digest.js";
import type { EventStore, RecordedEvent } from "../port.js";
import { metadataOf } from "./metadata.js";

type PayloadBytes =
  | { readonly kind: "found"; readonly bytes: Uint8Array }
  /** Nobody has them. */
  | { readonly kind: "missing" }
  /** What is kept under the digest has another one, or is not whole. */
  | { readonly kind: "altered"; readonly found: string };

export async function payloadBytes(
  store: EventStore,
  events: readonly RecordedEvent[],
  digest: Digest,
): Promise<PayloadBytes> {
  const inline = inlineBytes(events, digest);
  const read = inline === null ? await store.readBlob(digest) : { kind: "found" as const, bytes: inline };
  if (read.kind === "missing") return read;
  if (read.kind === "damaged") return { kind: "altered", found: read.detail };
  const { bytes } = read;
  const found = digestOf("payload", bytes);
  return found === digest ? { kind: "found", bytes } : { kind: "altered", found };
}

function inlineBytes(events: readonly RecordedEvent[], digest: Digest): Uint8Array | null {
  for (const event of events) {
    if (!event.metadata.includes(digest)) continue;
    const base64 = metadataOf(event)?.payloads.get(digest);
    if (base64 !== undefined) return Buffer.from(base64, "base64");
  }
  return null;
}
