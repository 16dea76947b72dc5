/** After the store failed at the decision: what does the ledger say, and what must it still learn? */
import type { AbortCause, Aborted } from "../core/events.js";
import { inFlight } from "../core/state.js";
import { HookledgerError } from "../errors.js";
import type { EventStore, StreamName } from "../store/port.js";
import { foldRecorded } from "../store/record/fold.js";
import { appendLate, type LateMoment } from "../store/record/late-append.js";
import { isOwn } from "./idempotency.js";

/** How often the ledger is read back when what is written last may be older than what was sent. */
const ATTEMPTS = 3;

/**
 * The caller has been told no. Reads the stream back: a decision that is there all the same is taken back as unconfirmed,
 * and what is open is closed. Returns the cause that now stands in the ledger, or null. Never rejects: what it cannot do is left
 * for `recover`, which never allows. A stream that somebody else began or went on with (`stale`) is read and not touched.
 */
export async function mend(
  store: EventStore,
  stream: StreamName,
  dispatchId: string,
  moment: LateMoment,
  stale: boolean,
): Promise<AbortCause | null> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      return await mendOnce(store, stream, dispatchId, moment, stale);
    } catch (error) {
      if (!mayHaveChanged(error)) return null;
    }
  }
  return null;
}

async function mendOnce(
  store: EventStore,
  stream: StreamName,
  dispatchId: string,
  moment: LateMoment,
  stale: boolean,
): Promise<AbortCause | null> {
  const found = await store.readStream(stream);
  if (found === null || !isOwn(store, found)) return null;
  const { state, failure } = foldRecorded(found.events);
  if (failure !== null || state.kind === "new") return null;
  if (state.kind === "aborted") return state.aborted.cause;
  if (stale) return null;
  const running = inFlight(state);
  const cause = state.kind === "decided" ? "unconfirmed" : "store_unavailable";
  const aborted: Aborted = { type: "aborted", cause, ...(running.length === 0 ? {} : { inFlight: running }) };
  await appendLate(store, found, dispatchId, [aborted], moment);
  return cause;
}

/** A request that was lost may arrive after all, and so may the one that mends. */
function mayHaveChanged(error: unknown): boolean {
  return (
    error instanceof HookledgerError && (error.code === "HL_STORE_CONFLICT" || error.code === "HL_STORE_AMBIGUOUS")
  );
}
