/** What the port reads, a page at a time and without memory of the page before. */
import { PAGE_EVENTS, PAGE_STREAMS, PAGE_TEXT, textOf } from "../page.js";
import type { RecordedEvent, StreamEvents, StreamFilter, StreamHead, StreamName } from "../port.js";
import type { Catalogue } from "./catalogue/catalogue.js";
import { CATEGORY } from "./catalogue/entries.js";
import { chainOf, sessionOf, toRecorded } from "./event.js";
import type { ServerEvent, ServerLog } from "./server-log.js";

/** Events of one read of a stream. */
const PAGE = 512;
/** Streams that are read at once. */
const AT_ONCE = 16;

/** `next`: the `after` of the next page. */
export type UnlistedStreams = { readonly streams: readonly StreamEvents[]; readonly next: number | null };

export class Pages {
  readonly #log: ServerLog;
  readonly #catalogue: Catalogue;

  constructor(log: ServerLog, catalogue: Catalogue) {
    this.#log = log;
    this.#catalogue = catalogue;
  }

  /** The stream as it stands, or null. */
  async stream(stream: StreamName): Promise<StreamEvents | null> {
    const events: RecordedEvent[] = [];
    let first: ServerEvent | undefined;
    let last: ServerEvent | undefined;
    for (let from = 0; ; ) {
      const page = await this.#log.readStream(stream, { direction: "forward", from, max: PAGE });
      first ??= page?.[0];
      last = page?.at(-1) ?? last;
      for (const event of page ?? []) events.push(toRecorded(event));
      if (page === null || page.length < PAGE || last === undefined) break;
      from = last.revision + 1;
    }
    if (first === undefined || last === undefined) return null;
    return { stream, head: headOf(stream, first, last), events };
  }

  /** Empty at the end: about PAGE_TEXT of event text, or one stream. */
  async streams(filter: StreamFilter): Promise<readonly StreamEvents[]> {
    return this.#filled(filter, async (names) => {
      const page: StreamEvents[] = [];
      let text = 0;
      for (let start = 0; start < names.length && text < PAGE_TEXT; start += AT_ONCE) {
        const read = await Promise.all(names.slice(start, start + AT_ONCE).map((name) => this.stream(name)));
        for (const stream of read) {
          if (stream === null || !isOf(stream.head, filter)) continue;
          for (const event of stream.events) text += textOf(event);
          if (text > PAGE_TEXT && page.length > 0) return page;
          page.push(stream);
        }
      }
      return page;
    });
  }

  /** Empty at the end. */
  async heads(filter: StreamFilter): Promise<readonly StreamHead[]> {
    return this.#filled(filter, async (names) => {
      const page: StreamHead[] = [];
      for (let start = 0; start < names.length; start += AT_ONCE) {
        const read = await Promise.all(names.slice(start, start + AT_ONCE).map((name) => this.#head(name)));
        for (const head of read) if (head !== null && isOf(head, filter)) page.push(head);
      }
      return page;
    });
  }

  /** Events behind a position, in the order of the log. Empty at the end. */
  async events(after: number): Promise<readonly RecordedEvent[]> {
    const page: RecordedEvent[] = [];
    for (let text = 0, next = after; text < PAGE_TEXT && page.length < PAGE_EVENTS; ) {
      const read = await this.#log.readAll({ after: next, prefixes: [CATEGORY], max: PAGE });
      for (const event of read) {
        const recorded = toRecorded(event);
        text += textOf(recorded);
        page.push(recorded);
        next = event.position;
      }
      if (read.length < PAGE) break;
    }
    return page;
  }

  /** Streams behind a position to which the catalogue does not lead, and where the next page begins; null: that was all. */
  async unlisted(after: number): Promise<UnlistedStreams> {
    const { streams: names, next } = await this.#catalogue.unlisted(after);
    const streams: StreamEvents[] = [];
    for (const name of names) {
      const stream = await this.stream(name);
      if (stream !== null) streams.push(stream);
    }
    return { streams, next };
  }

  /** The first page of streams that exist and are of the session: the catalogue names candidates. */
  async #filled<T>(
    filter: StreamFilter,
    read: (names: readonly StreamName[]) => Promise<readonly T[]>,
  ): Promise<readonly T[]> {
    for (let after = filter.after; ; ) {
      const { names, next } = await this.#catalogue.page(
        after === undefined ? filter : { ...filter, after },
        PAGE_STREAMS,
      );
      const page = await read(names);
      if (page.length > 0 || next === null) return page;
      after = next;
    }
  }

  async #head(stream: StreamName): Promise<StreamHead | null> {
    const [first, last] = await Promise.all([
      this.#log.readStream(stream, { direction: "forward", from: 0, max: 1 }),
      this.#log.readStream(stream, { direction: "backward", max: 1 }),
    ]);
    if (first?.[0] === undefined || last?.[0] === undefined) return null;
    return headOf(stream, first[0], last[0]);
  }
}

function isOf(head: StreamHead | null, { session }: StreamFilter): boolean {
  return session === undefined || head?.session === session;
}

/** There is no row of its own for it: what its first and its last event say. */
function headOf(stream: StreamName, first: ServerEvent, last: ServerEvent): StreamHead {
  return {
    stream,
    revision: last.revision,
    chain: chainOf(last),
    session: sessionOf(first),
    position: first.position,
  };
}
