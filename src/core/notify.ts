/** All handlers start together and see the same; none of them has a say. */
import type { Composition } from "./composition.js";
import { blocksOnFailure, letPass, nobody, rejectsOthers, theInput } from "./handlers.js";
import { inFlight } from "./state.js";

export const notify: Composition = {
  rejects: (started) => (blocksOnFailure(started) ? "a notification that blocks on failure" : rejectsOthers(started)),
  accepts: (_, { class: answer }) => answer === "ack" || answer === "failed",
  passive: nobody,
  detached: nobody,
  author: theInput,
  settle: (open) => open,

  next(open) {
    const { started, slots, payload } = open;
    const indexes = started.subscribers.flatMap(({ index, skip }) =>
      skip === undefined && slots[index] === "idle" ? [index] : [],
    );
    if (indexes.length > 0) return { kind: "invoke", indexes, payload };
    const running = inFlight(open);
    if (running.length > 0) return { kind: "wait", indexes: running };
    return letPass(payload);
  },
};
