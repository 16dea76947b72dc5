/** One dispatch as `list` tells it. */
import type { Subscriber } from "../core/events.js";
import { replayStream } from "../replay/replay.js";
import { type RunEnd, runEnd } from "../replay/run-end.js";
import type { StreamEvents } from "../store/port.js";
import { foldRecorded } from "../store/record/fold.js";
import { metadataOf } from "../store/record/metadata.js";
import { dispatchIdOf } from "./select.js";

/** Where a record does not replay: what can be read of it, and `unreadable`. */
export type ListRow = {
  readonly dispatchId: string;
  readonly point: string | null;
  readonly status: "decided" | "aborted" | "open" | "unreadable";
  readonly decision: "allow" | "deny" | null;
  readonly decidedBy: string | null;
  readonly session: string | null;
  readonly turn: string | null;
  /** ISO 8601 */
  readonly startedAt: string | null;
  readonly events: number;
};

/** A row, and what is not printed in JSON. */
export type Listed = {
  readonly row: ListRow;
  readonly allowed: boolean;
  readonly abortCause: string | null;
  readonly end: RunEnd | null;
  readonly subscribers: readonly Subscriber[];
};

export function listed(stream: StreamEvents): Listed {
  const replayed = replayStream(stream);
  if (!("state" in replayed)) return unreadable(stream);
  const { verdict, state } = replayed;
  return {
    row: {
      dispatchId: dispatchIdOf(stream.stream),
      point: verdict.point,
      status: verdict.status,
      decision: verdict.decision,
      decidedBy: verdict.decidedBy,
      session: replayed.session,
      turn: replayed.turn,
      startedAt: replayed.startedAt,
      events: replayed.events,
    },
    allowed: verdict.allowed,
    abortCause: verdict.abortCause,
    end: runEnd(state),
    subscribers: state.started.subscribers,
  };
}

function unreadable(stream: StreamEvents): Listed {
  const { state } = foldRecorded(stream.events);
  const started = state.kind === "new" ? null : state.started;
  const first = metadataOf(stream.events[0]);
  return {
    row: {
      dispatchId: dispatchIdOf(stream.stream),
      point: started?.point ?? null,
      status: "unreadable",
      decision: null,
      decidedBy: null,
      session: first?.session ?? stream.head?.session ?? null,
      turn: first?.turn ?? null,
      startedAt: first?.at ?? null,
      events: stream.events.length,
    },
    allowed: false,
    abortCause: null,
    end: null,
    subscribers: started?.subscribers ?? [],
  };
}
