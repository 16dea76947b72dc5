/**
 * Events as the server keeps them: JSON that its own pages show, so that texts become values and texts again. What we wrote comes back
 * letter for letter, because a canonical text is the only one of its value; what somebody else wrote comes back as what it is.
 */
import { canonicalJson, type Json } from "../../payload/canonical-json.js";
import type { EventDraft, RecordedEvent, StreamName } from "../port.js";
import { seal } from "../seal.js";
import type { ServerDraft, ServerEvent } from "./server-log.js";

/** Deeper than anything that is recorded; what nests deeper is not ours, and has no text. */
const MAX_DEPTH = 128;
const CHAIN = /^[0-9a-f]{64}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Where a stream stands: revision of its last event (-1: none) and the chain behind it. */
export type Tip = { readonly revision: number; readonly chain: string };

export const START: Tip = { revision: -1, chain: "" };

/** Seals the drafts behind a tip. Throws a SyntaxError for texts that are no JSON. */
export function sealedDrafts(
  tip: Tip,
  events: readonly EventDraft[],
): { readonly drafts: readonly ServerDraft[]; readonly tip: Tip } {
  let { revision, chain } = tip;
  const drafts = events.map((event): ServerDraft => {
    const sealed = seal(chain, ++revision, event);
    chain = sealed.chain;
    return {
      id: boundId(event.id, chain),
      type: event.type,
      content: { kind: "json", data: JSON.parse(sealed.data), metadata: JSON.parse(sealed.metadata) },
      size: sealed.data.length + sealed.metadata.length,
    };
  });
  return { drafts, tip: { revision, chain } };
}

/**
 * The id under which the server keeps an event, and back again: the last 62 bits are mixed with the chain's first. Whoever repeats an
 * append at an exact revision is told that it worked if the ids are those that are there, whatever else was written; and ours say only
 * which dispatch and which revision, so that two writers' events had the same. Mixed, they are the same if the contents are.
 */
export function boundId(id: string, chain: string): string {
  if (!CHAIN.test(chain) || !UUID.test(id)) return id;
  const upper = Number.parseInt(id.slice(19, 23) + id.slice(24, 28), 16);
  const lower = Number.parseInt(id.slice(28), 16);
  const bits =
    hex(upper ^ (Number.parseInt(chain.slice(0, 8), 16) & 0x3fffffff)) +
    hex(lower ^ Number.parseInt(chain.slice(8, 16), 16));
  return `${id.slice(0, 19)}${bits.slice(0, 4)}-${bits.slice(4)}`;
}

function hex(bits: number): string {
  return (bits >>> 0).toString(16).padStart(8, "0");
}

/** As a reader of the port sees it. What has no text, or is none of ours, is the empty text, which nobody can take for an event. */
export function toRecorded(event: ServerEvent): RecordedEvent {
  const { stream, revision, position, id, type, content } = event;
  const json = content.kind === "json";
  return {
    position,
    stream: stream as StreamName,
    revision,
    id: boundId(id, chainOf(event)),
    type,
    data: json ? textOf(content.data) : "",
    metadata: json ? metadataText(content.metadata) : "",
  };
}

/** The chain behind an event; empty if it carries none. */
export function chainOf({ content }: ServerEvent): string {
  const chain = content.kind === "json" && isObject(content.metadata) ? own(content.metadata, "chain") : undefined;
  return typeof chain === "string" && CHAIN.test(chain) ? chain : "";
}

/** The session that an event names, or null. */
export function sessionOf({ content }: ServerEvent): string | null {
  const session =
    content.kind === "json" && isObject(content.metadata) ? own(content.metadata, "$correlationId") : null;
  return typeof session === "string" ? session : null;
}

/** In the order in which it was sealed: what the chain covers, the chain, the payloads. */
function metadataText(metadata: unknown): string {
  if (!isObject(metadata)) return "";
  const { chain, payloads, ...covered } = metadata;
  const head = textOf(covered);
  if (head === "") return "";
  let text = head.slice(0, -1);
  for (const [name, value] of Object.entries({ chain, payloads })) {
    if (value === undefined) continue;
    const member = textOf(value);
    if (member === "") return "";
    text += `${text === "{" ? "" : ","}"${name}":${member}`;
  }
  return `${text}}`;
}

function textOf(value: unknown): string {
  if (!isShallow(value)) return "";
  try {
    return canonicalJson(value);
  } catch {
    return "";
  }
}

/** What JSON.parse makes, nested no deeper than MAX_DEPTH; without recursion. */
function isShallow(value: unknown): value is Json {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return false;
    const below: unknown[] = [];
    for (const each of level) {
      if (typeof each !== "object" || each === null) continue;
      for (const member of Object.values(each)) if (typeof member === "object" && member !== null) below.push(member);
    }
    level = below;
  }
  return true;
}

function isObject(value: unknown): value is { readonly [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

function own(object: { readonly [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
