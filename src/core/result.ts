/** What a dispatch came to: one reading of the state, for the live caller and for replay. */
import type { AbortCause, Category, Digest, ItemDecision, Mode, PolicyItem, Subscriber } from "./events.js";
import { type Begun, failureOf, type Slot } from "./state.js";

export type HookErrorRecord = {
  readonly subscriber: string;
  readonly mode: Mode;
  readonly category: Category;
  readonly message: string;
};

export type PlanItemDecision = {
  readonly itemId: string;
  readonly decision: ItemDecision;
  readonly decidedBy: string;
  /** What the kernel's policy said of the item by itself. */
  readonly policyDecision: ItemDecision;
  readonly reason: string | null;
};

export type Verdict = {
  readonly dispatchId: string;
  readonly point: string;
  readonly status: "open" | "decided" | "aborted";
  readonly decision: "allow" | "deny" | null;
  readonly decidedBy: string | null;
  /** The one truth: decided ALLOW, and every plan item is ALLOW. */
  readonly allowed: boolean;
  readonly abortCause: AbortCause | null;
  /** Null also for a rewrite that was cancelled: its reason is a payload. */
  readonly reason: string | null;
  /** What the caller goes on with; null unless decided. */
  readonly payload: Digest | null;
  readonly hookErrors: readonly HookErrorRecord[];
  readonly planDecisions: readonly PlanItemDecision[];
};

export function verdictOf(state: Begun): Verdict {
  switch (state.kind) {
    case "open":
      return undecided(state, "open", null, null);
    case "aborted": {
      const { cause, error } = state.aborted;
      return undecided(state, "aborted", cause, error === undefined ? null : explained(error));
    }
    case "decided": {
      const { decision, decidedBy, payload } = state.decided;
      const planDecisions = planDecisionsOf(state, decision, decidedBy);
      return {
        dispatchId: state.started.dispatchId,
        point: state.started.point,
        status: "decided",
        decision,
        decidedBy,
        allowed: decision === "allow" && planDecisions.every((item) => item.decision === "allow"),
        abortCause: null,
        reason: decision === "deny" ? denialReason(state, decidedBy) : null,
        payload,
        hookErrors: hookErrorsOf(state),
        planDecisions,
      };
    }
  }
}

function undecided(
  state: Begun,
  status: "open" | "aborted",
  abortCause: AbortCause | null,
  reason: string | null,
): Verdict {
  return {
    dispatchId: state.started.dispatchId,
    point: state.started.point,
    status,
    decision: null,
    decidedBy: null,
    allowed: false,
    abortCause,
    reason,
    payload: null,
    hookErrors: hookErrorsOf(state),
    planDecisions: [],
  };
}

/** One for every failed subscriber, in chain order. The kernel's own policy is no subscriber: its failure is the reason of the deny. */
export function hookErrorsOf({ started, slots }: Begun): readonly HookErrorRecord[] {
  const errors: HookErrorRecord[] = [];
  for (const subscriber of started.subscribers) {
    const error = hookErrorOf(subscriber, slots[subscriber.index]);
    if (error !== null) errors.push(error);
  }
  return errors;
}

export function hookErrorOf({ id, mode }: Subscriber, slot: Slot | undefined): HookErrorRecord | null {
  const error = typeof slot === "object" && mode !== "policy" ? failureOf(slot) : null;
  return error === null ? null : { subscriber: id, mode, ...error };
}

function planDecisionsOf({ items }: Begun, decision: "allow" | "deny", decidedBy: string): readonly PlanItemDecision[] {
  const deniedByPlugin = decision === "deny" && decidedBy !== "kernel:policy";
  return (items ?? []).map((item) => planDecision(item, deniedByPlugin ? decidedBy : null));
}

/** A later DENY by a plugin denies every item; policy's own verdict stays readable. */
function planDecision(item: PolicyItem, plugin: string | null): PlanItemDecision {
  const own = { itemId: item.itemId, policyDecision: item.decision };
  return plugin === null
    ? { ...own, decision: item.decision, decidedBy: item.decidedBy, reason: item.reason ?? null }
    : { ...own, decision: "deny", decidedBy: plugin, reason: null };
}

function denialReason({ started, slots, items }: Begun, decidedBy: string): string | null {
  const slot = slots[started.subscribers.find(({ id }) => id === decidedBy)?.index ?? -1];
  if (typeof slot !== "object") return null;
  const error = failureOf(slot);
  if (error !== null) return explained(error);
  if (slot.type === "outcome" && slot.class === "policy")
    return `policy denied every item of the plan (${items?.length ?? 0})`;
  return slot.type === "outcome" && (slot.class === "deny" || slot.class === "cancelled")
    ? (slot.reason ?? null)
    : null;
}

function explained(error: { readonly category: Category; readonly message: string }): string {
  return `${error.category}: ${error.message}`;
}
