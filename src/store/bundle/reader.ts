/** Reads a bundle, in the calling thread, believing nothing: a row that is none is HL_BUNDLE, events that are none are missing. */
import type Database from "better-sqlite3";
import type { Digest } from "../../core/events.js";
import { assemble } from "../../payload/archive/assemble.js";
import type { BlobRead } from "../../payload/archive/types.js";
import { PAGE_EVENTS, PAGE_STREAMS as PAGE_HEADS, PAGE_TEXT } from "../page.js";
import type { RecordedEvent, StreamEvents, StreamFilter, StreamHead, StreamName } from "../port.js";
import { streamRange } from "../range.js";
import type { BundleDescription } from "./description.js";
import { type BundleSum, isBehind, sumBundle } from "./digest.js";
import { MAX_EVENTS, parseEvents, placeAt, positionOf } from "./event-text.js";
import { bundleError, connectBundle, malformed, readDescription } from "./file.js";
import {
  bytesColumn,
  MAX_CHAIN_BYTES,
  MAX_NAME_BYTES,
  MAX_PIECE_BYTES,
  MAX_SESSION_BYTES,
  MAX_STREAM_BYTES,
  textColumn,
} from "./schema.js";

const HEAD = [
  "place",
  textColumn("stream", MAX_NAME_BYTES),
  textColumn("session", MAX_SESSION_BYTES),
  "session IS NULL",
  "revision",
  textColumn("chain", MAX_CHAIN_BYTES),
].join(", ");
const STREAM = `${HEAD}, ${textColumn("events", MAX_STREAM_BYTES)}`;
/** Small pages: what has been read and not yet dealt with costs the garbage collector more than a further query. */
const PAGE_STREAMS = 64;
/** Streams beyond this have positions that no number holds exactly. */
const MAX_PLACE = Math.floor(Number.MAX_SAFE_INTEGER / MAX_EVENTS) - 1;

type Row = readonly unknown[];
type Placed = { readonly place: number; readonly head: StreamHead };

export class BundleReader {
  readonly #path: string;
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement<unknown[], Row>>();
  readonly description: BundleDescription;

