import type { StreamFilter, StreamName } from "../../port.js";
import { streamRange } from "../../range.js";
import type { ServerEvent, ServerLog } from "../server-log.js";
import {
  CATEGORY,
  DIRECTORY,
  directoryOf,
  idOf,
  indexOf,
  LEAF,
  leafOf,
  listingsOf,
  ROOT,
  sessionIndexOf,
  streamOf,
} from "./entries.js";
import { type Index, Indexes, placeOf } from "./indexes.js";

const PAGE_NAMES = 1024;
/** Leaves after which a page ends, though it is not full. */
const PAGE_LEAVES = 256;
/** Streams that are read at once, at most. */
const WIDTH = 8;
const SCAN_EVENTS = 512;
/** Sorts behind every name that begins with what stands before it. */
const END = "\u{10FFFF}";

export type NamesPage = {
  /**
   * In the filter's order. Candidates: there may be no such stream, and where the filter asks about the session, what the stream
   * itself says counts.
   */
  readonly names: readonly StreamName[];
  /** The `after` of the next page; not always the name of a stream. null: that was all. */
  readonly next: StreamName | null;
};

export type UnlistedPage = {
  /** A stream may come again on a later page if its first events are hidden. */
  readonly streams: readonly StreamName[];
  /** The `after` of the next page. null: that was all. */
  readonly next: number | null;
};

/** Reads the catalogue. Between pages it only remembers what saves it from reading again. Throws what a ServerLog's reads throw. */
export class Catalogue {
  readonly #log: ServerLog;
  readonly #indexes: Indexes;

  constructor(log: ServerLog) {
    this.#log = log;
    this.#indexes = new Indexes(log);
  }

  /** The next names of the filter; a page without any may be followed by others. */
  async page(filter: StreamFilter, max = PAGE_NAMES): Promise<NamesPage> {
    if (typeof filter.session !== "string") return this.#leafPage(filter, max);
    const { names } = await this.#indexes.at(sessionIndexOf(filter.session));
    const page = selected(names, filter, max).map(streamOf);
    return { names: page, next: page.length < max ? null : (page.at(-1) ?? null) };
  }

  /** Streams of a page of the whole log, behind a position (0 = from the start), to which nothing leads. */
  async unlisted(after: number): Promise<UnlistedPage> {
    const events = await this.#log.readAll({ after, prefixes: [CATEGORY], max: SCAN_EVENTS });
    const first = new Map<StreamName, ServerEvent>();
    for (const event of events) {
      const name = streamOf(event.stream.slice(CATEGORY.length));
      if (!first.has(name)) first.set(name, event);
    }
    const streams: StreamName[] = [];
    for (const [stream, event] of first) {
      if (!(await this.#isListed(idOf(stream))) && (await this.#isFirst(event))) streams.push(stream);
    }
    return { streams, next: events.at(-1)?.position ?? null };
  }

  async #isListed(id: string): Promise<boolean> {
    for (const { index, prefix } of listingsOf(id)) {
      if (!(await this.#indexes.has(index, prefix))) return false;
    }
    return this.#indexes.has(indexOf(leafOf(id)), id);
  }

  /** Is it the first event of its stream that can be seen? */
  async #isFirst({ stream, revision }: ServerEvent): Promise<boolean> {
    if (revision === 0) return true;
    const seen = await this.#log.readStream(stream, { direction: "forward", from: 0, max: 1 });
    return seen?.[0]?.revision === revision;
  }

  async #leafPage(filter: StreamFilter, max: number): Promise<NamesPage> {
    const names: StreamName[] = [];
    let leaves = 0;
    for await (const { prefix, index } of this.#leaves(filter)) {
      const ids = filter.session === null ? index.names.filter((id) => index.sessionless.has(id)) : index.names;
      for (const id of selected(ids, filter, max - names.length)) names.push(streamOf(id));
      if (names.length === max) return { names, next: names.at(-1) ?? null };
      if (++leaves === PAGE_LEAVES) return { names, next: streamOf(filter.order === "oldest" ? prefix + END : prefix) };
    }
    return { names, next: null };
  }

  #leaves(filter: StreamFilter): AsyncGenerator<Read> {
    return this.#read(this.#leafPrefixes(filter));
  }

  async *#leafPrefixes(filter: StreamFilter): AsyncGenerator<string> {
    const { prefix = "" } = filter;
    if (prefix.length >= LEAF) yield leafOf(prefix);
    else for await (const { index } of this.#read(this.#directories(filter))) yield* overlapping(index.names, filter);
  }

  async *#directories(filter: StreamFilter): AsyncGenerator<string> {
    const { prefix = "" } = filter;
    if (prefix.length >= DIRECTORY) yield directoryOf(prefix);
    else yield* overlapping((await this.#indexes.at(ROOT)).names, filter);
  }

  /** In order; the more of them are asked for, the more are read at once. */
  async *#read(prefixes: AsyncGenerator<string>): AsyncGenerator<Read> {
    for (let width = 1; ; width = Math.min(2 * width, WIDTH)) {
      const window: string[] = [];
      while (window.length < width) {
        const { value, done } = await prefixes.next();
        if (done === true) break;
        window.push(value);
      }
      if (window.length === 0) return;
      yield* await Promise.all(
        window.map(async (prefix) => ({ prefix, index: await this.#indexes.at(indexOf(prefix)) })),
      );
    }
  }
}

type Read = { readonly prefix: string; readonly index: Index };

/** The first `max` ids that the filter's range and order leave. */
function selected(ids: readonly string[], filter: StreamFilter, max: number): readonly string[] {
  const { low, high } = streamRange(filter);
  const from = placeOf(ids, low.slice(CATEGORY.length));
  const to = placeOf(ids, high.slice(CATEGORY.length));
  return filter.order === "oldest"
    ? ids.slice(from, Math.min(to, from + max))
    : ids.slice(Math.max(from, to - max), to).reverse();
}

/** The prefixes, in the filter's order, below which there may be something for it. */
function overlapping(prefixes: readonly string[], filter: StreamFilter): readonly string[] {
  const { low, high } = streamRange(filter);
  const found = prefixes.filter((prefix) => streamOf(prefix + END) > low && streamOf(prefix) < high);
  return filter.order === "oldest" ? found : found.reverse();
}
