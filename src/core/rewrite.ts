/**
 * Each handler sees the original. What several of them define is merged field by field, the last one winning; a cancellation ends
 * the run, and what it defines stays in the record. Who fails has defined nothing.
 */
import type { Composition } from "./composition.js";
import type { RewriteSet } from "./events.js";
import { nobody, rejectsOthers, theInput, untilSuppressed } from "./handlers.js";
import type { Open } from "./state.js";

type Field = keyof RewriteSet;

export const rewrite: Composition = {
  rejects: rejectsOthers,

  accepts(_, outcome) {
    switch (outcome.class) {
      case "rewritten":
        return outcome.payload === undefined && outcome.set !== undefined && definesSomething(outcome.set);
      case "cancelled": {
        const { payload, reason, set } = outcome;
        return payload === undefined && reason === undefined && (set === undefined || definesSomething(set));
      }
      case "declined":
      case "failed":
        return true;
      case "ack":
      case "transformed":
      case "allow":
      case "deny":
      case "policy":
      case "claimed":
      case "invalid":
      case "lost":
        return false;
    }
  },

  passive: nobody,
  detached: nobody,
  author: theInput,

  /** What comes with a cancellation is never gone on with. */
  settle(open, { index }, settlement) {
    const rewrites = settlement.type === "outcome" && settlement.class === "rewritten";
    const content = rewrites ? settlement.set?.content : undefined;
    return content === undefined ? open : { ...open, payload: content.digest, author: index };
  },

  next: (open) => untilSuppressed(open, open.started.input.digest),
};

function definesSomething(set: RewriteSet): boolean {
  return set.content !== undefined || set.cancelReason !== undefined || set.metadata !== undefined;
}

function setAt(open: Pick<Open, "slots" | "started">, index: number): RewriteSet | undefined {
  const slot = open.slots[index];
  if (typeof slot !== "object" || slot.type !== "outcome") return undefined;
  return slot.class === "rewritten" || slot.class === "cancelled" ? slot.set : undefined;
}

/** Who defined a field last: the index of a subscriber, or null. */
export function definedBy(state: Pick<Open, "slots" | "started">, field: Field): number | null {
  const last = state.started.subscribers.findLast(({ index }) => setAt(state, index)?.[field] !== undefined);
  return last?.index ?? null;
}
