/** SQLite files before SQLite gets to see them: whether a file is one, and how a new one comes to be. */
import { randomUUID } from "node:crypto";
import {
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
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import Database from "better-sqlite3";

/** The start of an SQLite file. */
const MAGIC = "SQLite format 3\0";
const HEADER_BYTES = 100;
const FORMAT_VERSIONS_AT = 18;
const USER_VERSION_AT = 60;
const APPLICATION_ID_AT = 68;

export type DatabaseHeader =
  | {
      readonly kind: "database";
      readonly applicationId: number;
      readonly userVersion: number;
      /** Would SQLite look for a write-ahead log beside it, and make one? */
      readonly writeAheadLog: boolean;
    }
  | { readonly kind: "no database" }
  /** Not looked at: this process has the file open already. */
  | { readonly kind: "open here" };

/** Leaves no trace. Throws what the operating system does. */
export function databaseHeader(path: string): DatabaseHeader {
  // Closing a descriptor drops every POSIX lock that this process holds on the file: SQLite's own, too.
  if (isOpenHere(path)) return { kind: "open here" };
  const header = readStart(path, HEADER_BYTES);
  if (header.length < HEADER_BYTES || !header.toString("latin1").startsWith(MAGIC)) return { kind: "no database" };
  return {
    kind: "database",
    applicationId: header.readUInt32BE(APPLICATION_ID_AT),
    userVersion: header.readUInt32BE(USER_VERSION_AT),
    writeAheadLog: header[FORMAT_VERSIONS_AT] !== 1 || header[FORMAT_VERSIONS_AT + 1] !== 1,
  };
}

/**
 * Made whole under another name first, 0600 in a folder 0700, so that nobody ever meets half a database; the first of several
 * creators wins. Throws what SQLite and the operating system do.
 */
export function createDatabase(path: string, build: (db: Database.Database) => void): void {
  const draft = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    makePrivateFolder(dirname(path));
    closeSync(openSync(draft, "wx", 0o600));
    const db = new Database(draft);
    try {
      // Nothing is at stake before the file has its name: it is synced whole, once.
      db.pragma("synchronous = OFF");
      build(db);
    } finally {
      db.close();
    }
    sync(draft);
    publish(draft, path);
    sync(dirname(path));
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

export function isErrno(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && "code" in error && codes.some((code) => code === error.code);
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
