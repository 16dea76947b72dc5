/** What a dispatch came to, as `dispatch` and `replay` print it in JSON: one shape for the live result and the recorded one. */
import type { HookErrorRecord, PlanItemDecision, Verdict } from "../core/result.js";
import type { DispatchResult } from "../dispatch/result.js";
import type { Json } from "../payload/canonical-json.js";
import { payloadToJson } from "../payload/payload.js";
import type { Replayed } from "../replay/replay.js";

export type ResultDocument = {
  readonly dispatchId: string;
  readonly point: string;
  readonly status: "decided" | "aborted" | "open";
  readonly decision: "allow" | "deny" | null;
  readonly decidedBy: string | null;
  readonly allowed: boolean;
  readonly abortCause: string | null;
  readonly reason: string | null;
  readonly payload: Json | null;
  readonly hookErrors: readonly HookErrorRecord[];
  readonly planDecisions: readonly PlanItemDecision[];
  readonly session: string | null;
  readonly turn: string | null;
  readonly events: number;
  readonly durationMs: number;
};

export function documentOfResult(result: DispatchResult): ResultDocument {
  return documentOf(result, result, result.payload === null ? null : payloadToJson(result.payload));
}

/** `payload`: the recorded one that the state goes on with, or null where there is none to show. */
export function documentOfReplay(replayed: Replayed, payload: Json | null): ResultDocument {
  return documentOf(replayed.verdict, replayed, payload);
}

function documentOf(
  verdict: Omit<Verdict, "payload">,
  facts: Pick<ResultDocument, "session" | "turn" | "events" | "durationMs">,
  payload: Json | null,
): ResultDocument {
  return {
    dispatchId: verdict.dispatchId,
    point: verdict.point,
    status: verdict.status,
    decision: verdict.decision,
    decidedBy: verdict.decidedBy,
    allowed: verdict.allowed,
    abortCause: verdict.abortCause,
    reason: verdict.reason,
    payload,
    hookErrors: verdict.hookErrors.map(({ subscriber, mode, category, message }) => ({
      subscriber,
      mode,
      category,
      message,
    })),
    planDecisions: verdict.planDecisions.map(({ itemId, decision, decidedBy, policyDecision, reason }) => ({
      itemId,
      decision,
      decidedBy,
      policyDecision,
      reason,
    })),
    session: facts.session,
    turn: facts.turn,
    events: facts.events,
    durationMs: Math.round(facts.durationMs * 1000) / 1000,
  };
}
