/** Payloads and configurations on their way from one ledger to another: whole, or not at all. */
import { digest as digestOf } from "../payload/digest.js";
import type { Blob, EventStore } from "../store/port.js";
import type { BlobReference } from "../store/record/blob-references.js";

/** What the ledger that is read could not provide. */
export type Lacking = { missing: number; damaged: number };

/** The bytes if they are what the digest says; else null, and counted. */
export async function wholeBlob(store: EventStore, reference: BlobReference, lacking: Lacking): Promise<Blob | null> {
  const { domain, digest } = reference;
  const read = await store.readBlob(digest);
  if (read.kind === "found" && digestOf(domain, read.bytes) === digest) return { digest, bytes: read.bytes };
  if (read.kind === "missing") lacking.missing++;
  else lacking.damaged++;
  return null;
}
