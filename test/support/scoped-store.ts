/**
 * A store on a real server that others use, too: what a test writes lives under names that nobody else uses, and the test sees nothing
 * else. Every store is its own, empty ledger. Afterwards `removeAll` takes away what was written.
 */
import { createHash, randomBytes } from "node:crypto";
import { EventStoreDBClient } from "@eventstore/db-client";
import type { Digest } from "#src/core/events.js";
import { cut } from "#src/payload/archive/cut.js";
import type {
  AppendRequest,
  EventStore,
  RecordedEvent,
  StreamEvents,
  StreamFilter,
  StreamHead,
  StreamName,
} from "#src/store/port.js";
import { opening } from "./store-fixtures.js";

const CATEGORY = "hookdispatch-";

export class Scopes {
  /** No ULID begins like that. The first five characters are the same for every run: one entry in the root of the catalogue. */
  readonly #run = `TESTS${letters(2)}`;
  readonly #streams = new Set<string>();
  readonly sessionSuffix = `-${this.#run}${letters(8)}`;
  #stores = 0;

  /** `inner`: a store on the server. Closed with the one that is returned. */
  async open(inner: EventStore): Promise<EventStore> {
    const scope = `${this.#run}${String(++this.#stores).padStart(3, "0")}${letters(4)}-`;
    const mark: StreamName = `${CATEGORY}${this.#run}${letters(8)}`;
    this.#note({ ...opening(0), stream: mark });
    const { position } = await inner.append({ ...opening(0), stream: mark });
    return scoped(inner, scope, position, (request) => this.#note(request));
  }

  /** Soft, as the store itself deletes; the server's next scavenge frees the room. */
  async removeAll(url: string): Promise<void> {
    const client = EventStoreDBClient.connectionString(url.replace(/^kurrentdb/, "esdb"));
    for (const name of this.#streams) await client.deleteStream(name).catch(() => {});
    await client.dispose();
  }

  #note({ stream: name, session, blobs = [] }: AppendRequest): void {
    const id = name.slice(CATEGORY.length);
    for (const each of [name, `hookindex-${id.slice(0, 7)}`, `hookindex-${id.slice(0, 5)}`]) this.#streams.add(each);
    if (session !== undefined) this.#streams.add(`hooksession-${sha256(session)}`);
    for (const { digest, bytes } of blobs) {
      this.#streams.add(`hookpayload-${digest.slice("sha256:".length)}`);
      for (const { hash } of cut(bytes).chunks) this.#streams.add(`hookchunk-${hash}`);
    }
  }
}

function scoped(inner: EventStore, scope: string, start: number, note: (request: AppendRequest) => void): EventStore {
  const inside = (name: StreamName): StreamName => `${CATEGORY}${scope}${name.slice(CATEGORY.length)}`;
  const outside = (name: StreamName): StreamName => `${CATEGORY}${name.slice(CATEGORY.length + scope.length)}`;
  const digestOf = (digest: Digest): Digest => `sha256:${sha256(scope + digest)}`;
  const isOurs = ({ stream: name }: { readonly stream: StreamName }) => name.startsWith(CATEGORY + scope);
  const event = (each: RecordedEvent) => ({ ...each, stream: outside(each.stream) });
  const head = (each: StreamHead) => ({ ...each, stream: outside(each.stream) });
  const events = (each: StreamEvents): StreamEvents => ({
    stream: outside(each.stream),
    head: each.head === null ? null : head(each.head),
    events: each.events.map(event),
  });
  const filterOf = ({ prefix = "", after, ...rest }: StreamFilter): StreamFilter => ({
    ...rest,
    prefix: scope + prefix,
    ...(after === undefined ? {} : { after: inside(after) }),
  });
  async function* pages<T, U>(all: AsyncIterable<readonly T[]>, map: (each: T) => U, keep: (each: T) => boolean) {
    for await (const page of all) {
      const kept = page.filter(keep).map(map);
      if (kept.length > 0) yield kept;
    }
  }
  const everything = () => true;
  return {
    url: inner.url,
    writer: inner.writer,
    get pendingBytes() {
      return inner.pendingBytes;
    },
    append(request) {
      const { blobs } = request;
      const own = {
        ...request,
        stream: inside(request.stream),
        ...(blobs === undefined
          ? {}
          : { blobs: blobs.map(({ digest, bytes }) => ({ digest: digestOf(digest), bytes })) }),
      };
      note(own);
      return inner.append(own);
    },
    async readStream(name) {
      const found = await inner.readStream(inside(name));
      return found === null ? null : events(found);
    },
    readStreams: (filter) => pages(inner.readStreams(filterOf(filter)), events, everything),
    readUnlisted: () => pages(inner.readUnlisted(), events, isOurs),
    list: (filter) => pages(inner.list(filterOf(filter)), head, everything),
    readAll: ({ after }) => pages(inner.readAll({ after: Math.max(after, start) }), event, isOurs),
    subscribe: ({ after, signal }) => pages(inner.subscribe({ after: Math.max(after, start), signal }), event, isOurs),
    readBlob: (digest) => inner.readBlob(digestOf(digest)),
    writerState: (writer) => inner.writerState(writer),
    close: () => inner.close(),
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function letters(count: number): string {
  return Array.from(randomBytes(count), (byte) => "ABCDEFGHJKMNPQRSTVWXYZ0123456789".charAt(byte % 32)).join("");
}
