/** A recorded stream through the machine, up to the first event that cannot stand where it stands. */
import { evolve } from "../../core/machine.js";
import { NEW, type State } from "../../core/state.js";
import type { RecordedEvent } from "../port.js";
import { type DecodeFailure, decodeEvent } from "./decode.js";

/** Why a fold stopped. `revision` names the event. */
export type FoldFailure = {
  readonly revision: number;
  readonly kind: "illegal_event" | "missing_event" | DecodeFailure["kind"];
  readonly expected: string;
  readonly found: string;
};

type Folded = { readonly state: State; readonly failure: FoldFailure | null };

/** Folds the events of one stream, oldest first, to `until` (a revision, inclusive) or the end. Calls nobody. */
export function foldRecorded(events: readonly RecordedEvent[], until = Number.POSITIVE_INFINITY): Folded {
  let state: State = NEW;
  for (const recorded of events) {
    const { revision } = recorded;
    if (revision > until) break;
    if (revision !== state.revision) {
      return {
        state,
        failure: {
          revision: state.revision,
          kind: "missing_event",
          expected: `revision ${state.revision}`,
          found: `revision ${revision}`,
        },
      };
    }
    const decoded = decodeEvent(recorded.type, recorded.data);
    if (!("event" in decoded)) {
      return {
        state,
        failure: { revision, kind: decoded.kind, expected: "an event of this version", found: decoded.found },
      };
    }
    const evolved = evolve(state, decoded.event);
    if (evolved.kind === "violation") {
      return { state, failure: { revision, kind: "illegal_event", expected: evolved.expected, found: evolved.found } };
    }
    state = evolved;
  }
  return { state, failure: null };
}
