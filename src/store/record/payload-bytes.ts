/** The bytes behind a digest, from the events that carry them or from the store. */
import type { Digest } from "../../core/events.js";
import { digest as digestOf } from "../../payload/digest.js";
import type { EventStore, RecordedEvent } from "../port.js";
import { metadataOf } from "./metadata.js";

type PayloadBytes =
  | { readonly kind: "found"; readonly bytes: Uint8Array }
  /** Nobody has them. */
  | { readonly kind: "missing" }
  /** What is kept under the digest has another one. */
  | { readonly kind: "altered"; readonly found: Digest };

export async function payloadBytes(
  store: EventStore,
  events: readonly RecordedEvent[],
  digest: Digest,
): Promise<PayloadBytes> {
  const inline = inlineBytes(events, digest);
  const bytes = inline ?? (await store.readBlob(digest));
  if (bytes === null) return { kind: "missing" };
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
