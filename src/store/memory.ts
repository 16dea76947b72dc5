/** A ledger that lives as long as the process: for tests, benchmarks, and hosts that want no file. */
import { randomBytes } from "node:crypto";
import type { Digest } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { BlobRead } from "../payload/archive/types.js";
import { checkAppend, conflict, firstRevision, isSameEvent } from "./append.js";
import { MemoryArchive } from "./memory-archive.js";
import { PackedEvents } from "./packed.js";
import { PAGE_EVENTS, PAGE_STREAMS, PAGE_TEXT, textOf } from "./page.js";
import type {
  AppendRequest,
  AppendResult,
  Collected,
  CollectOptions,
  EventStore,
  GarbageCollection,
  RecordedEvent,
  StreamEvents,
  StreamFilter,
  StreamHead,
  StreamName,
} from "./port.js";
import { streamRange } from "./range.js";
import { digestsIn } from "./referenced.js";
import { ulid } from "./ulid.js";
import { Wakeup } from "./wakeup.js";

type MemoryStoreOptions = {
  /** ULID; default: a fresh one. */
  readonly writer?: string;
};

/** A new, empty ledger in memory. Appends are carried out before `append` returns. */
export function openMemoryStore(options: MemoryStoreOptions = {}): EventStore & GarbageCollection {
  return new MemoryStore(options.writer ?? ulid(Date.now(), randomBytes(10)));
}

type Stream = { readonly appends: PackedEvents[]; readonly session: string | null };

class MemoryStore implements EventStore, GarbageCollection {
  readonly url = "memory:";
  readonly writer: string;
  readonly pendingBytes = 0;
  readonly #log: PackedEvents[] = [];
  readonly #streams = new Map<StreamName, Stream>();
  readonly #archive = new MemoryArchive();
  readonly #names = new NameIndex();
  readonly #news = new Wakeup();
  #closed = false;

  constructor(writer: string) {
    this.writer = writer;
  }

