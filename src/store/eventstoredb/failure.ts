/** What the client and the server report, in our terms. Nothing of the client's own messages is passed on: they may quote anything. */
import * as esdb from "@eventstore/db-client";
import { type ErrorCode, HookledgerError } from "../../errors.js";
import type { Endpoint } from "./address.js";
import { unreachable } from "./unreachable.js";

/** An error that crosses between threads. */
export type Failure = { readonly code: ErrorCode; readonly message: string; readonly hint?: string };

/** A call that was not answered within our own time. */
export class Overdue extends Error {}

const PERMISSION_DENIED = 7;
const UNAUTHENTICATED = 16;

/** Of an append that was handed to the client: unless the server said what became of it, nobody knows. */
export function appendFailure(error: unknown, stream: string, place: string): HookledgerError {
  if (error instanceof HookledgerError) return error;
  if (error instanceof esdb.WrongExpectedVersionError || error instanceof esdb.StreamDeletedError) {
    const says = error instanceof esdb.StreamDeletedError ? "was deleted for good" : "is not at the expected revision";
    return new HookledgerError("HL_STORE_CONFLICT", `${stream} ${says}`);
  }
  if (error instanceof esdb.MaxAppendSizeExceededError) {
    return new HookledgerError("HL_LIMIT_APPEND", `${place} takes no append of this size`, {
      hint: "Set MaxAppendSize of the server to 1 MiB, its default, or more.",
    });
  }
  if (isDenied(error)) return denied(`${place} does not let this user write ${stream}`);
  return new HookledgerError(
    "HL_STORE_AMBIGUOUS",
    `${place} did not say what became of an append to ${stream} (${kindOf(error)})`,
    {
      hint: "It may or may not have been written: read the stream back, or repeat the identical append.",
    },
  );
}

/** Of anything else: a read, a look for the server. */
export function callFailure(error: unknown, place: string): HookledgerError {
  if (error instanceof HookledgerError) return error;
  if (isDenied(error)) return denied(`${place} does not let this user read what is asked for`);
  return unavailable(`EventStoreDB at ${place} does not answer (${kindOf(error)})`);
}

export function unavailable(message: string): HookledgerError {
  return new HookledgerError("HL_STORE_UNAVAILABLE", message, {
    hint: "Check that the server runs, that host and port are right, and that tls=false is there if and only if it is insecure.",
  });
}

export function closed(): HookledgerError {
  return new HookledgerError("HL_STORE_CLOSED", "the ledger is closed");
}

/** Is a connection on which this happened to an append of no more use? What the server says of one append alone has no gRPC status. */
export function breaksConnection(error: unknown): boolean {
  if (error instanceof HookledgerError) return false;
  if (error instanceof esdb.WrongExpectedVersionError || error instanceof esdb.StreamDeletedError) return false;
  return !isCommandError(error) || error.code !== undefined;
}

/** Was the connection itself lost, and not only the call? */
export function isLost(error: unknown): boolean {
  if (error instanceof HookledgerError) return false;
  return !isCommandError(error) || error instanceof esdb.UnavailableError || error instanceof esdb.NotLeaderError;
}

export function leaderOf(error: unknown): Endpoint | undefined {
  return error instanceof esdb.NotLeaderError ? error.leader : undefined;
}

export function isMissing(error: unknown): boolean {
  return error instanceof esdb.StreamNotFoundError || error instanceof esdb.StreamDeletedError;
}

export function toFailure(error: unknown): Failure {
  if (!(error instanceof HookledgerError)) return { code: "HL_INTERNAL", message: "the ledger's thread failed" };
  const { code, message, hint } = error;
  return hint === undefined ? { code, message } : { code, message, hint };
}

export function fromFailure({ code, message, hint }: Failure): HookledgerError {
  return new HookledgerError(code, message, hint === undefined ? {} : { hint });
}

function denied(message: string): HookledgerError {
  return new HookledgerError("HL_STORE_DENIED", message, {
    hint: "Check user name and password, and the rights on the streams; subscriptions and scans read $all.",
  });
}

function isDenied(error: unknown): boolean {
  if (error instanceof esdb.AccessDeniedError) return true;
  return isCommandError(error) && (error.code === PERMISSION_DENIED || error.code === UNAUTHENTICATED);
}

/** A word for it that is ours or the client's, never a text of its making. */
function kindOf(error: unknown): string {
  if (error instanceof Overdue) return "no answer in time";
  if (error instanceof esdb.UnavailableError) return unreachable(error.message);
  if (isCommandError(error)) return error.type;
  return "no connection";
}

function isCommandError(error: unknown): error is esdb.CommandError {
  return error instanceof Error && esdb.isCommandError(error);
}
