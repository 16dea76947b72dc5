/** What a store or anything else threw, in the kernel's own words. */
import { type ErrorCode, HookledgerError } from "../errors.js";
import { thrownText } from "../subscribers/fault.js";

export function codeOf(error: unknown): ErrorCode {
  return error instanceof HookledgerError ? error.code : "HL_INTERNAL";
}

export function said(error: unknown): string {
  return error instanceof HookledgerError ? `${error.code}: ${error.message}` : thrownText(error);
}
