/** Folds what was recorded, calling nobody: the same state machine as the live dispatcher, fed from the ledger. */
import type { Digest } from "../core/events.js";
import { type Verdict, verdictOf } from "../core/result.js";
import type { Begun } from "../core/state.js";
import type { StreamEvents } from "../store/port.js";
import { type FoldFailure, foldRecorded } from "../store/record/fold.js";
import { metadataOf } from "../store/record/metadata.js";

export type Replayed = {
  readonly state: Begun;
  readonly verdict: Verdict;
  readonly session: string | null;
  readonly turn: string | null;
  /** ISO 8601, as the writer's clock had it: display only. */
  readonly startedAt: string | null;
  readonly events: number;
  readonly durationMs: number;
  /** Digest of the payload that the state goes on with. */
  readonly payload: Digest;
};

/** Replays one stream to `until` (a revision, inclusive) or its end; a failure names the first event that cannot be folded. */
export function replayStream(stream: StreamEvents, until?: number): Replayed | FoldFailure {
  const { state, failure } = foldRecorded(stream.events, until);
  if (failure !== null) return failure;
  if (state.kind === "new") return { revision: 0, kind: "missing_event", expected: "started", found: "no event" };
  const first = metadataOf(stream.events[0]);
  return {
    state,
    verdict: verdictOf(state),
    session: first?.session ?? null,
    turn: first?.turn ?? null,
    startedAt: first?.at ?? null,
    events: state.revision,
    durationMs: (metadataOf(stream.events[state.revision - 1])?.offsetNs ?? 0) / 1e6,
    payload: state.payload,
  };
}
