/** How much a store hands over at once, and how it goes on. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RecordedEvent, StreamEvents, StreamFilter, StreamHead } from "./port.js";

/** UTF-16 units of event text after which a page ends. */
export const PAGE_TEXT = 4 * 1024 * 1024;
export const PAGE_EVENTS = 4096;
export const PAGE_STREAMS = 256;

export function textOf(event: RecordedEvent): number {
  return event.data.length + event.metadata.length;
}

/** At once, or once a server or a thread has answered. */
type Page<T> = readonly T[] | Promise<readonly T[]>;

/**
 * What `read` has from `first` on, page by page, until there is no more; `behind` an element the next page begins. The event loop turns
 * between two pages: a signal ends the process, and a host goes on, however much there is to read.
 */
export async function* pagesOf<T, At>(
  first: At,
  read: (at: At) => Page<T>,
  behind: (last: T) => At,
): AsyncGenerator<readonly T[]> {
  for (let at = first; ; ) {
    const page = await read(at);
    const last = page.at(-1);
    if (last === undefined) return;
    yield page;
    await nextTurn();
    at = behind(last);
  }
}

/** Reads the first page of what it is asked for; empty at the end. */
type PageReader = {
  streams(filter: StreamFilter): Page<StreamEvents>;
  heads(filter: StreamFilter): Page<StreamHead>;
  events(after: number): Page<RecordedEvent>;
};

/** The paged reads of the port. `reader` is asked for every page, and throws once the store is closed. */
export class PagedReads {
  readonly #reader: () => PageReader;

  constructor(reader: () => PageReader) {
    this.#reader = reader;
  }

  streams(filter: StreamFilter): AsyncGenerator<readonly StreamEvents[]> {
    const read = (from: StreamFilter) => this.#reader().streams(from);
    return pagesOf(filter, read, ({ stream }) => ({ ...filter, after: stream }));
  }

  heads(filter: StreamFilter): AsyncGenerator<readonly StreamHead[]> {
    const read = (from: StreamFilter) => this.#reader().heads(from);
    return pagesOf(filter, read, ({ stream }) => ({ ...filter, after: stream }));
  }

  events(after: number): AsyncGenerator<readonly RecordedEvent[]> {
    const read = (from: number) => this.#reader().events(from);
    return pagesOf(after, read, ({ position }) => position);
  }
}
