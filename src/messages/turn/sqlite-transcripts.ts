/** Transcripts in one SQLite file of their own. Calls are short, and made on the caller's thread. */

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import { createDatabase, databaseHeader } from "../../store/sqlite/database-file.js";
import { storeError } from "../../store/sqlite/failure.js";
import { recorded } from "../recorded.js";
import type {
  TranscriptMessage,
  TranscriptReceipt,
  TranscriptSession,
  TranscriptStart,
  TranscriptTarget,
  TranscriptWriter,
} from "./transcript.js";

/** "HkLt": tells transcripts from ledgers and from every other SQLite database. */
const APPLICATION_ID = 0x486b4c74;
const FORMAT = 1;
/** ms that a lock of another process is waited for. */
const BUSY_TIMEOUT_MS = 1_000;
/** UTF-16 units of a message's JSON. */
const MAX_MESSAGE = 64 * 1024 * 1024;
const MAX_PAGE = 1_000;

/** `ordinal`: how often the session was replaced. Messages of a replaced session stay, under the generation they had. */
const SCHEMA = `
  CREATE TABLE sessions (
    agent TEXT NOT NULL,
    key TEXT NOT NULL,
    session TEXT NOT NULL,
    generation TEXT NOT NULL UNIQUE,
    ordinal INTEGER NOT NULL,
    PRIMARY KEY (agent, key)
  ) WITHOUT ROWID;
  CREATE TABLE messages (
    generation TEXT NOT NULL,
    seq INTEGER NOT NULL,
    id TEXT NOT NULL,
    idempotency TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (generation, seq),
    UNIQUE (generation, idempotency)
  );
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${FORMAT};
`;

type SessionRow = { readonly session: string; readonly generation: string; readonly ordinal: number };
type MessageRow = { readonly seq: number; readonly id: string };

export class SqliteTranscripts implements TranscriptWriter {
  readonly path: string;
  readonly #db: Database.Database;
  readonly #sql: ReturnType<typeof prepare>;

  private constructor(path: string, db: Database.Database) {
    this.path = path;
    this.#db = db;
    this.#sql = prepare(db);
  }

  /** Made where it is missing, 0600 in a folder 0700. Throws HL_STORE_FOREIGN for a file that is none of ours, and other HL_STORE_… */
  static open(file: string): SqliteTranscripts {
    const path = resolve(file);
    let db: Database.Database | undefined;
    try {
      if (!existsSync(path)) createDatabase(path, (draft) => draft.exec(SCHEMA));
      requireOurs(path);
      db = new Database(path, { fileMustExist: true, timeout: BUSY_TIMEOUT_MS });
      if (db.pragma("application_id", { simple: true }) !== APPLICATION_ID) throw foreign(path);
      db.pragma("trusted_schema = OFF");
      db.pragma("journal_mode = WAL");
      db.pragma("synchronous = FULL");
      return new SqliteTranscripts(path, db);
    } catch (error) {
      db?.close();
      throw storeError(error, path, WHAT);
    }
  }

  /** Where a run that begins now will write. */
  start(session: TranscriptSession): TranscriptStart {
    return this.#try(() => {
      const current = this.#current(session);
      if (current?.session !== session.sessionId) return { ...this.#target(session, null), maxSeq: null };
      const maxSeq = this.#sql.maxSeq.get(current.generation)?.[0] ?? null;
      return { ...this.#target(session, current.generation), maxSeq };
    });
  }

