/** The codes of SQLite and of the operating system in our terms. */
import { type ErrorCode, HookledgerError } from "../../errors.js";

/** An error that crosses from the writer's thread. */
export type Failure = { readonly code: ErrorCode; readonly message: string; readonly hint?: string };

const CODES: ReadonlyMap<string, ErrorCode> = new Map([
  ["SQLITE_BUSY", "HL_STORE_LOCKED"],
  ["SQLITE_LOCKED", "HL_STORE_LOCKED"],
  ["SQLITE_PROTOCOL", "HL_STORE_LOCKED"],
  ["SQLITE_CORRUPT", "HL_STORE_CORRUPT"],
  ["SQLITE_CONSTRAINT", "HL_STORE_CORRUPT"],
  ["SQLITE_ERROR", "HL_STORE_CORRUPT"],
  ["SQLITE_NOTADB", "HL_STORE_FOREIGN"],
  ["SQLITE_READONLY", "HL_STORE_READONLY"],
  ["SQLITE_FULL", "HL_STORE_FULL"],
  // The index of the write-ahead log could not be made as large as it has to be.
  ["SQLITE_IOERR_SHMSIZE", "HL_STORE_FULL"],
  ["ENOSPC", "HL_STORE_FULL"],
  ["EDQUOT", "HL_STORE_FULL"],
  ["EROFS", "HL_STORE_READONLY"],
]);

const MESSAGES: ReadonlyMap<ErrorCode, { readonly says: string; readonly hint: string }> = new Map([
  ["HL_STORE_LOCKED", { says: "is locked by another process", hint: "Wait for the other process, or end it." }],
  ["HL_STORE_CORRUPT", { says: "is damaged", hint: "Restore it from a copy; what can still be read stays readable." }],
  ["HL_STORE_FOREIGN", { says: "is no hookledger ledger", hint: "Name another file with --store sqlite:<path>." }],
  ["HL_STORE_READONLY", { says: "cannot be written", hint: "Check the permissions of the file and of its folder." }],
  ["HL_STORE_FULL", { says: "has no room left", hint: "Free space on its disk; nothing of this append was written." }],
]);

/** `error` as it is if it is ours already; `path` is the file's, and `what` it is. */
export function storeError(error: unknown, path: string, what = "ledger"): HookledgerError {
  if (error instanceof HookledgerError) return error;
  const code = codeOf(error);
  const { says, hint } = MESSAGES.get(code) ?? { says: "cannot be used", hint: undefined };
  const detail = error instanceof Error ? `: ${error.message}` : "";
  return new HookledgerError(code, `the ${what} ${path} ${says}${detail}`, {
    cause: error,
    ...(hint === undefined ? {} : { hint }),
  });
}

export function toFailure(error: HookledgerError): Failure {
  const { code, message, hint } = error;
  return hint === undefined ? { code, message } : { code, message, hint };
}

export function fromFailure({ code, message, hint }: Failure): HookledgerError {
  return new HookledgerError(code, message, hint === undefined ? {} : { hint });
}

/** Another connection holds a lock that this one needs. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === "HL_STORE_LOCKED";
}

function codeOf(error: unknown): ErrorCode {
  if (!(error instanceof Error && "code" in error && typeof error.code === "string")) return "HL_STORE_UNAVAILABLE";
  // Extended codes of SQLite add a word: SQLITE_BUSY_SNAPSHOT.
  const primary = /^(SQLITE_)?[A-Z]+/.exec(error.code)?.[0] ?? "";
  return CODES.get(error.code) ?? CODES.get(primary) ?? "HL_STORE_UNAVAILABLE";
}
