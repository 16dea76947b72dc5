/** Ledger files: where they are, whether they are ours, and how they come to be. */
import { randomUUID } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  copyFileSync,
  fstatSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import { storeError } from "./failure.js";
import { APPLICATION_ID, SCHEMA, SCHEMA_VERSION } from "./schema.js";

/** The start of an SQLite file. */
const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
const USER_VERSION_AT = 60;
const APPLICATION_ID_AT = 68;

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
  if (version === SCHEMA_VERSION) return;
  throw new HookledgerError("HL_STORE_VERSION", `the ledger ${path} has format ${version}`, {
    hint: `This build reads format ${SCHEMA_VERSION}; use a newer hookledger.`,
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
  // Closing a descriptor drops every POSIX lock that this process holds on the file: SQLite's own, too.
  if (isOpenHere(path)) return;
  let header: Buffer;
  try {
    header = readStart(path, HEADER_BYTES);
  } catch (error) {
    throw storeError(error, path);
  }
  if (header.length < HEADER_BYTES || !header.toString("latin1").startsWith(MAGIC)) throw foreign(path);
  requireOurs(header.readUInt32BE(APPLICATION_ID_AT), header.readUInt32BE(USER_VERSION_AT), path);
}

function readStart(path: string, bytes: number): Buffer {
  const file = openSync(path, "r");
  try {
    const start = Buffer.alloc(bytes);
    return start.subarray(0, readSync(file, start, 0, bytes, 0));
  } finally {
    closeSync(file);
  }
}

/** Has any thread of this process the file open? False where the system does not list descriptors. */
function isOpenHere(path: string): boolean {
  const wanted = statSync(path);
  return descriptors().some((descriptor) => {
    try {
      const { dev, ino } = fstatSync(descriptor);
      return dev === wanted.dev && ino === wanted.ino;
    } catch {
      return false;
    }
  });
}

function descriptors(): number[] {
  try {
    return readdirSync("/dev/fd").map(Number);
  } catch {
    return [];
  }
}

/** Made whole under another name first, so that nobody ever meets half a ledger; the first of several creators wins. */
function createLedger(path: string): void {
  const draft = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    makePrivateFolder(dirname(path));
    closeSync(openSync(draft, "wx", 0o600));
    const db = new Database(draft);
    try {
      // Nothing is at stake before the file has its name: it is synced whole, once.
      db.pragma("synchronous = OFF");
      db.pragma("journal_mode = WAL");
      db.exec(SCHEMA);
    } finally {
      db.close();
    }
    sync(draft);
    publish(draft, path);
    sync(dirname(path));
  } catch (error) {
    throw isErrno(error, "EACCES", "EROFS", "EPERM") ? readonly(path, error) : storeError(error, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Creates a folder and its missing parents, 0700. */
export function makePrivateFolder(path: string): void {
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) sync(dirname(made));
}

function publish(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if (isErrno(error, "EEXIST")) return;
    if (!isErrno(error, "EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK")) throw error;
    // A file system without hard links.
    copyFileSync(draft, path, constants.COPYFILE_EXCL);
  }
}

/** Makes a file, or the entries of a folder, survive power loss. Some systems cannot open a folder; they need no such thing. */
function sync(path: string): void {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch (error) {
    if (isErrno(error, "EISDIR", "EPERM", "EACCES")) return;
    throw error;
  }
  try {
    fsyncSync(descriptor);
  } catch (error) {
    if (!isErrno(error, "EINVAL", "EPERM", "EISDIR", "EBADF")) throw error;
  } finally {
    closeSync(descriptor);
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

function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.some((code) => code === error.code);
}