  /** The session under its key is another one from now on; whoever still has the one before it writes no more. */
  replace(session: TranscriptSession): TranscriptStart {
    return this.#try(() => {
      const begin = (): string => this.#begin(session, (this.#current(session)?.ordinal ?? -1) + 1);
      return { ...this.#target(session, this.#db.transaction(begin).immediate()), maxSeq: null };
    });
  }

  async append(
    target: TranscriptTarget,
    message: TranscriptMessage,
    idempotencyKey: string,
  ): Promise<TranscriptReceipt> {
    const text = JSON.stringify(recorded(message));
    if (text.length > MAX_MESSAGE) {
      throw new HookledgerError("HL_LIMIT_PAYLOAD", `the message ${message.id} is over ${MAX_MESSAGE} bytes`);
    }
    const write = (): TranscriptReceipt => {
      const generation = this.#writable(target);
      const written = this.#sql.byKey.get(generation, idempotencyKey);
      const { seq, id } = written ?? { seq: (this.#sql.maxSeq.get(generation)?.[0] ?? 0) + 1, id: message.id };
      if (written === undefined) this.#sql.insert.run(generation, seq, id, idempotencyKey, text);
      return { target: this.#target(target, generation), messageId: id, idempotencyKey, projectionAnchor: seq };
    };
    return this.#try(() => this.#db.transaction(write).immediate());
  }

  /** Is that message written, and its session still the one? */
  holds({ target, messageId, idempotencyKey }: TranscriptReceipt): boolean {
    return this.#try(() => {
      const current = this.#current(target);
      if (current === undefined || current.generation !== target.generation) return false;
      return this.#sql.byKey.get(current.generation, idempotencyKey)?.id === messageId;
    });
  }

  /** Messages of that session in order, from behind `after` (1-based), 1 000 at most. */
  read({ generation }: Pick<TranscriptTarget, "generation">, after = 0): readonly TranscriptMessage[] {
    if (generation === null) return [];
    return this.#try(() => this.#sql.page.all(generation, after, MAX_PAGE).map(([text]) => messageIn(text)));
  }

  close(): void {
    this.#db.close();
  }

  /** The generation to write to; begun where it is the session's first. */
  #writable(target: TranscriptTarget): string {
    const current = this.#current(target);
    if (current === undefined && target.generation === null) return this.#begin(target, 0);
    const isFirst = target.generation === null && current?.ordinal === 0;
    const same = current?.session === target.sessionId && (isFirst || current.generation === target.generation);
    if (same && target.storePath === this.path) return current.generation;
    throw new HookledgerError(
      "HL_TRANSCRIPT_REPLACED",
      `the session ${target.sessionId} is not the one under its key any more`,
      { hint: "What was begun for it is not to be written to the one that replaced it." },
    );
  }

  #begin({ agentId, sessionKey, sessionId }: TranscriptSession, ordinal: number): string {
    const generation = randomUUID();
    this.#sql.setSession.run(agentId, sessionKey, sessionId, generation, ordinal);
    return generation;
  }

  #current({ agentId, sessionKey }: TranscriptSession): SessionRow | undefined {
    return this.#sql.session.get(agentId, sessionKey);
  }

  #target({ agentId, sessionId, sessionKey }: TranscriptSession, generation: string | null): TranscriptTarget {
    return { agentId, sessionId, sessionKey, storePath: this.path, generation };
  }

  #try<T>(work: () => T): T {
    if (!this.#db.open) throw new HookledgerError("HL_STORE_CLOSED", `the ${WHAT} ${this.path} is closed`);
    try {
      return work();
    } catch (error) {
      throw storeError(error, this.path, WHAT);
    }
  }
}

const WHAT = "transcript file";

function prepare(db: Database.Database) {
  return {
    session: db.prepare<[agent: string, key: string], SessionRow>(
      "SELECT session, generation, ordinal FROM sessions WHERE agent = ? AND key = ?",
    ),
    setSession: db.prepare<[agent: string, key: string, session: string, generation: string, ordinal: number]>(
      "INSERT OR REPLACE INTO sessions (agent, key, session, generation, ordinal) VALUES (?, ?, ?, ?, ?)",
    ),
    maxSeq: db
      .prepare<[generation: string], [number | null]>("SELECT max(seq) FROM messages WHERE generation = ?")
      .raw(),
    byKey: db.prepare<[generation: string, idempotency: string], MessageRow>(
      "SELECT seq, id FROM messages WHERE generation = ? AND idempotency = ?",
    ),
    insert: db.prepare<[generation: string, seq: number, id: string, idempotency: string, message: string]>(
      "INSERT INTO messages (generation, seq, id, idempotency, message) VALUES (?, ?, ?, ?, ?)",
    ),
    page: db
      .prepare<[generation: string, after: number, limit: number], [string]>(
        "SELECT message FROM messages WHERE generation = ? AND seq > ? ORDER BY seq LIMIT ?",
      )
      .raw(),
  };
}

function messageIn(text: string): TranscriptMessage {
  const value: unknown = JSON.parse(text);
  if (isMessage(value)) return value;
  throw new HookledgerError("HL_STORE_CORRUPT", "a message in the transcript file is none of ours");
}

function isMessage(value: unknown): value is TranscriptMessage {
  if (typeof value !== "object" || value === null || !("id" in value && "role" in value)) return false;
  return typeof value.id === "string" && (value.role === "user" || value.role === "assistant") && "content" in value;
}

/** Looked at before SQLite gets to: a file that is not ours stays as it is. */
function requireOurs(path: string): void {
  const header = databaseHeader(path);
  if (header.kind === "open here") return;
  if (header.kind === "no database" || header.applicationId !== APPLICATION_ID) throw foreign(path);
  if (header.userVersion === FORMAT) return;
  throw new HookledgerError("HL_STORE_VERSION", `the ${WHAT} ${path} has format ${header.userVersion}`, {
    hint: `This build reads format ${FORMAT}; use a newer hookledger.`,
  });
}

function foreign(path: string): HookledgerError {
  return new HookledgerError("HL_STORE_FOREIGN", `${path} holds no transcripts of ours; it was left as it is`, {
    hint: "Name another file.",
  });
}