  /** `path`: real path of a file that `findBundle` accepted. Throws HL_BUNDLE, HL_STORE_LOCKED, HL_STORE_UNAVAILABLE, as every method does. */
  constructor(path: string) {
    this.#path = path;
    this.#db = connectBundle(path, "read");
    try {
      this.description = readDescription(this.#db, path);
    } catch (error) {
      this.#db.close();
      throw bundleError(error, path);
    }
  }

  stream(name: StreamName): StreamEvents | null {
    return this.#guarded(() => {
      const row = this.#statement(`SELECT ${STREAM} FROM streams WHERE stream = ?`).get(name);
      return row === undefined ? null : this.#toStream(row).stream;
    });
  }

  /** The first streams of the filter, by name: about PAGE_TEXT of text, or one stream. Empty at the end. */
  streams(filter: StreamFilter): readonly StreamEvents[] {
    return this.#guarded(() => {
      const page: StreamEvents[] = [];
      let text = 0;
      for (const row of this.#matching(STREAM, filter, PAGE_STREAMS)) {
        const { stream, length } = this.#toStream(row);
        text += length;
        if (text > PAGE_TEXT && page.length > 0) break;
        page.push(stream);
      }
      this.#requireOrder(
        page.map(({ stream }) => stream),
        filter,
      );
      return page;
    });
  }

  heads(filter: StreamFilter): readonly StreamHead[] {
    return this.#guarded(() => {
      const page = Array.from(this.#matching(HEAD, filter, PAGE_HEADS), (row) => this.#toHead(row).head);
      this.#requireOrder(
        page.map(({ stream }) => stream),
        filter,
      );
      return page;
    });
  }

  /** The first events behind a position. Empty at the end. */
  events(after: number): readonly RecordedEvent[] {
    return this.#guarded(() => {
      const page: RecordedEvent[] = [];
      let [text, rows, last] = [0, 0, -1];
      const sql = `SELECT ${STREAM} FROM streams WHERE place >= ? ORDER BY place`;
      for (const row of this.#statement(sql).iterate(Math.max(1, placeAt(after)))) {
        const { stream, length } = this.#toStream(row);
        const position = stream.head?.position ?? 0;
        // A tree that leads in circles, or to the same rows again and again, has no end.
        if (position <= last) throw malformed(this.#path, "its streams are out of order");
        last = position;
        text += length;
        // Rows without events are passed over, however many they are.
        const isFull = text > PAGE_TEXT || page.length > PAGE_EVENTS || ++rows > PAGE_STREAMS;
        if (isFull && page.length > 0) break;
        for (const event of stream.events) if (event.position > after) page.push(event);
      }
      return page;
    });
  }

  /** What the payload's digest leads to; the caller checks the whole. */
  async blob(digest: Digest): Promise<BlobRead> {
    const root = this.#piece("payloads", "digest", "root", digest);
    if (root === undefined) return { kind: "missing" };
    if (root === null) return { kind: "damaged", detail: "its root is none" };
    return assemble(root, async (hashes) => {
      const chunks = new Map<string, Uint8Array>();
      for (const hash of hashes) {
        const bytes = this.#piece("chunks", "hash", "bytes", hash);
        if (bytes instanceof Uint8Array) chunks.set(hash, bytes);
      }
      return chunks;
    });
  }

  /** Reads all heads and digests. */
  sum(): BundleSum {
    return this.#guarded(() => sumBundle(this.#db, this.#path));
  }

  close(): void {
    this.#db.close();
  }

  #piece(table: string, key: string, column: string, value: string): Uint8Array | null | undefined {
    return this.#guarded(() => {
      const sql = `SELECT ${bytesColumn(column, MAX_PIECE_BYTES)} FROM ${table} WHERE ${key} = ?`;
      const row = this.#statement(sql).get(value);
      if (row === undefined) return undefined;
      return row[0] instanceof Uint8Array ? row[0] : null;
    });
  }

  #matching(columns: string, filter: StreamFilter, limit: number): IterableIterator<Row> {
    const { low, high } = streamRange(filter);
    const tail = `stream >= ? AND stream < ? ORDER BY stream ${filter.order === "oldest" ? "ASC" : "DESC"} LIMIT ${limit}`;
    return filter.session === undefined
      ? this.#statement(`SELECT ${columns} FROM streams WHERE ${tail}`).iterate(low, high)
      : this.#statement(`SELECT ${columns} FROM streams WHERE session IS ? AND ${tail}`).iterate(
          filter.session,
          low,
          high,
        );
  }

  /** An index that leads in circles must not lead us. */
  #requireOrder(names: readonly StreamName[], { order, after }: StreamFilter): void {
    let last: string | undefined = after;
    for (const name of names) {
      if (last !== undefined && !(order === "oldest" ? isBehind(name, last) : isBehind(last, name))) {
        throw malformed(this.#path, "its streams are out of order");
      }
      last = name;
    }
  }

  #toStream(row: Row): { readonly stream: StreamEvents; readonly length: number } {
    const { place, head } = this.#toHead(row);
    const text = row[6];
    if (typeof text !== "string") return { stream: { stream: head.stream, head, events: [] }, length: 0 };
    const events = parseEvents(text, head.stream, place) ?? [];
    return { stream: { stream: head.stream, head, events }, length: text.length };
  }

  #toHead([place, stream, session, withoutSession, revision, chain]: Row): Placed {
    const named = isStreamName(stream) && (typeof session === "string" || withoutSession === 1);
    if (!named || !isWhole(place, 1, MAX_PLACE) || !isWhole(revision, 0, MAX_EVENTS - 1) || typeof chain !== "string") {
      throw malformed(this.#path, "a row of its streams is none");
    }
    const known = typeof session === "string" ? session : null;
    return { place, head: { stream, revision, chain, session: known, position: positionOf(place) } };
  }

  #statement(sql: string): Database.Statement<unknown[], Row> {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare<unknown[], Row>(sql).raw();
    this.#statements.set(sql, statement);
    return statement;
  }

  #guarded<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw bundleError(error, this.#path);
    }
  }
}

function isStreamName(value: unknown): value is StreamName {
  return typeof value === "string" && value.startsWith("hookdispatch-");
}

function isWhole(value: unknown, least: number, most: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most;
}
