/** Is a stream what its own seals say? Then it can be sealed again, letter for letter, somewhere else. */
import { digest as digestOf } from "../payload/digest.js";
import { eventBytes, MAX_EVENT_BYTES, mostBytes } from "../store/append.js";
import type { EventDraft, RecordedEvent, StreamEvents } from "../store/port.js";
import { decodeEvent } from "../store/record/decode.js";
import { eventIds } from "../store/record/event-id.js";
import { readObject, Undecodable } from "../store/record/fields.js";
import { encodePayloadTexts, metadataOf } from "../store/record/metadata.js";
import { chainAfter } from "../store/seal.js";
import { isUlid } from "../store/ulid.js";

export type Unsealed =
  | { readonly kind: "sound"; readonly drafts: readonly EventDraft[] }
  /** `revision`: of the first event that does not hold. */
  | { readonly kind: "unsound"; readonly revision: number; readonly detail: string };

/**
 * The drafts that the events were sealed from: every event comes out of them again as it is recorded, the payloads that it carries
 * are what their digests say, and the head is the last event's. Whether the dispatch is legal is for `verify` to say.
 */
export function unseal({ stream, head, events }: StreamEvents): Unsealed {
  const dispatchId = stream.slice("hookdispatch-".length);
  if (!isUlid(dispatchId)) return unsound(0, "its name is no dispatch's");
  const idOf = eventIds(dispatchId);
  const drafts: EventDraft[] = [];
  let chain = "";
  for (const event of events) {
    const revision = drafts.length;
    if (event.revision !== revision) return unsound(revision, "the event is missing");
    if (event.id !== idOf(revision)) return unsound(revision, "the event has another id");
    const decoded = decodeEvent(event.type, event.data);
    if (!("event" in decoded)) return unsound(revision, decoded.found);
    const cut = cutSealed(event, decoded.event.type);
    if (cut === null) return unsound(revision, "its metadata is not of this version");
    const { draft } = cut;
    chain = chainAfter(chain, revision, draft);
    if (cut.chain !== chain) return unsound(revision, "the event is not what was sealed");
    const altered = draft.payloads === undefined ? null : alteredPayload(draft.payloads);
    if (altered !== null) return unsound(revision, altered);
    if (mostBytes(draft) > MAX_EVENT_BYTES && eventBytes(draft) > MAX_EVENT_BYTES) {
      return unsound(revision, `the event is over ${MAX_EVENT_BYTES} bytes`);
    }
    drafts.push(draft);
  }
  const last = drafts.length - 1;
  if (head === null || head.revision !== last || head.chain !== chain || last < 0) {
    return unsound(drafts.length, "the stream does not end as its head says");
  }
  const session = metadataOf(events[0])?.session ?? null;
  return head.session === session ? { kind: "sound", drafts } : unsound(0, "its head names another session");
}

function unsound(revision: number, detail: string): Unsealed {
  return { kind: "unsound", revision, detail };
}

/** Metadata as it is printed where no text in it needs escapes: what matches need not be parsed. */
const PLAIN = plainMetadata();

function plainMetadata(): RegExp {
  const text = '"[^"\\\\\\u0000-\\u001f]*"';
  const member = (key: string) => `"${key}":${text},`;
  const optional = (key: string) => `(?:${member(key)})?`;
  const before = `${optional("\\$causationId")}${optional("\\$correlationId")}${member("at")}${member("engineVersion")}`;
  const numbers = '(?:"lagMs":\\d{1,15},)?"offsetNs":\\d{1,15},"schemaVersion":1,';
  return new RegExp(`^\\{${before}${numbers}${optional("traceparent")}${optional("turn")}"writer":${text}\\}$`);
}

const CHAIN = ',"chain":"';
const CHAIN_DIGITS = 64;
const PAYLOADS = '","payloads":';

/** Cut where sealing puts things; put together again, it is the same text. No text inside has these quotes unescaped. */
function cutSealed(
  event: RecordedEvent,
  type: EventDraft["type"],
): { readonly draft: EventDraft; readonly chain: string } | null {
  const { id, data, metadata } = event;
  const at = metadata.indexOf(CHAIN);
  if (at < 0) return null;
  const start = at + CHAIN.length;
  const end = start + CHAIN_DIGITS;
  const draft = { id, type, data, metadata: `${metadata.slice(0, at)}}` };
  if (!PLAIN.test(draft.metadata) && metadataOf(event) === null) return null;
  const chain = metadata.slice(start, end);
  if (metadata.length === end + 2 && metadata.endsWith('"}')) return { draft, chain };
  if (!metadata.startsWith(PAYLOADS, end) || !metadata.endsWith("}}")) return null;
  return { draft: { ...draft, payloads: metadata.slice(end + PAYLOADS.length, -1) }, chain };
}

/** Carried payloads stand outside the chain; the digest that each is named by stands inside. */
function alteredPayload(text: string): string | null {
  const payloads = readPayloads(text);
  if (payloads === null || encodePayloadTexts(payloads) !== text) return "it carries payloads in another spelling";
  for (const [digest, base64] of payloads) {
    const bytes = Buffer.from(base64, "base64");
    if (digestOf("payload", bytes) !== digest || bytes.toString("base64") !== base64) {
      return `the event carries other bytes for ${digest.slice(0, 80)}`;
    }
  }
  return null;
}

function readPayloads(text: string): ReadonlyMap<string, string> | null {
  try {
    return readObject(JSON.parse(text), "payloads", (fields) => fields.texts());
  } catch (error) {
    if (error instanceof Undecodable || error instanceof SyntaxError) return null;
    throw error;
  }
}
