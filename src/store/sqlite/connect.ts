/** Read-only connections. */
import { readFileSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import { storeError } from "./failure.js";
import { requireOurs } from "./file.js";

/** Bytes up to which a ledger on a read-only medium is taken into memory. */
const MAX_IN_MEMORY = 1024 * 1024 * 1024;
/** File format versions in the header: 2 asks for a write-ahead log, 1 does not. */
const FORMAT_VERSIONS_AT = 18;

/**
 * Connects to a ledger that `findLedger` accepted. Where SQLite cannot keep its files beside the ledger, because the
 * folder is read-only, the ledger is read into memory as it stands, unless events wait in a write-ahead log.
 * Throws HL_STORE_FOREIGN, HL_STORE_VERSION, HL_STORE_CORRUPT, HL_STORE_LOCKED, HL_STORE_READONLY, HL_STORE_UNAVAILABLE.
 */
export function connectReader(path: string, busyTimeoutMs: number): Database.Database {
  try {
    return probed(new Database(path, { readonly: true, fileMustExist: true, timeout: busyTimeoutMs }), path);
  } catch (error) {
    if (!isRefusedFolder(error)) throw storeError(error, path);
  }
  try {
    return probed(new Database(inMemory(path), { readonly: true }), path);
  } catch (error) {
    throw storeError(error, path);
  }
}

/** Closes the connection and throws if the file is shorter than it says, or not what its header said it was. */
function probed(db: Database.Database, path: string): Database.Database {
  try {
    requireOurs(db.pragma("application_id", { simple: true }), db.pragma("user_version", { simple: true }), path);
    db.prepare("SELECT position FROM events LIMIT 1").get();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function isRefusedFolder(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(CANTOPEN|READONLY)/.test(error.code);
}

/** The ledger's bytes, changed so that SQLite looks for no log. */
function inMemory(path: string): Buffer {
  if (sizeOf(`${path}-wal`) > 0 || sizeOf(path) > MAX_IN_MEMORY) {
    throw new HookledgerError("HL_STORE_READONLY", `the ledger ${path} cannot be read from a read-only folder`, {
      hint: "Copy it, with its -wal file if there is one, to a folder that can be written.",
    });
  }
  return readFileSync(path).fill(1, FORMAT_VERSIONS_AT, FORMAT_VERSIONS_AT + 2);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
