/** Runs of hooks: handlers asked, composed and recorded. */

import type { HookErrorRecord } from "../core/result.js";
import type { ErrorCode } from "../errors.js";
import type { MessageHookName } from "./hooks.js";
import type { ContextOf, EventOf, ResultOf } from "./types.js";

export type RunOptions = {
  /** Ends the run as aborted; nobody else is called. */
  readonly signal?: AbortSignal;
  /** Asks this plugin only. */
  readonly onlyPlugin?: string;
  /**
   * true: resolves as soon as the handlers have said what they say; that the ledger has it is then `stored`'s to tell. For a host that waits
   * for a later barrier of the same store anyway.
   */
  readonly deferred?: boolean;
};

type Common = {
  /** Null where nobody was to be asked: that is no run, and nothing is recorded. */
  readonly dispatchId: string | null;
  /** Every handler that failed, in the order of the run. */
  readonly failures: readonly HookErrorRecord[];
  /** false: the ledger could not be written, and the run counts all the same. Of a deferred run: not yet. */
  readonly recorded: boolean;
  readonly storeError: ErrorCode | null;
  /** Resolves once the ledger has it, with null, or with why it has not. Never rejects. */
  readonly stored: Promise<ErrorCode | null>;
};

/** Aborted by its signal: counts as if nobody had said anything, and its caller is to stop. */
type Cut = { readonly end: "aborted" };

export type ClaimRun<H extends MessageHookName> = Common &
  (
    | { readonly end: "claimed"; readonly by: string; readonly result: NonNullable<ResultOf<H>> & object }
    | { readonly end: "declined" }
    | Cut
  );

export type RewriteRun = Common &
  (
    | { readonly end: "sent"; readonly content: string }
    | {
        readonly end: "cancelled";
        readonly by: string;
        readonly cancelReason?: string;
        readonly metadata?: { readonly [key: string]: unknown };
      }
    | { readonly end: "blocked"; readonly by: string }
    | Cut
  );

export type WaterfallRun = Common &
  (
    | { readonly end: "sent"; readonly payload: EventOf<"reply_payload_sending">["payload"] }
    | { readonly end: "cancelled"; readonly by: string; readonly reason?: string }
    | { readonly end: "blocked"; readonly by: string }
    | Cut
  );

export type NotifyRun = Common & ({ readonly end: "notified" } | Cut);

export type ClaimHook = "inbound_claim" | "before_dispatch" | "reply_dispatch" | "before_agent_reply";
export type NotifyHook = "message_received" | "message_sent";

/** One method a composition. None ever rejects but for a fault of ours (HL_INTERNAL). */
export interface HookRuns {
  claim<H extends ClaimHook>(
    hook: H,
    event: EventOf<H>,
    context: ContextOf<H>,
    options?: RunOptions,
  ): Promise<ClaimRun<H>>;
  rewrite(
    event: EventOf<"message_sending">,
    context: ContextOf<"message_sending">,
    options?: RunOptions,
  ): Promise<RewriteRun>;
  waterfall(
    event: EventOf<"reply_payload_sending">,
    context: ContextOf<"reply_payload_sending">,
    options?: RunOptions,
  ): Promise<WaterfallRun>;
  notify<H extends NotifyHook>(
    hook: H,
    event: EventOf<H>,
    context: ContextOf<H>,
    options?: RunOptions,
  ): Promise<NotifyRun>;
  /** What a run would do: is anybody to be asked? */
  hasHooks<H extends MessageHookName>(
    hook: H,
    context: Partial<ContextOf<H>>,
    options?: Pick<RunOptions, "onlyPlugin">,
  ): boolean;
}
