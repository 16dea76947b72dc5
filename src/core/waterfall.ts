/** Each handler sees what the one before it made of the payload, and may cancel. Who fails has changed nothing. */
import type { Composition } from "./composition.js";
import { isBlocking, nobody, oneByOne, rejectsOthers, stopper } from "./handlers.js";

export const waterfall: Composition = {
  rejects: rejectsOthers,

  accepts(_, outcome) {
    switch (outcome.class) {
      case "rewritten":
        return outcome.payload !== undefined && outcome.set === undefined;
      case "cancelled":
        return outcome.set === undefined;
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
  author: (open) => open.author,

  settle(open, { index }, settlement) {
    const rewrites = settlement.type === "outcome" && settlement.class === "rewritten";
    return rewrites && settlement.payload !== undefined
      ? { ...open, payload: settlement.payload.digest, author: index }
      : open;
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
      oneByOne(open, payload) ?? {
        kind: "conclude",
        event: { type: "decided", decision: "allow", decidedBy: "kernel:default", payload },
      }
    );
  },
};
