/** Ledger files: where they are, whether they are ours, and how they come to be. */
import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { HookledgerError } from "../../errors.js";
import { createDatabase, type DatabaseHeader, databaseHeader, isErrno } from "./database-file.js";
import { storeError } from "./failure.js";
import { APPLICATION_ID, isKnownVersion, SCHEMA, SCHEMA_VERSION } from "./schema.js";

/**
 * The real path of an existing ledger that this build can read. Opens nothing for writing and leaves no trace.
 * Throws HL_STORE_MISSING, HL_STORE_FOREIGN, HL_STORE_VERSION, HL_STORE_CORRUPT, HL_STORE_UNAVAILABLE.
 */
export function findLedger(path: string): string {
  const real = realPath(path);
  if (real === null) {
    throw new HookledgerError("HL_STORE_MISSING", `there is no ledger at ${path}`, {
      hint: "The first dispatch creates it; check --store and HOOKLEDGER_STORE.",
    });
  }
  if (!statSync(real).isFile()) throw foreign(path);
  identify(real);
  return real;
}

/** As `findLedger`, but creates a ledger that is missing. Also throws HL_STORE_READONLY. */
export function findOrCreateLedger(path: string): string {
  if (realPath(path) === null) createLedger(resolve(path));
  const real = findLedger(path);
  requireWritable(real, path);
  requireWritable(dirname(real), path);
  return real;
}

/** Throws HL_STORE_FOREIGN or HL_STORE_VERSION, as `application_id` and `user_version` say. */
export function requireOurs(applicationId: unknown, version: unknown, path: string): void {
  if (applicationId !== APPLICATION_ID) throw foreign(path);
  if (isKnownVersion(version)) return;
  throw new HookledgerError("HL_STORE_VERSION", `the ledger ${path} has format ${version}`, {
    hint: `This build reads formats up to ${SCHEMA_VERSION}; use a newer hookledger.`,
  });
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw storeError(error, path);
  }
}

/** Judges the file by its header, before SQLite, which might make files beside it, gets to see it. */
function identify(path: string): void {
  let header: DatabaseHeader;
  try {
    header = databaseHeader(path);
  } catch (error) {
    throw storeError(error, path);
  }
  if (header.kind === "no database") throw foreign(path);
  if (header.kind === "database") requireOurs(header.applicationId, header.userVersion, path);
}

function createLedger(path: string): void {
  try {
    createDatabase(path, (db) => {
      db.pragma("journal_mode = WAL");
      db.exec(SCHEMA);
    });
  } catch (error) {
    throw isErrno(error, "EACCES", "EROFS", "EPERM") ? readonly(path, error) : storeError(error, path);
  }
}

function requireWritable(real: string, path: string): void {
  try {
    accessSync(real, constants.W_OK);
  } catch (error) {
    throw readonly(path, error);
  }
}

function foreign(path: string): HookledgerError {
  return new HookledgerError("HL_STORE_FOREIGN", `${path} is no hookledger ledger; it was left as it is`, {
    hint: "Name another file with --store sqlite:<path>.",
  });
}

function readonly(path: string, cause: unknown): HookledgerError {
  return new HookledgerError("HL_STORE_READONLY", `the ledger ${path} cannot be written`, {
    cause,
    hint: "Check the permissions of the file and of its folder.",
  });
}
