/** What a run of handlers came to, in a word. */
import type { Decided } from "../core/events.js";
import type { Begun } from "../core/state.js";

/** `blocked`: not cancelled by anybody's will; a handler failed where failures block. */
export type RunEnd = "claimed" | "unclaimed" | "passed" | "cancelled" | "blocked" | "notified";

/** Null for a chain, and for what is not decided. */
export function runEnd(state: Begun): RunEnd | null {
  return state.kind === "decided" ? endOf(state, state.decided) : null;
}

/** The same for a decision that may have been withdrawn. */
export function endOf(state: Begun, { decision, decidedBy }: Decided): RunEnd | null {
  switch (state.started.composition) {
    case "claim":
      return decidedBy === "kernel:default" ? "unclaimed" : "claimed";
    case "rewrite":
    case "waterfall":
      if (decision === "allow") return "passed";
      return isCancellation(state, decidedBy) ? "cancelled" : "blocked";
    case "notify":
      return "notified";
    default:
      return null;
  }
}

function isCancellation({ started, slots }: Begun, id: string): boolean {
  const slot = slots[started.subscribers.find((subscriber) => subscriber.id === id)?.index ?? -1];
  return typeof slot === "object" && slot.type === "outcome" && slot.class === "cancelled";
}
