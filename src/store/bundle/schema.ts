/** What a bundle file holds. */

/** "HkLb": tells bundles from ledgers and from every other SQLite database. */
export const APPLICATION_ID = 0x486b4c62;
export const BUNDLE_VERSION = 1;

/**
 * `description`: one row, a JSON object. `streams`: one row a dispatch, in the order in which they were exported, with its head and
 * its events as one JSON text. `payloads`: roots by the digest of what they stand for. `chunks`: what roots refer to, by hash.
 */
export const SCHEMA = `
  CREATE TABLE description (text TEXT NOT NULL);
  CREATE TABLE streams (
    place INTEGER PRIMARY KEY,
    stream TEXT NOT NULL UNIQUE,
    session TEXT,
    revision INTEGER NOT NULL,
    chain TEXT NOT NULL,
    events TEXT NOT NULL
  );
  CREATE INDEX streams_by_session ON streams (session, stream);
  CREATE TABLE payloads (digest TEXT PRIMARY KEY, root BLOB NOT NULL) WITHOUT ROWID;
  CREATE TABLE chunks (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${BUNDLE_VERSION};
`;

/** Bytes up to which a column is read: what is longer was not written by us. */
export const MAX_NAME_BYTES = 64;
export const MAX_SESSION_BYTES = 64 * 1024;
export const MAX_CHAIN_BYTES = 64;
export const MAX_DESCRIPTION_BYTES = 4 * 1024 * 1024;
export const MAX_STREAM_BYTES = 64 * 1024 * 1024;
export const MAX_PIECE_BYTES = 1024 * 1024;

/** A text column, or null where it holds anything else or more than it may: judged before it is read. */
export function textColumn(column: string, maxBytes: number): string {
  return `iif(typeof(${column}) = 'text' AND octet_length(${column}) <= ${maxBytes}, ${column}, NULL)`;
}

/** The same for bytes. */
export function bytesColumn(column: string, maxBytes: number): string {
  return `iif(typeof(${column}) = 'blob' AND octet_length(${column}) <= ${maxBytes}, ${column}, NULL)`;
}
