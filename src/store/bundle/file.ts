/** Bundle files: untrusted whoever hands them over. What is not exactly of our making is refused, and left as it is. */
import { realpathSync, statSync } from "node:fs";
import Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import { databaseHeader, isErrno } from "../sqlite/database-file.js";
import { storeError } from "../sqlite/failure.js";
import { type BundleDescription, parseDescription } from "./description.js";
import { APPLICATION_ID, BUNDLE_VERSION, MAX_DESCRIPTION_BYTES, SCHEMA, textColumn } from "./schema.js";

/** ms that a lock of another process is waited for. */
const BUSY_TIMEOUT = 5000;

/** The real path of a file that says it is a bundle; null where there is none. Leaves no trace. Throws HL_BUNDLE, HL_STORE_VERSION. */
export function findBundle(path: string): string | null {
  try {
    const real = realpathSync(path);
    if (!statSync(real).isFile()) throw foreign(path);
    const header = databaseHeader(real);
    if (header.kind === "no database") throw foreign(path);
    if (header.kind === "database") {
      if (header.applicationId !== APPLICATION_ID || header.writeAheadLog) throw foreign(path);
      if (header.userVersion !== BUNDLE_VERSION) throw otherVersion(header.userVersion, path);
    }
    return real;
  } catch (error) {
    if (isErrno(error, "ENOENT", "ENOTDIR")) return null;
    throw bundleError(error, path);
  }
}

/** Connects to a bundle that `findBundle` accepted. Throws HL_BUNDLE unless it is built exactly as ours are. */
export function connectBundle(path: string, mode: "read" | "write"): Database.Database {
  let db: Database.Database | undefined;
  try {
    db = new Database(path, { readonly: mode === "read", fileMustExist: true, timeout: BUSY_TIMEOUT });
    db.pragma("trusted_schema = OFF");
    db.pragma("cell_size_check = ON");
    if (db.pragma("application_id", { simple: true }) !== APPLICATION_ID) throw foreign(path);
    requireSchema(db, path);
    return db;
  } catch (error) {
    db?.close();
    throw bundleError(error, path);
  }
}

/** Throws HL_BUNDLE where there is none that this version reads. */
export function readDescription(db: Database.Database, path: string): BundleDescription {
  const rows = db
    .prepare(`SELECT ${textColumn("text", MAX_DESCRIPTION_BYTES)} FROM description LIMIT 2`)
    .raw()
    .all();
  const [row] = rows;
  const text: unknown = rows.length === 1 && Array.isArray(row) ? row[0] : null;
  const description = typeof text === "string" ? parseDescription(text) : null;
  if (description === null) throw malformed(path, "its description is not of this version's making");
  return description;
}

/** Whatever reading or writing a bundle came to, in our terms: damage is HL_BUNDLE. */
export function bundleError(error: unknown, path: string): HookledgerError {
  if (error instanceof Database.SqliteError && error.code === "SQLITE_READONLY_ROLLBACK") {
    return new HookledgerError("HL_BUNDLE", `an export into the bundle ${path} was interrupted`, {
      hint: "Run the same hookledger export again: it goes on with it.",
    });
  }
  const known = storeError(error, path, "bundle");
  if (known.code === "HL_STORE_FULL") {
    return new HookledgerError(known.code, known.message, {
      cause: error,
      hint: "Free space on its disk; the same hookledger export goes on then.",
    });
  }
  if (known.code !== "HL_STORE_CORRUPT" && known.code !== "HL_STORE_FOREIGN") return known;
  return malformed(path, error instanceof Error ? error.message : "it cannot be read");
}

/** `detail`: of our own making, or SQLite's. */
export function malformed(path: string, detail: string): HookledgerError {
  return new HookledgerError("HL_BUNDLE", `the bundle ${path} is damaged: ${detail}`, {
    hint: "Export it again, or get another copy.",
  });
}

function foreign(path: string): HookledgerError {
  return new HookledgerError("HL_BUNDLE", `${path} is no evidence bundle; it was left as it is`, {
    hint: "hookledger export writes one, into a new file or into a bundle that is there.",
  });
}

function otherVersion(version: number, path: string): HookledgerError {
  return new HookledgerError("HL_STORE_VERSION", `the bundle ${path} has format ${version}`, {
    hint: `This build reads format ${BUNDLE_VERSION}; use a newer hookledger.`,
  });
}

/** No trigger, view or further table could be told from ours by name alone, so all of it is compared. */
function requireSchema(db: Database.Database, path: string): void {
  const found = schemaOf(db);
  OURS ??= ourSchema();
  if (found !== OURS) throw malformed(path, "its tables are not those of a bundle");
}

let OURS: string | undefined;

function ourSchema(): string {
  const db = new Database(":memory:");
  try {
    db.exec(SCHEMA);
    return schemaOf(db);
  } finally {
    db.close();
  }
}

/** Objects beyond this many are not ours, whatever they are. */
const MAX_OBJECTS = 16;
const MAX_SQL_BYTES = 4096;

function schemaOf(db: Database.Database): string {
  const sql = `iif(sql IS NULL, '', ${textColumn("sql", MAX_SQL_BYTES)})`;
  const rows = db
    .prepare(`SELECT type, name, tbl_name, ${sql} FROM sqlite_schema ORDER BY name LIMIT ${MAX_OBJECTS}`)
    .raw()
    .all();
  return JSON.stringify(rows);
}
