import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { HookledgerError } from "../../../errors.js";

/** A root or a chunk. */
export type Item = { readonly kind: "payload" | "chunk"; readonly hex: string };

export type Sized = { readonly item: Item; readonly bytes: number };

const KIND = { payload: 1, chunk: 2 } as const;

const SCHEMA = `
  PRAGMA journal_mode = OFF;
  PRAGMA synchronous = OFF;
  PRAGMA temp_store = FILE;
  PRAGMA cache_size = -8192;
  CREATE TABLE kept (item BLOB PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE refers (source BLOB NOT NULL, target BLOB NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;
  CREATE TABLE live (item BLOB PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE named (item BLOB PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE grown (item BLOB PRIMARY KEY) WITHOUT ROWID;
`;

/** What was named or has grown since the last time, and all that it refers to. */
const REACH = `
  INSERT OR IGNORE INTO live
  WITH RECURSIVE reached (item) AS (
    SELECT item FROM named
    UNION SELECT item FROM grown WHERE item IN (SELECT item FROM live)
    UNION SELECT refers.target FROM refers JOIN reached ON refers.source = reached.item
  )
  SELECT item FROM reached`;

/**
 * What a collection learns, in a file of its own, so that it needs no more memory for a larger ledger. Its folder is private, and gone
 * afterwards. Throws HL_STORE_FULL, HL_STORE_UNAVAILABLE where it cannot be written.
 */
export async function withScratch<T>(work: (scratch: Scratch) => Promise<T>): Promise<T> {
  let folder: string | undefined;
  let db: Database.Database | undefined;
  try {
    folder = mkdtempSync(join(tmpdir(), "hookledger-collect-"));
    db = new Database(join(folder, "scratch.db"));
    return await work(new Scratch(db));
  } catch (error) {
    throw error instanceof HookledgerError ? error : scratchError(error);
  } finally {
    db?.close();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function scratchError(error: unknown): HookledgerError {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const isFull = code === "SQLITE_FULL" || code === "ENOSPC" || code === "EDQUOT";
  return new HookledgerError(
    isFull ? "HL_STORE_FULL" : "HL_STORE_UNAVAILABLE",
    `the collection's scratch file ${isFull ? "has no room left" : "cannot be used"} in ${tmpdir()}`,
    { cause: error, hint: "Name a folder with room for it in TMPDIR." },
  );
}

export class Scratch {
  readonly #db: Database.Database;
  readonly #sql: ReturnType<typeof prepare>;

  constructor(db: Database.Database) {
    this.#db = db;
    this.#db.exec(SCHEMA);
    this.#sql = prepare(db);
  }

  /** Carries out what `write` records, all at once. */
  record(write: () => void): void {
    this.#db.transaction(write)();
  }

  /** There is a stream of it on the server, with so many bytes of content. */
  keep(item: Item, bytes: number): void {
    this.#sql.keep.run(keyOf(item), bytes);
  }

  /** Its content refers to the chunk of this hash. */
  refer(source: Item, hash: string): void {
    const key = keyOf(source);
    this.#sql.refer.run(key, keyOf({ kind: "chunk", hex: hash }));
    this.#sql.grow.run(key);
  }

  /** An event refers to it. */
  name(item: Item): void {
    this.#sql.name.run(keyOf(item));
  }

  /** Works out what is referred to, of all that was recorded so far. */
  settle(): void {
    this.record(() => {
      this.#sql.reach.run();
      this.#sql.clearNamed.run();
      this.#sql.clearGrown.run();
    });
  }

  /** The first items, behind another one, to which nothing refers. */
  unreferenced(after: Item | null, max: number): readonly Sized[] {
    return this.#sql.unreferenced.all(after === null ? Buffer.alloc(0) : keyOf(after), max).map(toSized);
  }

  /** Items that are kept and referred to. */
  get referenced(): number {
    return this.#sql.referenced.get()?.count ?? 0;
  }
}

type Row = { readonly item: Buffer; readonly bytes: number };

function prepare(db: Database.Database) {
  return {
    keep: db.prepare<[Buffer, number]>("INSERT OR REPLACE INTO kept VALUES (?, ?)"),
    refer: db.prepare<[Buffer, Buffer]>("INSERT OR IGNORE INTO refers VALUES (?, ?)"),
    grow: db.prepare<[Buffer]>("INSERT OR IGNORE INTO grown VALUES (?)"),
    name: db.prepare<[Buffer]>("INSERT OR IGNORE INTO named VALUES (?)"),
    reach: db.prepare<[]>(REACH),
    clearNamed: db.prepare<[]>("DELETE FROM named"),
    clearGrown: db.prepare<[]>("DELETE FROM grown"),
    unreferenced: db.prepare<[Buffer, number], Row>(
      "SELECT item, bytes FROM kept WHERE item > ? AND item NOT IN (SELECT item FROM live) ORDER BY item LIMIT ?",
    ),
    referenced: db.prepare<[], { readonly count: number }>(
      "SELECT count(*) AS count FROM kept WHERE item IN (SELECT item FROM live)",
    ),
  };
}

function keyOf({ kind, hex }: Item): Buffer {
  return Buffer.concat([Buffer.of(KIND[kind]), Buffer.from(hex, "hex")]);
}

function toSized({ item, bytes }: Row): Sized {
  const kind = item[0] === KIND.payload ? "payload" : "chunk";
  return { item: { kind, hex: item.toString("hex", 1) }, bytes };
}
