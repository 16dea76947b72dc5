/** Appends to a stream that another recorder began: recovery, and mending after a store failure. */
import type { DispatchEvent } from "../../core/events.js";
import type { AppendResult, EventStore, StreamEvents } from "../port.js";
import { encodeData } from "./encode.js";
import { eventIds } from "./event-id.js";
import { metadataOf, metadataWriter } from "./metadata.js";

export type LateMoment = { readonly engineVersion: string /** ISO 8601 */; readonly at: string };

/**
 * Appends `events` behind the stream's last one, durably. The exact revision fences: if anybody else appended meanwhile,
 * HL_STORE_CONFLICT and nothing is written. `offsetNs` continues the record: nobody can say how long ago the start was.
 */
export async function appendLate(
  store: EventStore,
  { stream, events: recorded }: StreamEvents,
  dispatchId: string,
  events: readonly DispatchEvent[],
  { engineVersion, at }: LateMoment,
): Promise<AppendResult> {
  const last = recorded.at(-1);
  const { session, turn, causationId } = metadataOf(recorded[0]) ?? {};
  const textOf = metadataWriter({
    engineVersion,
    writer: store.writer,
    ...(session === undefined ? {} : { session }),
    ...(turn === undefined ? {} : { turn }),
    ...(causationId === undefined ? {} : { causationId }),
  });
  const offsetNs = metadataOf(last)?.offsetNs ?? 0;
  const idOf = eventIds(dispatchId);
  const revision = last === undefined ? 0 : last.revision + 1;
  return store.append({
    stream,
    expected: last === undefined ? "none" : last.revision,
    barrier: true,
    events: events.map((event, place) => ({
      id: idOf(revision + place),
      type: event.type,
      data: encodeData(event),
      metadata: textOf({ at, offsetNs }),
    })),
  });
}
