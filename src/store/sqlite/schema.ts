/** What a ledger file holds. */

/** "HkLg": tells our files from every other SQLite database. */
export const APPLICATION_ID = 0x486b4c67;
export const SCHEMA_VERSION = 1;

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
  PRAGMA user_version = ${SCHEMA_VERSION};
`;
