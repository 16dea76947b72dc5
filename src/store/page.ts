/** How much a store hands over at once. */
import type { RecordedEvent } from "./port.js";

/** UTF-16 units of event text after which a page ends. */
export const PAGE_TEXT = 4 * 1024 * 1024;
export const PAGE_EVENTS = 4096;
export const PAGE_STREAMS = 256;

export function textOf(event: RecordedEvent): number {
  return event.data.length + event.metadata.length;
}
