import type { ServerEvent, ServerLog } from "../server-log.js";
import { readEntry } from "./entries.js";

/** Names kept for all streams together; those of the stream asked for last stay, however many they are. */
const MAX_NAMES = 256 * 1024;
/** Entries are small: a few hundred bytes. */
const READ_AT_ONCE = 4096;

/** What a stream of the catalogue names. */
export type Index = {
  /** Ascending, each once. */
  readonly names: readonly string[];
  /** Those that an entry says to have no session. */
  readonly sessionless: ReadonlySet<string>;
};

type Known = Index & { readonly last: ServerEvent };

const EMPTY: Index = { names: [], sessionless: new Set() };

/** Reads streams of the catalogue whole, and of those that it remembers what came since. */
export class Indexes {
  readonly #log: ServerLog;
  readonly #known = new Map<string, Known>();
  #names = 0;

  constructor(log: ServerLog) {
    this.#log = log;
  }

  /** As the stream stands on the server; empty if there is none. */
  async at(stream: string): Promise<Index> {
    const known = this.#known.get(stream);
    const now = (known === undefined ? null : await this.#continued(stream, known)) ?? (await this.#whole(stream));
    this.#remember(stream, now);
    return now ?? EMPTY;
  }

  /** Does the stream name it? Asks the server only where it is not known to. */
  async has(stream: string, name: string): Promise<boolean> {
    const known = this.#known.get(stream);
    return (known !== undefined && includes(known, name)) || includes(await this.at(stream), name);
  }

  async #whole(stream: string): Promise<Known | null> {
    const events: ServerEvent[] = [];
    const end = await this.#read(stream, 0, (event) => events.push(event));
    return end === null ? null : { ...extended(EMPTY, events), last: end };
  }

  /** null: the stream is no longer the one that was known, as on a server that was set up anew. */
  async #continued(stream: string, known: Known): Promise<Known | null> {
    const { revision, id } = known.last;
    const events: ServerEvent[] = [];
    const end = await this.#read(stream, revision, (event) => events.push(event));
    const [first, ...news] = events;
    if (end === null || first?.revision !== revision || first.id !== id) return null;
    return news.length === 0 ? known : { ...extended(known, news), last: end };
  }

  /** The last event; null if there is none. */
  async #read(stream: string, from: number, take: (event: ServerEvent) => void): Promise<ServerEvent | null> {
    let last: ServerEvent | null = null;
    for (;;) {
      const next: number = last === null ? from : last.revision + 1;
      const page = await this.#log.readStream(stream, { direction: "forward", from: next, max: READ_AT_ONCE });
      page?.forEach(take);
      last = page?.at(-1) ?? last;
      if (page === null || page.length < READ_AT_ONCE) return last;
    }
  }

  #remember(stream: string, index: Known | null): void {
    this.#names -= this.#known.get(stream)?.names.length ?? 0;
    this.#known.delete(stream);
    if (index === null) return;
    this.#known.set(stream, index);
    this.#names += index.names.length;
    for (const [oldest, { names }] of this.#known) {
      if (this.#names <= MAX_NAMES || oldest === stream) return;
      this.#known.delete(oldest);
      this.#names -= names.length;
    }
  }
}

function extended(index: Index, events: readonly ServerEvent[]): Index {
  const news = new Set<string>();
  const sessionless = new Set(index.sessionless);
  for (const event of events) {
    const entry = readEntry(event);
    if (entry === null) continue;
    if (!includes(index, entry.name)) news.add(entry.name);
    if (entry.sessionless) sessionless.add(entry.name);
  }
  if (news.size === 0) return { names: index.names, sessionless };
  return { names: [...index.names, ...news].sort(), sessionless };
}

function includes({ names }: Index, name: string): boolean {
  return names[placeOf(names, name)] === name;
}

/** Of the first name that is not before `bound`. */
export function placeOf(names: readonly string[], bound: string): number {
  let low = 0;
  let high = names.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((names[middle] ?? "") < bound) low = middle + 1;
    else high = middle;
  }
  return low;
}
