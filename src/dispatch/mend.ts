/** After the store failed at the decision: what does the ledger say, and what must it still learn? */
import type { AbortCause, Aborted } from "../core/events.js";
import { inFlight } from "../core/state.js";
import type { EventStore, StreamName } from "../store/port.js";
import { foldRecorded } from "../store/record/fold.js";
import { appendLate, type LateMoment } from "../store/record/late-append.js";

/**
 * The caller has been told no. Reads the stream back: a decision that is there all the same is taken back as unconfirmed,
 * and what is open is closed. Returns the cause
 * that now stands in the ledger, or null. Never rejects: what it cannot do is left for `recover`, which never allows.
 */
export async function mend(
  store: EventStore,
  stream: StreamName,
  dispatchId: string,
  moment: LateMoment,
): Promise<AbortCause | null> {
  try {
    const found = await store.readStream(stream);
    if (found === null) return null;
    const { state, failure } = foldRecorded(found.events);
    if (failure !== null || state.kind === "new" || state.kind === "aborted") return null;
    const running = inFlight(state);
    const cause = state.kind === "decided" ? "unconfirmed" : "store_unavailable";
    const aborted: Aborted = { type: "aborted", cause, ...(running.length === 0 ? {} : { inFlight: running }) };
    await appendLate(store, found, dispatchId, [aborted], moment);
    return cause;
  } catch {
    return null;
  }
}
