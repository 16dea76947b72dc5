/** Ledgers on their way into bundles and out of them. */
import { createHash } from "node:crypto";
import Database from "better-sqlite3";
import fc from "fast-check";
import { verifyAll } from "#src/replay/verify-all.js";
import { openBundle } from "#src/store/bundle/store.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore, StreamName } from "#src/store/port.js";
import { type Exported, type ExportSelection, exportLedger } from "#src/transfer/export.js";
import { importLedger } from "#src/transfer/import.js";
import { allLogs } from "../properties/logs.js";
import { appendInto, type LedgerRows, rowsOf } from "./ledgers.js";
import { ledgerOf } from "./ledgers-random.js";
import { collect } from "./store-fixtures.js";

/** Wall clock of every export, ms since 1970. */
export const NOW = Date.UTC(2026, 10, 30, 12);

/** A legal ledger of so many dispatches, every third in a session of two. */
export async function randomRows(count: number, seed: number): Promise<LedgerRows> {
  const samples = fc.sample(allLogs, { numRuns: count, seed });
  return ledgerOf(
    ...samples.map((log, n) => ({ n: n + 1, log, ...(n % 3 === 0 ? { session: `session ${n % 2}` } : {}) })),
  );
}

/** What of the rows is there when the n-th dispatch has come to `cuts[n]` events (none: all); a first event always is. */
export function cutRows(rows: LedgerRows, cuts: readonly number[]): LedgerRows {
  const limit = new Map(rows.heads.map(({ stream }, n) => [stream, Math.max(1, cuts[n] ?? Number.POSITIVE_INFINITY)]));
  return { ...rows, events: rows.events.filter(({ stream, revision }) => revision < (limit.get(stream) ?? 0)) };
}

/** Appends what the store does not have of the rows. */
export async function growTo(store: EventStore, rows: LedgerRows): Promise<void> {
  const ends = new Map(
    (await collect(store.list({ order: "oldest" }))).map(({ stream, revision }) => [stream, revision]),
  );
  const events = rows.events.filter(({ stream, revision }) => revision > (ends.get(stream) ?? -1));
  if (events.length > 0) await appendInto(store, { ...rows, events });
}

export async function memoryOf(rows: LedgerRows): Promise<EventStore> {
  const store = openMemoryStore();
  await growTo(store, rows);
  return store;
}

/** All that a dispatch's record consists of, wherever it is kept: heads, ids and texts by stream, and what its blobs are. */
export async function contentsOf(store: EventStore) {
  const { events, heads, blobs } = await rowsOf(store);
  return {
    streams: heads.map(({ stream, revision, chain, session }) => ({
      stream,
      revision,
      chain,
      session,
      events: events
        .filter((event) => event.stream === stream)
        .map(({ revision, id, type, data, metadata }) => ({ revision, id, type, data, metadata })),
    })),
    blobs: new Map(blobs.map(({ digest, bytes }) => [digest, createHash("sha256").update(bytes).digest("hex")])),
  };
}

export function exportTo(path: string, store: EventStore, selection: ExportSelection = {}): Promise<Exported> {
  return exportLedger(store, path, { selection, now: NOW });
}

/** Reads the bundle as a store and closes it. */
export async function withBundle<T>(
  path: string,
  read: (bundle: ReturnType<typeof openBundle>) => Promise<T>,
): Promise<T> {
  const bundle = openBundle(path);
  try {
    return await read(bundle);
  } finally {
    await bundle.close();
  }
}

export function importFrom(path: string, target: EventStore) {
  return withBundle(path, (bundle) => importLedger(bundle, target));
}

export async function verified(store: EventStore) {
  let checked = 0;
  const diverged = [];
  for await (const part of verifyAll(store, undefined, 1)) {
    checked += part.checked;
    diverged.push(...part.diverged);
  }
  return { checked, diverged };
}

/** Hands over one stream at a time, and fails instead of the n-th. */
export function failingAt(store: EventStore, n: number): EventStore {
  async function* readStreams(filter: Parameters<EventStore["readStreams"]>[0]) {
    let left = n;
    for await (const page of store.readStreams(filter)) {
      for (const stream of page) {
        if (left-- === 0) throw new Error("interrupted");
        yield [stream];
      }
    }
  }
  return new Proxy(store, {
    get(target, key) {
      if (key === "readStreams") return readStreams;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** Changes a bundle behind its back. */
export function alterBundle(path: string, alter: (db: Database.Database) => void): void {
  const db = new Database(path, { fileMustExist: true });
  try {
    db.unsafeMode(true);
    alter(db);
  } finally {
    db.close();
  }
}

export function idOf(stream: StreamName): string {
  return stream.slice("hookdispatch-".length);
}
