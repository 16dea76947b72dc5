/** Each handler sees what the one before it made of the payload, and may cancel. Who fails has changed nothing. */
import type { Composition } from "./composition.js";
import { nobody, rejectsOthers, untilSuppressed } from "./handlers.js";

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

  next: (open) => untilSuppressed(open, open.payload),
};
