/**
 * The catalogue: streams of our own that name the dispatches, so that nobody has to scan the log for them. A radix tree of ULIDs:
 *
 *   hookindex-root      names the first 5 characters (9.3 hours each) of the dispatches there are
 *   hookindex-<5>       the first 7 (32 seconds each) of those that begin with these
 *   hookindex-<7>       the dispatches that begin with these, and whether each has a session
 *   hooksession-<hex>   the dispatches of the session whose SHA-256 that is
 *
 * An entry says "look there", no more: it is written before what it names, so there may be nothing, and one may be there twice.
 */
import { createHash, randomUUID } from "node:crypto";
import type { StreamName } from "../../port.js";
import type { ServerDraft, ServerEvent } from "../server-log.js";

export const CATEGORY = "hookdispatch-";
const INDEX = "hookindex-";
const SESSION = "hooksession-";
export const ROOT = `${INDEX}root`;

/** Characters of an id that tell the directories, and the leaves, apart. */
export const DIRECTORY = 5;
export const LEAF = 7;
/** Fills up an id that is shorter, as no ULID is; it sorts before what ids are made of. */
const PAD = "!";

const MAX_NAME = 128;

/** An entry of a stream that lists what begins alike. */
export type Listing = { readonly index: string; readonly prefix: string };

export function idOf(stream: StreamName): string {
  return stream.slice(CATEGORY.length);
}

export function streamOf(id: string): StreamName {
  return `${CATEGORY}${id}`;
}

export function indexOf(prefix: string): string {
  return INDEX + prefix;
}

export function directoryOf(id: string): string {
  return id.slice(0, DIRECTORY).padEnd(DIRECTORY, PAD);
}

export function leafOf(id: string): string {
  return id.slice(0, LEAF).padEnd(LEAF, PAD);
}

export function sessionIndexOf(session: string): string {
  return SESSION + createHash("sha256").update(session).digest("hex");
}

/** What leads to a dispatch, from the root down. */
export function listingsOf(id: string): readonly Listing[] {
  const directory = directoryOf(id);
  return [
    { index: ROOT, prefix: directory },
    { index: indexOf(directory), prefix: leafOf(id) },
  ];
}

/** A new id each time: the server takes an id that it has seen of late for a repetition, also where the entry was deleted since. */
export function prefixEntry(prefix: string): ServerDraft {
  return { id: randomUUID(), type: "prefix", content: { kind: "json", data: { prefix }, metadata: {} } };
}

export function dispatchEntry(dispatch: string, session: string | boolean): ServerDraft {
  return { id: randomUUID(), type: "dispatch", content: { kind: "json", data: { dispatch, session }, metadata: {} } };
}

/** What an entry names. */
export type Named = { readonly name: string; readonly sessionless: boolean };

/** null for what is no entry of ours, or says nothing that belongs into its stream. */
export function readEntry(event: ServerEvent): Named | null {
  const { stream } = event;
  const prefix = textAt(event, "prefix");
  if (prefix !== null) {
    const belongs =
      stream === ROOT
        ? prefix.length === DIRECTORY
        : prefix.length === LEAF && stream === indexOf(prefix.slice(0, DIRECTORY));
    return belongs ? { name: prefix, sessionless: false } : null;
  }
  const id = textAt(event, "dispatch");
  if (id === null) return null;
  if (stream.startsWith(SESSION)) return { name: id, sessionless: false };
  return stream === indexOf(leafOf(id)) ? { name: id, sessionless: valueAt(event, "session") === false } : null;
}

function textAt(event: ServerEvent, key: "prefix" | "dispatch"): string | null {
  const value = event.type === key ? valueAt(event, key) : null;
  return typeof value === "string" && value.length > 0 && value.length <= MAX_NAME ? value : null;
}

function valueAt({ content }: ServerEvent, key: string): unknown {
  if (content.kind !== "json" || typeof content.data !== "object" || content.data === null) return null;
  return Object.hasOwn(content.data, key) ? Reflect.get(content.data, key) : null;
}
