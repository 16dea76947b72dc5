/** What a ledger file holds. */
import type Database from "better-sqlite3";

/** "HkLg": tells our files from every other SQLite database. */
export const APPLICATION_ID = 0x486b4c67;
export const SCHEMA_VERSION = 2;

/** Older formats are read as they are, and brought up to date by the first writer. */
export function isKnownVersion(version: unknown): boolean {
  return typeof version === "number" && version >= 1 && version <= SCHEMA_VERSION;
}

/**
 * `deliveries`, since format 2: what is to be sent, what was tried and what became of it. `writer` has begun the last attempt.
 * A build of format 1 that still has the ledger open may put the old version back: this can be repeated.
 */
const QUEUE = `
  CREATE TABLE IF NOT EXISTS deliveries (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    lane TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    writer TEXT NOT NULL,
    session TEXT,
    run TEXT,
    attempts INTEGER NOT NULL,
    parts_sent INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    error TEXT,
    receipts TEXT NOT NULL,
    route TEXT NOT NULL,
    payload TEXT NOT NULL
  );
  CREATE INDEX IF NOT EXISTS deliveries_by_state ON deliveries (state, id);
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/**
 * `events`: one row an event; positions are handed out under the write lock, so they ascend across processes.
 * `heads`: where each stream ends, written with its events. `payloads`: of each archived payload its size and its
 * root, which in older ledgers is the payload itself. `chunks`: what roots refer to, by 32 bytes of hash.
 */
export const SCHEMA = `
  CREATE TABLE events (
    position INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    data TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (stream, revision)
  );
  CREATE TABLE heads (
    stream TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    chain TEXT NOT NULL,
    session TEXT,
    position INTEGER NOT NULL
  ) WITHOUT ROWID;
  CREATE INDEX heads_by_session ON heads (session, stream);
  CREATE TABLE payloads (digest TEXT PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB NOT NULL);
  CREATE TABLE chunks (digest TEXT PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB NOT NULL);
  PRAGMA application_id = ${APPLICATION_ID};
  ${QUEUE}
`;

/** Brings an older ledger up to date, in one transaction. Throws what SQLite does. */
export function migrate(db: Database.Database): void {
  if (versionOf(db) >= SCHEMA_VERSION) return;
  db.transaction(() => {
    if (versionOf(db) < SCHEMA_VERSION) db.exec(QUEUE);
  }).immediate();
}

export function versionOf(db: Database.Database): number {
  return Number(db.pragma("user_version", { simple: true }));
}
