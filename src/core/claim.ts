/** The first handler that claims is the only one that answers; nobody after it is called. Who fails has not claimed. */
import type { Composition } from "./composition.js";
import { blocksOnFailure, letPass, nobody, oneByOne, rejectsOthers, stopper, theInput } from "./handlers.js";

export const claim: Composition = {
  rejects: (started) => (blocksOnFailure(started) ? "a claim that blocks on failure" : rejectsOthers(started)),
  accepts: (_, { class: answer }) => answer === "claimed" || answer === "declined" || answer === "failed",
  passive: nobody,
  detached: nobody,
  author: theInput,

  settle(open, { index }, settlement) {
    return settlement.type === "outcome" && settlement.class === "claimed"
      ? { ...open, payload: settlement.payload.digest, author: index }
      : open;
  },

  next(open) {
    const claimer = stopper(open, (settlement) => settlement.type === "outcome" && settlement.class === "claimed");
    if (claimer !== undefined) return letPass(open.payload, claimer.id);
    return oneByOne(open, open.started.input.digest) ?? letPass(open.payload);
  },
};
