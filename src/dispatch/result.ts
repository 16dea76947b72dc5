import type { AbortCause } from "../core/events.js";
import { type HookErrorRecord, type PlanItemDecision, verdictOf } from "../core/result.js";
import type { Concluded } from "../core/state.js";
import type { ErrorCode } from "../errors.js";
import type { Payload } from "../payload/payload.js";

type Common = {
  readonly dispatchId: string;
  readonly point: string;
  readonly hookErrors: readonly HookErrorRecord[];
  readonly session: string | null;
  readonly turn: string | null;
  /** How many events the dispatch had come to when the result was made. */
  readonly events: number;
  readonly durationMs: number;
  /** false: the ledger could not be written; a decision is then given only where `on_store_failure = "continue"` says so. */
  readonly recorded: boolean;
  /** Why it is not recorded, else null. */
  readonly storeError: ErrorCode | null;
};

export type DecidedResult = Common & {
  readonly status: "decided";
  readonly decision: "allow" | "deny";
  readonly decidedBy: string;
  /** The one truth: decided ALLOW, and at plan-ready every item is ALLOW. */
  readonly allowed: boolean;
  readonly abortCause: null;
  readonly reason: string | null;
  /** What to go on with; on a deny, what the denier saw. */
  readonly payload: Payload;
  readonly planDecisions: readonly PlanItemDecision[];
};

export type AbortedResult = Common & {
  readonly status: "aborted";
  readonly decision: null;
  readonly decidedBy: null;
  readonly allowed: false;
  readonly abortCause: AbortCause;
  readonly reason: string | null;
  /** There is no usable payload. */
  readonly payload: null;
  readonly planDecisions: readonly PlanItemDecision[];
};

export type DispatchResult = DecidedResult | AbortedResult;

type ResultFacts = Pick<Common, "session" | "turn" | "durationMs" | "storeError">;

/** The result of a concluded state; `payload` is the one that the state's author made. */
export function resultOf(state: Concluded, payload: Payload, facts: ResultFacts): DispatchResult {
  const verdict = verdictOf(state);
  const { session, turn, durationMs, storeError } = facts;
  const recorded = storeError === null;
  switch (state.kind) {
    case "aborted":
      return aborted({ ...facts, ...verdict, recorded, events: state.revision }, state.aborted.cause, verdict.reason);
    case "decided":
      return {
        dispatchId: verdict.dispatchId,
        point: verdict.point,
        status: "decided",
        decision: state.decided.decision,
        decidedBy: state.decided.decidedBy,
        allowed: verdict.allowed,
        abortCause: null,
        reason: verdict.reason,
        payload,
        hookErrors: verdict.hookErrors,
        planDecisions: verdict.planDecisions,
        session,
        turn,
        events: state.revision,
        durationMs,
        recorded,
        storeError,
      };
  }
}

/** What the caller is told when the ledger could not keep what the dispatch came to. */
export function unrecordedResult(result: DispatchResult, cause: AbortCause, reason: string): AbortedResult {
  return aborted(result, cause, reason);
}

function aborted(common: Common, abortCause: AbortCause, reason: string | null): AbortedResult {
  return {
    dispatchId: common.dispatchId,
    point: common.point,
    status: "aborted",
    decision: null,
    decidedBy: null,
    allowed: false,
    abortCause,
    reason,
    payload: null,
    hookErrors: common.hookErrors,
    planDecisions: [],
    session: common.session,
    turn: common.turn,
    events: common.events,
    durationMs: common.durationMs,
    recorded: common.recorded,
    storeError: common.storeError,
  };
}
