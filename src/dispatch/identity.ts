import { HookledgerError } from "../errors.js";
import type { Redactor } from "../payload/redaction.js";
import { isUlid } from "../store/ulid.js";

/** bytes, of a session or turn id */
const MAX_LABEL_BYTES = 256;
const CONTROL = /\p{Cc}/u;

/**
 * An id that the harness gave; the empty text counts as none. Throws HL_LIMIT_ID, also for one that holds what is to be redacted:
 * an id is recorded and looked up as it is.
 */
export function requireLabel(
  name: "session" | "turn",
  label: string | undefined,
  redactor?: Redactor,
): string | undefined {
  if (label === undefined || label === "") return undefined;
  if (Buffer.byteLength(label) > MAX_LABEL_BYTES) {
    throw new HookledgerError("HL_LIMIT_ID", `the ${name} id is longer than ${MAX_LABEL_BYTES} bytes`);
  }
  if (CONTROL.test(label) || !label.isWellFormed()) {
    throw new HookledgerError("HL_LIMIT_ID", `the ${name} id has a control character or is not well-formed text`);
  }
  if (redactor !== undefined && redactor.text(label) !== label) {
    throw new HookledgerError("HL_LIMIT_ID", `the ${name} id holds what redact or env() keeps out of the ledger`);
  }
  return label;
}

/** A ULID in upper case. Throws HL_DISPATCH_ID. */
export function requireDispatchId(id: string): string {
  const upper = id.toUpperCase();
  if (isUlid(upper)) return upper;
  throw new HookledgerError("HL_DISPATCH_ID", "the dispatch id is no ULID", {
    hint: "Give 26 characters of Crockford's base 32, for example 01ARZ3NDEKTSV4RRFFQ69G5FAV, or leave it out.",
  });
}
