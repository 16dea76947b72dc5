import type { DispatchEvent } from "./events.js";
import { concludesWithoutAllow } from "./legality.js";
import { next } from "./machine.js";
import { inFlight, type State } from "./state.js";

/**
 * The event that closes what a crash left open, asked again until null. Never an allow: a deny or an abort that the machine
 * had come to is recorded; anything else, a pending allow too, is closed as recovered. Late observers are lost.
 */
export function recoveryStep(state: State): DispatchEvent | null {
  if (state.kind === "new") return null;
  const step = next(state);
  switch (step.kind) {
    case "settled":
      return null;
    case "invoke":
    case "conclude":
    case "wait": {
      const running = inFlight(state);
      const [lost] = running;
      if (state.kind !== "open") return lost === undefined ? null : { type: "outcome", index: lost, class: "lost" };
      if (concludesWithoutAllow(step)) return step.event;
      return { type: "aborted", cause: "recovered", ...(running.length === 0 ? {} : { inFlight: running }) };
    }
  }
}
