/**
 * Garbage collection in a ledger file: marks what the events need in temporary tables, a page of events at a time, and then removes
 * the rest a little at a time. The write lock is held for one such step, which first marks what was appended in the meantime.
 */
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import Database from "better-sqlite3";
import { nodeReferences, references } from "../../payload/archive/references.js";
import { PAGE_TEXT } from "../page.js";
import type { Collected } from "../port.js";
import { digestsIn } from "../referenced.js";
import { chunkKey } from "./archive.js";
import { connectReader } from "./connect.js";
import { isBusy, storeError } from "./failure.js";

/** Events read at once, and rows that are looked at in one step. */
const PAGE_ROWS = 512;
const STEP_ROWS = 64;
/** ms between attempts to get a lock. */
const BUSY_PAUSE = 1;

export type CollectorOptions = {
  /** Real path of a ledger. */
  readonly path: string;
  readonly busyTimeoutMs: number;
  readonly dryRun: boolean;
  /** Called between any two steps; ends the collection by throwing. */
  readonly onStep: (eventsRead: number) => void;
};

/** Throws as the port says. What was removed before stays removed. */
export async function collectGarbage(options: CollectorOptions): Promise<Collected> {
  const { path, busyTimeoutMs, dryRun } = options;
  let db: Database.Database | undefined;
  try {
    db = dryRun ? connectReader(path, busyTimeoutMs) : new Database(path, { fileMustExist: true, timeout: 0 });
    return await new Collector(db, options).run();
  } catch (error) {
    throw storeError(error, path);
  } finally {
    db?.close();
  }
}

type EventRow = readonly [position: number, stream: unknown, revision: unknown, id: unknown, data: unknown];

class Collector {
  readonly #db: Database.Database;
  readonly #options: CollectorOptions;
  readonly #sql: ReturnType<typeof prepare>;
  /** The last event whose references are marked. */
  #last: EventRow | undefined;
  #eventsRead = 0;

  constructor(db: Database.Database, options: CollectorOptions) {
    this.#db = db;
    this.#options = options;
    // What is removed is overwritten, too.
    db.pragma("secure_delete = ON");
    db.exec("CREATE TEMP TABLE named (digest TEXT PRIMARY KEY) WITHOUT ROWID");
    db.exec("CREATE TEMP TABLE live (digest BLOB PRIMARY KEY) WITHOUT ROWID");
    db.exec("CREATE TEMP TABLE walked (digest BLOB PRIMARY KEY) WITHOUT ROWID");
    this.#sql = prepare(db);
  }

  async run(): Promise<Collected> {
    await this.#markAll();
    const roots = await this.#sweep("payloads");
    const chunks = await this.#sweep("chunks");
    return {
      kept: roots.kept + chunks.kept,
      removed: roots.removed + chunks.removed,
      removedBytes: roots.removedBytes + chunks.removedBytes,
      marked: 0,
    };
  }

