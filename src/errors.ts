/**
 * Every error that hookledger raises itself carries one of these codes; each has an entry in docs/errors.md (a test keeps
 * the two in step). The value is the class that decides the process exit code, see `src/cli/exit.ts`.
 */
export const ERROR_CODES = {
  HL_INTERNAL: "internal",
  HL_OUTPUT: "internal",
  HL_USAGE: "usage",
  HL_CONFIG: "usage",
  HL_CONFIG_UNREADABLE: "usage",
  HL_SOURCE_UNSUPPORTED: "usage",
  HL_SUBSCRIBER_LOAD: "usage",
  HL_PLUGIN_START: "usage",
  HL_PLUGIN: "usage",
  HL_ENV_UNSET: "usage",
  HL_PAYLOAD: "usage",
  HL_PAYLOAD_UNREADABLE: "usage",
  HL_DISPATCH_ID: "usage",
  HL_DISPATCH_CONFLICT: "usage",
  HL_DISPATCH_OPEN: "open",
  HL_KERNEL_CLOSED: "usage",
  HL_LIMIT_PAYLOAD: "usage",
  HL_LIMIT_DEPTH: "usage",
  HL_LIMIT_CONFIG: "usage",
  HL_LIMIT_SUBSCRIBERS: "usage",
  HL_LIMIT_ID: "usage",
  HL_LIMIT_EVENT: "store",
  HL_LIMIT_APPEND: "store",
  HL_LIMIT_OBSERVERS: "usage",
  HL_CURSOR: "usage",
  HL_AMBIGUOUS_ID: "usage",
  HL_NOT_FOUND: "nothing",
  HL_DIVERGENCE: "divergence",
  HL_STORE_URL: "usage",
  HL_STORE_MISSING: "store",
  HL_STORE_FOREIGN: "store",
  HL_STORE_VERSION: "store",
  HL_STORE_LOCKED: "store",
  HL_STORE_READONLY: "store",
  HL_STORE_FULL: "store",
  HL_STORE_CORRUPT: "store",
  HL_STORE_CLOSED: "store",
  HL_STORE_UNAVAILABLE: "store",
  HL_STORE_CONFLICT: "store",
  HL_STORE_AMBIGUOUS: "store",
  HL_STORE_BACKLOG: "store",
  HL_STORE_DENIED: "store",
  HL_BUNDLE: "store",
  HL_IMPORT_CONFLICT: "divergence",
  HL_ADOPTION: "usage",
  HL_TURN_STALLED: "usage",
  HL_TURN_OVER: "usage",
  HL_TRANSCRIPT_REPLACED: "usage",
  HL_LIMIT_DELIVERY: "store",
  HL_DELIVERY_STATE: "usage",
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;
export type ErrorClass = (typeof ERROR_CODES)[ErrorCode];

/** A place in a text file: 1-based line and column, the column counted in Unicode characters. */
export type Place = { readonly file: string; readonly line: number; readonly col: number };

export type ErrorDetails = {
  readonly place?: Place;
  /** What the reader can do about it, one sentence. */
  readonly hint?: string;
  readonly cause?: unknown;
};

/** The one error class of the product. `message` says what happened; it never holds a secret or a stack. */
export class HookledgerError extends Error {
  override readonly name = "HookledgerError";
  readonly code: ErrorCode;
  readonly place: Place | undefined;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.place = details.place;
    this.hint = details.hint;
  }
}
