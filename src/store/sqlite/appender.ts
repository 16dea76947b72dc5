/** Group commit: many requests in one transaction, each all or nothing. */
import Database from "better-sqlite3";
import { conflict, firstRevision, isSameEvent } from "../append.js";
import type { AppendRequest, AppendResult, StreamHead, StreamName } from "../port.js";
import { seal } from "../seal.js";
import { ArchiveWriter } from "./archive.js";
import { DeliveryWriter } from "./deliveries.js";
import { isBusy, storeError, toFailure } from "./failure.js";
import type { Outcome, QueueRequest, WriteRequest, WriterData } from "./protocol.js";
import { migrate, versionOf } from "./schema.js";

/** ms between attempts to get the write lock: SQLite's own waiting backs off to 100 ms and starves next to a busy writer. */
const BUSY_PAUSE = 1;
/** Events that one statement writes. */
const MAX_ROWS = 16;

export class Appender {
  readonly #db: Database.Database;
  readonly #path: string;
  readonly #busyTimeoutMs: number;
  readonly #sql: ReturnType<typeof prepare>;
  /** Of the streams that the open transaction has met; written back once, before it commits. */
  readonly #heads = new Map<StreamName, Head>();
  /** Has the open transaction written anything? */
  #wrote = false;
  /** Were there commits since the log was last forced to disk? */
  #unsynced: boolean;

