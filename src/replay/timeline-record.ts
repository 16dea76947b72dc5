/** The part of a recorded stream that can be told: event by event, up to the first that does not fold. */
import type { Digest, DispatchEvent, Started } from "../core/events.js";
import type { Begun } from "../core/state.js";
import type { StreamEvents } from "../store/port.js";
import { decodeEvent } from "../store/record/decode.js";
import { type FoldFailure, foldRecorded } from "../store/record/fold.js";
import { metadataOf, type ReadMetadata } from "../store/record/metadata.js";
import { type NamedRef, refsOf } from "./payload-refs.js";

/** `metadata` is null where this version cannot read it: the machine does not need it. */
export type LegibleEvent = {
  readonly revision: number;
  readonly event: DispatchEvent;
  readonly metadata: ReadMetadata | null;
};

export type LegibleRecord = {
  readonly dispatchId: string;
  /** How many events the stream has. */
  readonly recorded: number;
  readonly failure: FoldFailure | null;
  /** Null: not even the start can be told. */
  readonly begun: { readonly state: Begun; readonly started: Started; readonly events: readonly LegibleEvent[] } | null;
};

export function legibleRecord({ stream, events }: StreamEvents): LegibleRecord {
  const { state, failure } = foldRecorded(events);
  const record = { dispatchId: stream.slice("hookdispatch-".length), recorded: events.length };
  if (state.kind === "new") {
    const nothing = { revision: 0, kind: "missing_event", expected: "started", found: "no event" } as const;
    return { ...record, failure: failure ?? nothing, begun: null };
  }
  const legible = events.slice(0, state.revision).flatMap((recorded) => {
    const decoded = decodeEvent(recorded.type, recorded.data);
    return "event" in decoded
      ? [{ revision: recorded.revision, event: decoded.event, metadata: metadataOf(recorded) }]
      : [];
  });
  return { ...record, failure, begun: { state, started: state.started, events: legible } };
}

/** The payloads that a record speaks of, each once, as what it came up first. */
export function payloadRefs(events: readonly LegibleEvent[]): readonly NamedRef[] {
  const refs = new Map<Digest, NamedRef>();
  for (const { event } of events) {
    for (const named of refsOf(event)) if (!refs.has(named.ref.digest)) refs.set(named.ref.digest, named);
  }
  return [...refs.values()];
}
