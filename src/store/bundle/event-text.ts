/** The events of a stream as one text: a JSON array of `[id, type, data, metadata]`, in the order of their revisions. */
import type { RecordedEvent, StreamName } from "../port.js";

/** Revisions of a stream: the ids of events have room for so many. */
export const MAX_EVENTS = 65_536;

export function printEvents(events: readonly RecordedEvent[]): string {
  return JSON.stringify(events.map(({ id, type, data, metadata }) => [id, type, data, metadata]));
}

/** null for a text that `printEvents` does not print. `place`: of the stream in its bundle, from 1. */
export function parseEvents(text: string, stream: StreamName, place: number): readonly RecordedEvent[] | null {
  let items: unknown;
  try {
    items = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(items) || items.length > MAX_EVENTS) return null;
  const start = positionOf(place);
  const events: RecordedEvent[] = [];
  for (const item of items) {
    if (!isEvent(item)) return null;
    const revision = events.length;
    const [id, type, data, metadata] = item;
    events.push({ position: start + revision, stream, revision, id, type, data, metadata });
  }
  return events;
}

/** Of the first event of a stream: a bundle's order is stream by stream. */
export function positionOf(place: number): number {
  return place * MAX_EVENTS;
}

/** The stream that an event at this position belongs to. */
export function placeAt(position: number): number {
  return Math.floor(position / MAX_EVENTS);
}

function isEvent(item: unknown): item is readonly [string, string, string, string] {
  return Array.isArray(item) && item.length === 4 && item.every((text) => typeof text === "string");
}