  /** `db`: a connection that waits for nothing (timeout 0). Throws as the port says. */
  constructor(db: Database.Database, { path, busyTimeoutMs, resumed }: WriterData) {
    this.#db = db;
    this.#path = path;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#unsynced = resumed;
    this.#sql = this.#patiently(() => {
      db.pragma("wal_autocheckpoint = 0");
      migrate(db);
      return prepare(db, path);
    });
  }

  /**
   * Carries out the requests in order and returns an outcome for each. With a barrier among them the commit forces the
   * whole log to disk, and with it every commit before; without one it leaves that to a later commit.
   * Throws a SqliteError when the disk could not be synced: what is acknowledged after that could not be relied upon.
   */
  commit(requests: readonly WriteRequest[]): readonly Outcome[] {
    const barrier = requests.some((request) => request.barrier);
    try {
      this.#begin(barrier);
    } catch (error) {
      return this.#allFailed(requests, error);
    }
    const outcomes: Outcome[] = [];
    for (const request of requests) {
      try {
        const isAlone = requests.length === 1 || this.#isOneStatement(request);
        outcomes.push(isAlone ? this.#carryOut(request) : this.#inSavepoint(request));
      } catch (error) {
        // Without a savepoint, which copies every page before it changes, there is the transaction to go back to.
        if (requests.length === 1) return this.#allFailed(requests, error);
        if (!this.#db.inTransaction) return this.#oneByOne(requests, error);
        outcomes.push(toFailure(storeError(error, this.#path)));
      }
    }
    try {
      this.#writeHeads();
      this.#sql.commit.run();
    } catch (error) {
      if (this.#db.inTransaction) this.#sql.rollback.run();
      if (isSyncFailure(error)) throw error;
      return this.#oneByOne(requests, error);
    }
    if (this.#wrote) this.#unsynced = !barrier;
    return outcomes;
  }

  /** Forces every commit to disk. */
  sync(): void {
    if (!this.#unsynced) return;
    this.#begin(true);
    this.#touch();
    this.#sql.commit.run();
    this.#unsynced = false;
  }

  /**
   * Between transactions: copies the write-ahead log back if that many frames (pages) of it wait for it, or with TRUNCATE
   * empties a log of that many. What a reader or another writer still needs stays, and so does everything on a full disk.
   */
  trimLog(frames: number, mode: "PASSIVE" | "TRUNCATE"): void {
    const { log, checkpointed } = this.#checkpoint("NOOP");
    if ((mode === "PASSIVE" ? log - checkpointed : log) >= frames) this.#checkpoint(mode);
  }

  #checkpoint(mode: "NOOP" | "PASSIVE" | "TRUNCATE"): { readonly log: number; readonly checkpointed: number } {
    try {
      const [, log = 0, checkpointed = 0] = this.#sql.checkpoint[mode].get() ?? [];
      return { log, checkpointed };
    } catch (error) {
      const { code } = storeError(error, this.#path);
      if (code === "HL_STORE_LOCKED" || code === "HL_STORE_FULL") return { log: 0, checkpointed: 0 };
      throw error;
    }
  }

  #begin(durable: boolean): void {
    this.#heads.clear();
    this.#wrote = false;
    this.#db.exec(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    this.#patiently(() => this.#sql.begin.run());
  }

  #patiently<T>(attempt: () => T): T {
    const deadline = performance.now() + this.#busyTimeoutMs;
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (!isBusy(error) || performance.now() >= deadline) throw error;
        Atomics.wait(PAUSE, 0, 0, BUSY_PAUSE);
      }
    }
  }

  /** What is one statement is all or nothing by itself. */
  #isOneStatement(request: WriteRequest): boolean {
    if ("kind" in request) return request.kind === "change" || request.deliveries.length <= 1;
    const { events, blobs = [] } = request;
    return events.length <= MAX_ROWS && blobs.length === 0;
  }

  #inSavepoint(request: WriteRequest): Outcome {
    this.#sql.savepoint.run();
    try {
      return this.#carryOut(request);
    } catch (error) {
      // Some errors make SQLite give up the whole transaction.
      if (this.#db.inTransaction) this.#sql.undo.run();
      throw error;
    } finally {
      if (this.#db.inTransaction) this.#sql.release.run();
    }
  }

  #carryOut(request: WriteRequest): Outcome {
    return "kind" in request ? this.#queue(request) : this.#append(request);
  }

  #queue(request: QueueRequest): Outcome {
    const { deliveries } = this.#sql;
    const wrote = request.kind === "put" ? deliveries.put(request) : deliveries.change(request);
    if (wrote) this.#wrote = true;
    else if (request.barrier) this.#touch();
    return { changed: wrote };
  }

  #append(request: AppendRequest): Outcome {
    const { stream, expected, events, session = null } = request;
    const head = this.#heads.get(stream) ?? this.#sql.head.get(stream);
    if ((head?.revision ?? "none") !== expected) {
      const again = this.#repeated(request);
      // Whoever wrote that batch may not have synced it.
      if (again !== undefined && request.barrier) this.#touch();
      return again ?? toFailure(conflict(stream, expected, head?.revision));
    }
    let revision = firstRevision(expected) - 1;
    let chain = head?.chain ?? "";
    let position = 0;
    for (let start = 0; start < events.length; start += MAX_ROWS) {
      const rows = events.slice(start, start + MAX_ROWS);
      const values: (string | number)[] = [];
      for (const event of rows) {
        const sealed = seal(chain, ++revision, event);
        chain = sealed.chain;
        values.push(stream, revision, event.id, event.type, event.data, sealed.metadata);
      }
      position = Number(this.#sql.insertEvents(rows.length).run(values).lastInsertRowid);
    }
    for (const blob of request.blobs ?? []) this.#sql.archive.keep(blob);
    const start = position - events.length + 1;
    this.#wrote = true;
    this.#heads.set(stream, { revision, chain, session: head?.session ?? session, position: head?.position ?? start });
    return { revision, position };
  }

  /** Changes nothing, but is written: a commit that writes nothing syncs nothing. */
  #touch(): void {
    this.#db.exec(`PRAGMA user_version = ${versionOf(this.#db)}`);
    this.#wrote = true;
  }

  #writeHeads(): void {
    for (const [stream, { revision, chain, session, position }] of this.#heads) {
      this.#sql.writeHead.run(stream, revision, chain, session, position);
    }
  }

  /** The acknowledgement of an identical batch that is there already. */
  #repeated({ stream, expected, events }: AppendRequest): AppendResult | undefined {
    const first = firstRevision(expected);
    const rows = this.#sql.batch.all(stream, first, first + events.length - 1);
    const same = events.every((draft, i) => {
      const recorded = rows[i];
      return recorded !== undefined && isSameEvent(recorded, draft);
    });
    const last = rows.at(-1);
    if (!same || last === undefined) return undefined;
    return { revision: last.revision, position: last.position };
  }

  /** What is too much for the disk together may fit in part. */
  #oneByOne(requests: readonly WriteRequest[], error: unknown): readonly Outcome[] {
    if (requests.length === 1) return this.#allFailed(requests, error);
    return requests.flatMap((request) => this.commit([request]));
  }

  #allFailed(requests: readonly WriteRequest[], error: unknown): readonly Outcome[] {
    if (this.#db.inTransaction) this.#sql.rollback.run();
    const failure = toFailure(storeError(error, this.#path));
    return requests.map(() => failure);
  }
}

const PAUSE = new Int32Array(new SharedArrayBuffer(4));

type Head = Omit<StreamHead, "stream">;
type BatchRow = {
  readonly revision: number;
  readonly position: number;
  readonly id: string;
  readonly type: string;
  readonly data: string;
};

type Insertion = Database.Statement<[values: readonly (string | number)[]]>;

/**
 * One statement for so many rows. Positions are handed out in their order. Where one cannot be written the whole transaction is gone,
 * and its requests are tried one by one: to undo a part of it SQLite would copy every page before it changes.
 */
function insertions(db: Database.Database): (rows: number) => Insertion {
  const statements = new Map<number, Insertion>();
  return (rows) => {
    const known = statements.get(rows);
    if (known !== undefined) return known;
    const values = Array.from({ length: rows }, () => "(?, ?, ?, ?, ?, ?)").join(", ");
    const statement: Insertion = db.prepare(
      `INSERT OR ROLLBACK INTO events (stream, revision, id, type, data, metadata) VALUES ${values}`,
    );
    statements.set(rows, statement);
    return statement;
  };
}

function prepare(db: Database.Database, path: string) {
  const checkpoint = (mode: string) =>
    db.prepare<[], [busy: number, log: number, checkpointed: number]>(`PRAGMA wal_checkpoint(${mode})`).raw();
  return {
    begin: db.prepare<[]>("BEGIN IMMEDIATE"),
    commit: db.prepare<[]>("COMMIT"),
    rollback: db.prepare<[]>("ROLLBACK"),
    savepoint: db.prepare<[]>("SAVEPOINT request"),
    release: db.prepare<[]>("RELEASE request"),
    undo: db.prepare<[]>("ROLLBACK TO request"),
    head: db.prepare<[stream: string], Head>("SELECT revision, chain, session, position FROM heads WHERE stream = ?"),
    batch: db.prepare<[stream: string, first: number, last: number], BatchRow>(
      "SELECT revision, position, id, type, data FROM events WHERE stream = ? AND revision BETWEEN ? AND ? ORDER BY revision",
    ),
    insertEvents: insertions(db),
    writeHead: db.prepare<[string, number, string, string | null, number]>(
      `INSERT INTO heads (stream, revision, chain, session, position) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (stream) DO UPDATE SET revision = excluded.revision, chain = excluded.chain`,
    ),
    archive: new ArchiveWriter(db),
    deliveries: new DeliveryWriter(db, path),
    checkpoint: { NOOP: checkpoint("NOOP"), PASSIVE: checkpoint("PASSIVE"), TRUNCATE: checkpoint("TRUNCATE") },
  };
}

function isSyncFailure(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith("SQLITE_IOERR");
}
