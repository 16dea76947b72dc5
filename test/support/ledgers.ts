/** Ledgers as the rows that a store keeps: read from a store, put into one, printed as text that can be compared, or read as they are. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { Digest, EventType } from "#src/core/events.js";
import { openMemoryStore } from "#src/store/memory.js";
import type {
  Blob,
  EventDraft,
  EventStore,
  RecordedEvent,
  StreamEvents,
  StreamFilter,
  StreamHead,
  StreamName,
} from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { blobOf, collect, temporaryFolder } from "./store-fixtures.js";

export type LedgerRows = {
  /** In ledger order. */
  readonly events: readonly RecordedEvent[];
  readonly heads: readonly StreamHead[];
  readonly blobs: readonly Blob[];
};

/** Everything that a store keeps and its events name. */
export async function rowsOf(store: EventStore): Promise<LedgerRows> {
  const events = await collect(store.readAll({ after: 0 }));
  const digests = new Set(events.flatMap(({ data }) => data.match(/sha256:[0-9a-f]{64}/g) ?? []) as Digest[]);
  const blobs: Blob[] = [];
  for (const digest of digests) {
    const bytes = await blobOf(store, digest);
    if (bytes !== null) blobs.push({ digest, bytes: new Uint8Array(bytes) });
  }
  return { events, heads: await collect(store.list({ order: "oldest" })), blobs };
}

/** One JSON object a line, in a fixed order of members. */
export function printLedger({ events, heads, blobs }: LedgerRows): string {
  const lines = [
    ...events.map(({ position, stream, revision, id, type, data, metadata }) => ({
      event: { position, stream, revision, id, type, data, metadata },
    })),
    ...heads.map(({ stream, revision, chain, session, position }) => ({
      head: { stream, revision, chain, session, position },
    })),
    ...blobs.map(({ digest, bytes }) => ({ blob: { digest, base64: Buffer.from(bytes).toString("base64") } })),
  ];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join("");
}

export function parseLedger(text: string): LedgerRows {
  const lines = text.split("\n").filter((line) => line !== "");
  const rows = lines.map((line): Line => JSON.parse(line));
  return {
    events: rows.flatMap(({ event }) => event ?? []),
    heads: rows.flatMap(({ head }) => head ?? []),
    blobs: rows.flatMap(({ blob }) =>
      blob === undefined ? [] : { digest: blob.digest, bytes: new Uint8Array(Buffer.from(blob.base64, "base64")) },
    ),
  };
}

type Line = {
  readonly event?: RecordedEvent;
  readonly head?: StreamHead;
  readonly blob?: { readonly digest: Digest; readonly base64: string };
};

/** A store in memory that was given the same events: it seals them again. By default its writer is none of theirs. */
export async function intoMemory(rows: LedgerRows, writer?: string): Promise<EventStore> {
  const store = openMemoryStore(writer === undefined ? {} : { writer });
  await appendInto(store, rows);
  return store;
}

/** Appends each event by itself, in ledger order, so that positions come out the same; blobs come with the first. */
export async function appendInto(store: EventStore, { events, heads, blobs }: LedgerRows): Promise<void> {
  const sessions = new Map(heads.map(({ stream, session }) => [stream, session]));
  for (const [place, event] of events.entries()) {
    const { stream, revision } = event;
    const session = revision === 0 ? (sessions.get(stream) ?? undefined) : undefined;
    await store.append({
      stream,
      expected: revision === 0 ? "none" : revision - 1,
      events: [draftOf(event)],
      barrier: place === events.length - 1,
      ...(place === 0 ? { blobs } : {}),
      ...(session === undefined ? {} : { session }),
    });
  }
}

/** What the recorder had handed over: the metadata without what the store adds. */
export function draftOf({ id, type, data, metadata }: RecordedEvent): EventDraft {
  const covered = metadata.slice(0, metadata.indexOf(',"chain":"'));
  const payloads = /,"payloads":(\{[^}]*\})\}$/.exec(metadata)?.[1];
  return {
    id,
    type: type as EventType,
    data,
    metadata: `${covered}}`,
    ...(payloads === undefined ? {} : { payloads }),
  };
}

/** Writes the rows as they are, past the store, into a new SQLite ledger. */
export async function intoSqlite(path: string, { events, heads, blobs }: LedgerRows): Promise<void> {
  writeFileSync(path, await emptyLedger());
  alterSqlite(path, (db) => {
    const event = db.prepare("INSERT INTO events VALUES (@position, @stream, @revision, @id, @type, @data, @metadata)");
    const head = db.prepare("INSERT INTO heads VALUES (@stream, @revision, @chain, @session, @position)");
    const blob = db.prepare("INSERT OR REPLACE INTO payloads VALUES (?, ?, ?)");
    for (const row of events) event.run(row);
    for (const row of heads) head.run(row);
    for (const { digest, bytes } of blobs) blob.run(digest, bytes.byteLength, bytes);
  });
}

let empty: Uint8Array | undefined;

/** The bytes of a ledger as the store makes it. */
async function emptyLedger(): Promise<Uint8Array> {
  if (empty !== undefined) return empty;
  const folder = temporaryFolder();
  try {
    const path = join(folder.path, "ledger.db");
    await (await openSqliteStore(path, { mode: "write" })).close();
    empty = readFileSync(path);
    return empty;
  } finally {
    folder.remove();
  }
}

/** Changes a ledger behind its back, in one transaction. */
export function alterSqlite(path: string, alter: (db: Database.Database) => void): void {
  const db = new Database(path, { fileMustExist: true });
  try {
    db.pragma("synchronous = OFF");
    db.transaction(() => alter(db))();
  } finally {
    db.close();
  }
}

/** A store that has these rows and judges nothing: two events may have one revision, a head may belong to nobody. */
export function storeOf({ events, heads, blobs }: LedgerRows): EventStore {
  const names = [...new Set([...events, ...heads].map(({ stream }) => stream))].sort();
  const read = (stream: StreamName): StreamEvents => ({
    stream,
    head: heads.find((head) => head.stream === stream) ?? null,
    events: events.filter((event) => event.stream === stream).sort((a, b) => a.revision - b.revision),
  });
  const matching = ({ order, session }: StreamFilter): readonly StreamEvents[] => {
    const streams = names
      .map(read)
      .filter(({ head }) => session === undefined || (head !== null && head.session === session));
    return order === "oldest" ? streams : streams.reverse();
  };
  return {
    url: "memory:",
    writer: "01K0000000000000000000000W",
    pendingBytes: 0,
    append: () => Promise.reject(new Error("nobody appends to these rows")),
    readStream: async (stream) => (names.includes(stream) ? read(stream) : null),
    async *readStreams(filter) {
      yield matching(filter);
    },
    async *readUnlisted() {},
    async *list(filter) {
      yield matching(filter).flatMap(({ head }) => head ?? []);
    },
    async *readAll({ after }) {
      yield events.filter(({ position }) => position > after);
    },
    async *subscribe() {},
    readBlob: async (digest) => {
      const found = blobs.find((blob) => blob.digest === digest);
      return found === undefined ? { kind: "missing" } : { kind: "found", bytes: found.bytes };
    },
    writerState: async () => "dead",
    close: async () => {},
  };
}
