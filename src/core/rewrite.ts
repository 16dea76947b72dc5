/**
 * Each handler sees the original. What several of them define is merged field by field, the last one winning; a cancellation ends
 * the run, and what was defined up to it stays in the record. Who fails has defined nothing.
 */
import type { Composition } from "./composition.js";
import type { RewriteSet } from "./events.js";
import { isBlocking, nobody, oneByOne, rejectsOthers, stopper, theInput } from "./handlers.js";
import type { Open } from "./state.js";

type Field = keyof RewriteSet;

export const rewrite: Composition = {
  rejects: rejectsOthers,

  accepts(_, outcome) {
    switch (outcome.class) {
      case "rewritten":
        return outcome.payload === undefined && outcome.set !== undefined;
      case "cancelled":
        return outcome.payload === undefined && outcome.reason === undefined;
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

  settle(open, { index }) {
    const content = setAt(open, index)?.content;
    return content === undefined ? open : { ...open, payload: content.digest, author: index };
  },

  next(open) {
    const { payload } = open;
    const canceller = stopper(
      open,
      (slot) => (slot.type === "outcome" && slot.class === "cancelled") || isBlocking(open, slot),
    );
    if (canceller !== undefined) {
      return { kind: "conclude", event: { type: "decided", decision: "deny", decidedBy: canceller.id, payload } };
    }
    return (
      oneByOne(open, open.started.input.digest) ?? {
        kind: "conclude",
        event: { type: "decided", decision: "allow", decidedBy: "kernel:default", payload },
      }
    );
  },
};

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
