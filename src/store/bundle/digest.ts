/** One digest for a whole bundle: whoever keeps it somewhere else can tell later that nothing was added, changed or taken away. */
import { createHash } from "node:crypto";
import type Database from "better-sqlite3";
import { malformed } from "./file.js";
import { MAX_CHAIN_BYTES, MAX_NAME_BYTES, textColumn } from "./schema.js";

const DOMAIN = "hookledger/bundle/v1\0";
const PAGE = 4096;
/** `sha256:` and 64 hex digits. */
const DIGEST_BYTES = 71;

/** What a bundle holds, as counted while its digest was computed. */
export type BundleSum = {
  readonly digest: string;
  readonly streams: number;
  readonly events: number;
  readonly payloads: number;
};

/**
 * `sha256:` and the hex SHA-256 of "hookledger/bundle/v1\0", a line `["<stream>",<revision>,"<chain>"]` for each stream by name, and
 * a line `"<digest>"` for each payload by digest. Throws HL_BUNDLE for a row that is none, and what SQLite throws.
 */
export function sumBundle(db: Database.Database, path: string): BundleSum {
  const hash = createHash("sha256").update(DOMAIN);
  let streams = 0;
  let events = 0;
  let payloads = 0;
  const stream = textColumn("stream", MAX_NAME_BYTES);
  const chain = textColumn("chain", MAX_CHAIN_BYTES);
  const heads = `SELECT ${stream}, revision, ${chain} FROM streams INDEXED BY sqlite_autoindex_streams_1`;
  for (const [name, revision, last] of pages(db, path, heads, "stream")) {
    if (typeof revision !== "number" || !Number.isSafeInteger(revision) || typeof last !== "string") {
      throw malformed(path, "a row of its streams is none");
    }
    hash.update(`${JSON.stringify([name, revision, last])}\n`);
    streams++;
    events += revision + 1;
  }
  for (const [digest] of pages(db, path, `SELECT ${textColumn("digest", DIGEST_BYTES)} FROM payloads`, "digest")) {
    hash.update(`${JSON.stringify(digest)}\n`);
    payloads++;
  }
  return { digest: `sha256:${hash.digest("hex")}`, streams, events, payloads };
}

/** Rows by their key, which is the first column; each key once and behind the one before, whatever the file's index says. */
function* pages(db: Database.Database, path: string, select: string, key: string): Generator<readonly unknown[]> {
  const first = db.prepare<[], unknown[]>(`${select} ORDER BY ${key} LIMIT ${PAGE}`).raw();
  const next = db.prepare<[string], unknown[]>(`${select} WHERE ${key} > ? ORDER BY ${key} LIMIT ${PAGE}`).raw();
  let last: string | undefined;
  for (;;) {
    const rows = last === undefined ? first.all() : next.all(last);
    for (const row of rows) {
      const [found] = row;
      if (typeof found !== "string" || (last !== undefined && !isBehind(found, last))) {
        throw malformed(path, `its ${key} column is out of order or holds what it must not`);
      }
      last = found;
      yield row;
    }
    if (rows.length === 0) return;
  }
}

/** In the order of their bytes, as SQLite has it. */
export function isBehind(text: string, other: string): boolean {
  return Buffer.compare(Buffer.from(text), Buffer.from(other)) > 0;
}
