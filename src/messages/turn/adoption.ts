/** Custody of a turn's input: the host's until a takeover has adopted it, and the host's again where that fails. */

import { type ErrorCode, HookledgerError } from "../../errors.js";
import type { StartupWatchdog } from "./watchdog.js";

/** A takeover's handle, of one hook call. */
export interface TurnAdoption {
  /**
   * To be awaited right before the input is handed to a backend. Once it resolves, the input is the takeover's, and never comes again.
   * Whoever calls, and however often: one adoption, one end. Rejects with HL_ADOPTION or HL_TURN_STALLED, which is to be passed on: the
   * whole dispatch is rejected in any case, and the input may come again.
   */
  adopt(): Promise<void>;
  /** Throws HL_TURN_OVER once the hook call or its dispatch is over, and what a failed adoption rejected with. */
  assertCurrent(): void;
}

/** The input as its host holds it. */
export type Ingress = {
  /** The host's word that the input need not come again; asked once at most. Rejects, or throws, where it cannot give it. */
  acknowledge(): void | PromiseLike<void>;
  /** Aborted where the host's own claim on the input is lost. Counts until the input is adopted. */
  readonly signal?: AbortSignal;
  /** Stopped by adoption, by the start of a run, and by the end of a dispatch that took the input. */
  readonly watchdog?: StartupWatchdog;
  /** Called once where the input was not handed over after all, also if that was acknowledged: it may come again. */
  giveBack?(): void;
};

/** Was the input neither taken nor answered, so that it is to come again? */
export function isInputRetryable(error: unknown): boolean {
  return error instanceof HookledgerError && RETRYABLE.has(error.code);
}

const RETRYABLE: ReadonlySet<ErrorCode> = new Set(["HL_ADOPTION", "HL_TURN_STALLED"]);

export function notAdopted(why: string, cause?: unknown): HookledgerError {
  return new HookledgerError("HL_ADOPTION", `the input was not handed over: ${why}`, {
    cause,
    hint: "It stays the host's, and may come again.",
  });
}
