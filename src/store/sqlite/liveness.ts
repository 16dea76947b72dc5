/**
 * Is a writer alive? Each open writer holds an exclusive transaction on its own lock file, which the operating system
 * takes back when the process ends, however it ends. A missing file means dead: names are never used twice.
 */
import { closeSync, existsSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import Database from "better-sqlite3";
import { isUlid } from "../ulid.js";
import { makePrivateFolder } from "./database-file.js";
import { isBusy } from "./failure.js";

const SUFFIX = ".lock";

export type WriterLock = {
  /** Lets go and removes the file. Idempotent. */
  release(): void;
};

/** Takes the lock of a new writer (a ULID). */
export function holdWriterLock(ledger: string, writer: string): WriterLock {
  makePrivateFolder(folderOf(ledger));
  const path = lockFile(ledger, writer);
  // Under its final name only once it is locked: nobody can take it for a dead writer's.
  const draft = `${path}.new`;
  closeSync(openSync(draft, "wx", 0o600));
  const db = new Database(draft, { timeout: 0 });
  db.pragma("journal_mode = MEMORY");
  db.exec("BEGIN EXCLUSIVE");
  renameSync(draft, path);
  return {
    release() {
      if (!db.open) return;
      rmSync(path, { force: true });
      db.close();
    },
  };
}

/** "unknown" when the lock file cannot be read. Right in the writer's own process, too. */
export function writerStateOf(ledger: string, writer: string): "alive" | "dead" | "unknown" {
  return isUlid(writer) ? stateOf(lockFile(ledger, writer)) : "dead";
}

function stateOf(path: string): "alive" | "dead" | "unknown" {
  if (!existsSync(path)) return "dead";
  try {
    const db = new Database(path, { readonly: true, fileMustExist: true, timeout: 0 });
    try {
      // A shared lock is enough to find out, and several askers do not take each other for the writer.
      db.prepare("SELECT count(*) FROM sqlite_schema").get();
      return "dead";
    } finally {
      db.close();
    }
  } catch (error) {
    if (isBusy(error)) return "alive";
    return existsSync(path) ? "unknown" : "dead";
  }
}

/** Writers whose lock files are there and held by nobody. */
export function deadWritersOf(ledger: string): readonly string[] {
  return lockFiles(ledger)
    .map((name) => basename(name, SUFFIX))
    .filter((writer) => isUlid(writer) && stateOf(lockFile(ledger, writer)) === "dead");
}

/** Removes the lock files of those that are dead. */
export function forgetWritersOf(ledger: string, writers: readonly string[]): void {
  for (const writer of writers) {
    if (writerStateOf(ledger, writer) === "dead" && isUlid(writer)) rmSync(lockFile(ledger, writer), { force: true });
  }
}

/** None where the folder is not there: nobody has written yet. */
function lockFiles(ledger: string): readonly string[] {
  const folder = folderOf(ledger);
  return existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith(SUFFIX)) : [];
}

function folderOf(ledger: string): string {
  return `${ledger}.writers`;
}

function lockFile(ledger: string, writer: string): string {
  return join(folderOf(ledger), `${writer}${SUFFIX}`);
}
