/** Streams, drafts and temporary folders for the tests of the stores. */
import { createHash } from "node:crypto";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Digest } from "#src/core/events.js";
import type {
  AppendRequest,
  EventDraft,
  EventStore,
  RecordedEvent,
  StreamEvents,
  StreamName,
} from "#src/store/port.js";

/** The n-th stream; names ascend with n. */
export function stream(n: number): StreamName {
  return `hookdispatch-01J${String(n).padStart(23, "0")}`;
}

export function draft(n: number, parts: Partial<EventDraft> = {}): EventDraft {
  return {
    id: `0191abcd-0000-8000-8000-${String(n).padStart(12, "0")}`,
    type: n === 0 ? "started" : "outcome",
    data: `{"index":${n}}`,
    metadata: `{"at":"2026-01-01T00:00:00.000Z","offsetNs":${n}}`,
    ...parts,
  };
}

/** The first append of stream n: `count` events, with a barrier. Of a session each event says so, too. */
export function opening(n: number, count = 1, parts: Partial<AppendRequest> = {}): AppendRequest {
  const { session } = parts;
  const events = Array.from({ length: count }, (_, i) => {
    const plain = draft(i);
    if (session === undefined) return plain;
    return { ...plain, metadata: `{"$correlationId":${JSON.stringify(session)},${plain.metadata.slice(1)}` };
  });
  return { stream: stream(n), expected: "none", events, barrier: true, ...parts };
}

/** A further append: events with the numbers `from` to `from + count - 1`. */
export function further(n: number, from: number, count = 1, parts: Partial<AppendRequest> = {}): AppendRequest {
  const events = Array.from({ length: count }, (_, i) => draft(from + i));
  return { stream: stream(n), expected: from - 1, events, barrier: true, ...parts };
}

export async function collect<T>(pages: AsyncIterable<readonly T[]>): Promise<T[]> {
  const all: T[] = [];
  for await (const page of pages) all.push(...page);
  return all;
}

export async function read(store: EventStore, n: number): Promise<StreamEvents> {
  const found = await store.readStream(stream(n));
  if (found === null) throw new Error(`stream ${n} is missing`);
  return found;
}

/** The chain as the format's page defines it, from the texts of our drafts, with another hash interface. */
export function expectedChain(events: readonly RecordedEvent[]): string[] {
  let previous = "";
  return events.map(({ data, metadata, revision, type }) => {
    const covered = metadata.replace(/,"chain":"[0-9a-f]{64}".*$/, "}");
    const text = `{"data":${data},"metadata":${covered},"revision":${revision},"type":"${type}"}`;
    previous = createHash("sha256").update("hookledger/chain/v1\0").update(previous).update(text).digest("hex");
    return previous;
  });
}

export function chainsOf(events: readonly RecordedEvent[]): unknown[] {
  return events.map(({ metadata }) => JSON.parse(metadata).chain);
}

export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "hookledger-store-")));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** The n-th digest, of nothing in particular. */
export function numbered(n: number): Digest {
  return `sha256:${n.toString(16).padStart(64, "0")}`;
}

/** Bytes of a blob that is there and whole, else null. */
export async function blobOf(store: EventStore, digest: Digest): Promise<Uint8Array | null> {
  const read = await store.readBlob(digest);
  return read.kind === "found" ? read.bytes : null;
}