  async #step(): Promise<void> {
    await nextTurn();
    this.#options.onStep(this.#eventsRead);
  }

  async #markAll(): Promise<void> {
    while (await this.#patiently("BEGIN", () => this.#markPage())) await this.#step();
  }

  /** false: there are no more events. Begins anew where the log may have changed before the last one marked. */
  #markPage(): boolean {
    if (!this.#isLastInPlace()) this.#last = undefined;
    const page: EventRow[] = [];
    let text = 0;
    for (const row of this.#sql.events.iterate(this.#last?.[0] ?? 0)) {
      page.push(row);
      text += textOf(row).length;
      if (text > PAGE_TEXT) break;
    }
    const digests = new Set(page.flatMap((row) => digestsIn(textOf(row))));
    for (const digest of digests) this.#markPayload(digest);
    this.#last = page.at(-1) ?? this.#last;
    this.#eventsRead += page.length;
    return page.length > 0;
  }

  /** Most digests are of payloads that travel with their events. */
  #markPayload(digest: string): void {
    const root = this.#sql.root.get(digest)?.[0];
    if (root === undefined || this.#sql.name.run(digest).changes === 0) return;
    const nodes: unknown[] = [root];
    for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
      if (!(node instanceof Uint8Array)) continue;
      const further = new Set(nodeReferences(node));
      for (const hash of references(node)) {
        const key = chunkKey(hash);
        this.#sql.keepAlive.run(key);
        if (further.has(hash) && this.#sql.walk.run(key).changes === 1) nodes.push(this.#sql.chunk.get(key)?.[0]);
      }
    }
  }

  async #sweep(table: "payloads" | "chunks"): Promise<Omit<Collected, "marked">> {
    const sql = this.#sql[table];
    const total = { kept: 0, removed: 0, removedBytes: 0 };
    for (let after = 0; ; ) {
      await this.#step();
      const { last, rows, dead, bytes } = sql.look.get(after) ?? NOTHING;
      if (last === null) return total;
      let found = { removed: dead, removedBytes: bytes };
      if (dead > 0 && !this.#options.dryRun) {
        const lengths = await this.#whenAllIsMarked(() => sql.remove.all(after, last));
        found = { removed: lengths.length, removedBytes: lengths.reduce((sum, length) => sum + length, 0) };
      }
      total.kept += rows - found.removed;
      total.removed += found.removed;
      total.removedBytes += found.removedBytes;
      after = last;
    }
  }

  /** Acts in a transaction before which, for whoever comes next, everything is marked that any event needs. */
  async #whenAllIsMarked<T>(act: () => T): Promise<T> {
    for (;;) {
      await this.#markAll();
      const acted = await this.#patiently("BEGIN IMMEDIATE", () => {
        if (!this.#isLastInPlace()) return undefined;
        while (this.#markPage());
        return { result: act() };
      });
      if (acted !== undefined) return acted.result;
    }
  }

  /** Positions are handed out again only if the last event is removed. */
  #isLastInPlace(): boolean {
    if (this.#last === undefined) return true;
    const [position, ...identity] = this.#last;
    const found = this.#sql.event.get(position);
    return found?.every((column, i) => column === identity[i]) ?? false;
  }

  /** Lets the event loop go on while it waits for a lock. */
  async #patiently<T>(begin: string, act: () => T): Promise<T> {
    const deadline = performance.now() + this.#options.busyTimeoutMs;
    for (;;) {
      try {
        return this.#transaction(begin, act);
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw error;
      }
      await pause(BUSY_PAUSE);
    }
  }

  #transaction<T>(begin: string, act: () => T): T {
    this.#db.exec(begin);
    try {
      const result = act();
      this.#db.exec("COMMIT");
      return result;
    } finally {
      if (this.#db.inTransaction) this.#db.exec("ROLLBACK");
    }
  }
}

type Look = { readonly last: number | null; readonly rows: number; readonly dead: number; readonly bytes: number };

const NOTHING: Look = { last: null, rows: 0, dead: 0, bytes: 0 };

function prepare(db: Database.Database) {
  const sweep = (table: string, marks: string) => {
    const isDead = `NOT EXISTS (SELECT 1 FROM temp.${marks} AS marked WHERE marked.digest = ${table}.digest)`;
    return {
      look: db.prepare<[after: number], Look>(
        `SELECT max(rowid) AS last, count(*) AS rows, total(dead) AS dead, total(dead * bytes) AS bytes FROM
           (SELECT rowid, length(bytes) AS bytes, ${isDead} AS dead FROM main.${table}
             WHERE rowid > ? ORDER BY rowid LIMIT ${STEP_ROWS})`,
      ),
      remove: db
        .prepare<[after: number, last: number], number>(
          `DELETE FROM main.${table} WHERE rowid > ? AND rowid <= ? AND ${isDead} RETURNING length(bytes)`,
        )
        .pluck(),
    };
  };
  return {
    events: db
      .prepare<[after: number], EventRow>(
        `SELECT position, stream, revision, id, data FROM events WHERE position > ? ORDER BY position LIMIT ${PAGE_ROWS}`,
      )
      .raw(),
    event: db
      .prepare<[position: number], readonly unknown[]>("SELECT stream, revision, id FROM events WHERE position = ?")
      .raw(),
    root: db.prepare<[digest: string], readonly unknown[]>("SELECT bytes FROM payloads WHERE digest = ?").raw(),
    chunk: db.prepare<[hash: Buffer], readonly unknown[]>("SELECT bytes FROM chunks WHERE digest = ?").raw(),
    name: db.prepare<[digest: string]>("INSERT OR IGNORE INTO temp.named (digest) VALUES (?)"),
    keepAlive: db.prepare<[hash: Buffer]>("INSERT OR IGNORE INTO temp.live (digest) VALUES (?)"),
    // Not all that is kept alive is walked: one payload's leaf may be another's node, and what is missing may be written again.
    walk: db.prepare<[hash: Buffer]>(
      "INSERT OR IGNORE INTO temp.walked (digest) SELECT digest FROM main.chunks WHERE digest = ?",
    ),
    payloads: sweep("payloads", "named"),
    chunks: sweep("chunks", "live"),
  };
}

/** Columns may be of any type in a ledger that was tampered with. */
function textOf([, , , , data]: EventRow): string {
  if (typeof data === "string") return data;
  return data instanceof Uint8Array ? Buffer.from(data).toString("latin1") : "";
}
