/** What a timeline reads beside the events: the recorded payloads as JSON, and the archived configuration. */
import type { Digest, Ref } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { Json } from "../payload/canonical-json.js";
import { digest as digestOf } from "../payload/digest.js";
import type { EventStore, StreamEvents } from "../store/port.js";
import { payloadBytes } from "../store/record/payload-bytes.js";
import { jsonOfText, payloadJson } from "./payload-json.js";
import { archivedRules } from "./timeline-config.js";
import type { ArchivedConfig } from "./timeline-plan.js";
import { type LegibleRecord, payloadRefs } from "./timeline-record.js";

export type PayloadContent =
  | { readonly kind: "found"; readonly json: Json }
  /** Nobody has the bytes: never stored, or erased. */
  | { readonly kind: "missing" }
  /** What is kept under the digest has another one, or is not whole: says which, or what. */
  | { readonly kind: "altered"; readonly found: string }
  /** Beyond what one timeline reads. */
  | { readonly kind: "large" }
  | { readonly kind: "unreadable"; readonly why: string };

export type Sources = {
  readonly payloads: ReadonlyMap<Digest, PayloadContent>;
  readonly config: ArchivedConfig;
};

/** bytes of payload that one timeline reads, all versions together */
const MAX_READ_BYTES = 16 * 1024 * 1024;

/** Throws what reading the store throws. */
export async function readSources(
  store: EventStore,
  { events }: StreamEvents,
  record: LegibleRecord,
  maxBytes = MAX_READ_BYTES,
): Promise<Sources> {
  const payloads = new Map<Digest, PayloadContent>();
  if (record.begun === null) return { payloads, config: { kind: "missing" } };
  let left = maxBytes;
  for (const { ref } of payloadRefs(record.begun.events)) {
    const found = ref.size > left ? null : await payloadBytes(store, events, ref.digest);
    if (found?.kind === "found") left -= found.bytes.byteLength;
    payloads.set(ref.digest, found === null ? { kind: "large" } : contentOf(ref, found));
  }
  return { payloads, config: await readConfig(store, record.begun.started.configDigest) };
}

function contentOf({ encoding }: Ref, found: Awaited<ReturnType<typeof payloadBytes>>): PayloadContent {
  switch (found.kind) {
    case "missing":
      return { kind: "missing" };
    case "altered":
      return { kind: "altered", found: found.found };
    case "found":
      return jsonContent(found.bytes, encoding);
  }
}

function jsonContent(bytes: Uint8Array, encoding: Ref["encoding"]): PayloadContent {
  try {
    return { kind: "found", json: payloadJson(bytes, encoding) };
  } catch (error) {
    if (error instanceof HookledgerError) return { kind: "unreadable", why: error.message };
    throw error;
  }
}

async function readConfig(store: EventStore, digest: Digest): Promise<ArchivedConfig> {
  const read = await store.readBlob(digest);
  if (read.kind === "missing") return read;
  if (read.kind === "damaged" || digestOf("config", read.bytes) !== digest) return { kind: "altered" };
  const { bytes } = read;
  try {
    return { kind: "found", rules: archivedRules(jsonOfText(bytes)) };
  } catch (error) {
    if (error instanceof HookledgerError) return { kind: "unreadable" };
    throw error;
  }
}