  append(request: AppendRequest): Promise<AppendResult> {
    try {
      this.#requireOpen();
      checkAppend(request);
      return Promise.resolve(this.#append(request));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #append(request: AppendRequest): AppendResult {
    const { stream: name, expected, events } = request;
    const stream = this.#streams.get(name);
    const first = firstRevision(expected);
    if (nextRevision(stream) !== first || (stream === undefined) !== (expected === "none")) {
      const again = repeated(stream, request);
      if (again === undefined) throw conflict(name, expected, stream && nextRevision(stream) - 1);
      return again;
    }
    const target = stream ?? this.#create(name, request.session ?? null);
    const position = nextPosition(this.#log);
    const packed = new PackedEvents(name, first, position, target.appends.at(-1)?.chain ?? "", events);
    target.appends.push(packed);
    this.#log.push(packed);
    for (const blob of request.blobs ?? []) this.#archive.keep(blob);
    this.#news.wake();
    return { revision: first + events.length - 1, position: position + events.length - 1 };
  }

  #create(name: StreamName, session: string | null): Stream {
    const stream: Stream = { appends: [], session };
    this.#streams.set(name, stream);
    this.#names.add(name);
    return stream;
  }

  async readStream(stream: StreamName): Promise<StreamEvents | null> {
    this.#requireOpen();
    return this.#read(stream);
  }

  #read(name: StreamName): StreamEvents | null {
    const stream = this.#streams.get(name);
    return stream === undefined ? null : { stream: name, head: headOf(name, stream), events: eventsOf(stream) };
  }

  async *readStreams(filter: StreamFilter): AsyncGenerator<readonly StreamEvents[]> {
    let page: StreamEvents[] = [];
    let text = 0;
    for (const name of this.#matching(filter)) {
      const stream = this.#read(name);
      if (stream === null) continue;
      page.push(stream);
      for (const event of stream.events) text += textOf(event);
      if (text < PAGE_TEXT && page.length < PAGE_STREAMS) continue;
      yield page;
      page = [];
      text = 0;
    }
    if (page.length > 0) yield page;
  }

  async *readUnlisted(): AsyncGenerator<readonly StreamEvents[]> {}

  async *list(filter: StreamFilter): AsyncGenerator<readonly StreamHead[]> {
    let page: StreamHead[] = [];
    for (const name of this.#matching(filter)) {
      const stream = this.#streams.get(name);
      if (stream === undefined) continue;
      page.push(headOf(name, stream));
      if (page.length < PAGE_STREAMS) continue;
      yield page;
      page = [];
    }
    if (page.length > 0) yield page;
  }

  *#matching(filter: StreamFilter): Generator<StreamName> {
    let after = filter.after;
    for (;;) {
      this.#requireOpen();
      const name = this.#names.next(after === undefined ? filter : { ...filter, after });
      if (name === undefined) return;
      after = name;
      if (filter.session === undefined || this.#streams.get(name)?.session === filter.session) yield name;
    }
  }

  async *readAll({ after }: { readonly after: number }): AsyncGenerator<readonly RecordedEvent[]> {
    let next = Math.max(0, after) + 1;
    for (;;) {
      this.#requireOpen();
      const page: RecordedEvent[] = [];
      for (let place = holding(this.#log, next); page.length < PAGE_EVENTS; place++) {
        const packed = this.#log[place];
        if (packed === undefined) break;
        packed.unpack(page, Math.max(0, next - packed.firstPosition));
        next = packed.firstPosition + packed.count;
      }
      if (page.length === 0) return;
      yield page;
    }
  }

  async *subscribe(options: {
    readonly after: number;
    readonly signal: AbortSignal;
  }): AsyncGenerator<readonly RecordedEvent[]> {
    const { signal } = options;
    let after = options.after;
    while (!signal.aborted) {
      const mark = this.#news.mark;
      for await (const page of this.readAll({ after })) {
        if (signal.aborted) return;
        after = page.at(-1)?.position ?? after;
        yield page;
      }
      await this.#news.sleep(mark, signal);
    }
  }

  async readBlob(digest: Digest): Promise<BlobRead> {
    this.#requireOpen();
    return this.#archive.read(digest);
  }

  async collectGarbage({ dryRun }: CollectOptions, onProgress?: (events: number) => void): Promise<Collected> {
    this.#requireOpen();
    const referenced = new Set<string>();
    let events = 0;
    for (const packed of this.#log) {
      const unpacked: RecordedEvent[] = [];
      packed.unpack(unpacked);
      for (const { data } of unpacked) for (const digest of digestsIn(data)) referenced.add(digest);
      events += unpacked.length;
    }
    onProgress?.(events);
    return this.#archive.collect(referenced, dryRun);
  }

  /** Whoever else wrote an event of a ledger in memory is gone. */
  async writerState(writer: string): Promise<"alive" | "dead"> {
    this.#requireOpen();
    return writer === this.writer ? "alive" : "dead";
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#news.wake();
  }

  #requireOpen(): void {
    if (this.#closed) throw new HookledgerError("HL_STORE_CLOSED", "the ledger in memory is closed");
  }
}

/** The acknowledgement of an identical batch that is there already. */
function repeated(stream: Stream | undefined, { expected, events }: AppendRequest): AppendResult | undefined {
  const first = firstRevision(expected);
  const there = stream === undefined ? [] : eventsOf(stream).slice(first, first + events.length);
  const same = events.every((draft, i) => {
    const recorded = there[i];
    return recorded !== undefined && isSameEvent(recorded, draft);
  });
  const last = there.at(-1);
  return same && last !== undefined ? { revision: last.revision, position: last.position } : undefined;
}

function headOf(name: StreamName, stream: Stream): StreamHead {
  const { appends, session } = stream;
  const position = appends[0]?.firstPosition ?? 0;
  return { stream: name, revision: nextRevision(stream) - 1, chain: appends.at(-1)?.chain ?? "", session, position };
}

function eventsOf({ appends }: Stream): readonly RecordedEvent[] {
  const events: RecordedEvent[] = [];
  for (const packed of appends) packed.unpack(events);
  return events;
}

function nextRevision(stream: Stream | undefined): number {
  const last = stream?.appends.at(-1);
  return last === undefined ? 0 : last.firstRevision + last.count;
}

function nextPosition(log: readonly PackedEvents[]): number {
  const last = log.at(-1);
  return last === undefined ? 1 : last.firstPosition + last.count;
}

/** Place of the append that holds a position, or the end of the log. */
function holding(log: readonly PackedEvents[], position: number): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const packed = log[middle];
    if (packed !== undefined && packed.firstPosition + packed.count <= position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Stream names in order. ULIDs mostly arrive in order, so sorting is rare. */
class NameIndex {
  readonly #names: StreamName[] = [];
  #sorted = true;

  add(name: StreamName): void {
    const last = this.#names.at(-1);
    if (last !== undefined && last > name) this.#sorted = false;
    this.#names.push(name);
  }

  /** The first name that the filter's range and order leave. */
  next(filter: StreamFilter): StreamName | undefined {
    if (!this.#sorted) this.#names.sort(byCodeUnits);
    this.#sorted = true;
    const { low, high } = streamRange(filter);
    const name = filter.order === "oldest" ? this.#names[this.#indexOf(low)] : this.#names[this.#indexOf(high) - 1];
    return name !== undefined && name >= low && name < high ? name : undefined;
  }

  /** Of the first name that is not before `bound`. */
  #indexOf(bound: string): number {
    let low = 0;
    let high = this.#names.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#names[middle] ?? "") < bound) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
