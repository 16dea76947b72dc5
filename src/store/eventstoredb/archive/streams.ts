/**
 * Payloads on the server: a stream for each root and each chunk, whose newest event of content counts. A collection marks what
 * nothing refers to as condemned; who needs it again writes its content again behind the mark, at the exact revision. That is right
 * whether or not the stream was deleted meanwhile, and what is written behind a mark no collection deletes by that mark.
 */
import { randomUUID } from "node:crypto";
import type { Digest } from "../../../core/events.js";
import type { ServerDraft, ServerEvent } from "../server-log.js";

export const PAYLOAD = "hookpayload-";
export const CHUNK = "hookchunk-";

const SCHEME = "sha256:";
const CONTENT = "content";
const CONDEMNED = "condemned";

export function payloadStream(digest: Digest): string {
  return PAYLOAD + digest.slice(SCHEME.length);
}

export function chunkStream(hash: string): string {
  return CHUNK + hash;
}

/** A new id each time: an append that is repeated must not pass for one that was deleted since. */
export function content(bytes: Uint8Array): ServerDraft {
  return { id: randomUUID(), type: CONTENT, content: { kind: "bytes", data: bytes } };
}

/** `wall`: ms since 1970. */
export function condemnation(wall: number): ServerDraft {
  const at = new Date(wall).toISOString();
  return { id: randomUUID(), type: CONDEMNED, content: { kind: "json", data: { at }, metadata: {} } };
}

export function contentOf({ type, content }: ServerEvent): Uint8Array | null {
  return type === CONTENT && content.kind === "bytes" ? content.data : null;
}

/** Whatever else it says. */
export function isCondemnation({ type }: ServerEvent): boolean {
  return type === CONDEMNED;
}

/** ms since 1970; null for what is no condemnation of ours. */
export function condemnedAt(event: ServerEvent): number | null {
  const { content } = event;
  if (!isCondemnation(event) || content.kind !== "json") return null;
  if (typeof content.data !== "object" || content.data === null || !Object.hasOwn(content.data, "at")) return null;
  const at: unknown = Reflect.get(content.data, "at");
  const wall = typeof at === "string" ? Date.parse(at) : Number.NaN;
  return Number.isNaN(wall) ? null : wall;
}
