/** What the process's exit code means. */
import { randomBytes } from "node:crypto";
import { ERROR_CODES, type ErrorClass, type ErrorCode, HookledgerError } from "../errors.js";

export const EXIT = {
  done: 0,
  internal: 1,
  usage: 2,
  denied: 3,
  aborted: 4,
  divergence: 5,
  store: 6,
  nothing: 7,
  /** Decided ALLOW, but not for every plan item. */
  itemwise: 8,
  interrupted: 130,
  terminated: 143,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const BY_CLASS: Readonly<Record<ErrorClass, ExitCode>> = {
  internal: EXIT.internal,
  usage: EXIT.usage,
  open: EXIT.aborted,
  divergence: EXIT.divergence,
  store: EXIT.store,
  nothing: EXIT.nothing,
};

export function exitCodeOf(code: ErrorCode): ExitCode {
  return BY_CLASS[ERROR_CODES[code]];
}

/** Whatever was thrown, as one of our errors: what is none of ours is a bug, and gets an id to search for. */
export function asReported(thrown: unknown): HookledgerError {
  if (thrown instanceof HookledgerError && thrown.code !== "HL_INTERNAL") return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new HookledgerError("HL_INTERNAL", `internal error ${randomBytes(4).toString("hex")}: ${message}`, {
    cause: thrown,
    hint: "This is a bug in hookledger. Run it again with --verbose, and report the id with what is printed.",
  });
}
