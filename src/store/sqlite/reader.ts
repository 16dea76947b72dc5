/** Reads a ledger on a connection of its own, in the calling thread; every page is one consistent snapshot. */
import type Database from "better-sqlite3";
import type { Digest } from "../../core/events.js";
import { MAX_CHUNK_BYTES } from "../../payload/archive/types.js";
import { PAGE_EVENTS, PAGE_STREAMS, PAGE_TEXT, textOf } from "../page.js";
import type { RecordedEvent, StreamEvents, StreamFilter, StreamHead, StreamName } from "../port.js";
import type { QueuedDelivery, QueueFilter } from "../queue.js";
import { deliveryLength } from "../queue-check.js";
import { streamRange } from "../range.js";
import { chunkKey } from "./archive.js";
import { type Row, toInteger, toText } from "./columns.js";
import { connectReader } from "./connect.js";
import { deliveryQuery } from "./deliveries.js";
import { storeError } from "./failure.js";

const EVENT = "position, stream, revision, id, type, data, metadata";
const HEAD = "stream, revision, chain, session, position";
/** Deliveries in a page, unless the filter says otherwise. */
const PAGE_DELIVERIES = 256;
const CHUNK = `SELECT bytes FROM chunks WHERE digest = ? AND length(bytes) <= ${MAX_CHUNK_BYTES}`;

export class LedgerReader {
  readonly #path: string;
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Database.Statement<unknown[], Row>>();

  /** `path`: real path of a ledger that `findLedger` accepted. Throws as the port says. */
  constructor(path: string, busyTimeoutMs: number) {
    this.#path = path;
    this.#db = connectReader(path, busyTimeoutMs);
  }

  /** The stream as it stands, or null. A stream with a head and no event, or the reverse, is returned as found. */
  stream(name: StreamName): StreamEvents | null {
    return this.#snapshot(() => this.#stream(name));
  }

  /** The first streams of the filter, by name: about PAGE_TEXT of event text, or one stream. Empty at the end. */
  streams(filter: StreamFilter): readonly StreamEvents[] {
    return this.#snapshot(() => {
      const page: StreamEvents[] = [];
      let text = 0;
      for (const name of this.#names(filter)) {
        const stream = this.#stream(name);
        if (stream === null) continue;
        for (const event of stream.events) text += textOf(event);
        if (text > PAGE_TEXT && page.length > 0) break;
        page.push(stream);
      }
      return page;
    });
  }

  /** The first heads of the filter. Empty at the end. */
  heads(filter: StreamFilter): readonly StreamHead[] {
    return this.#snapshot(() => {
      const { where, parameters } = condition(filter);
      return this.#rows(
        `SELECT ${HEAD} FROM heads WHERE ${where} ORDER BY stream ${direction(filter)} LIMIT ${PAGE_STREAMS}`,
        parameters,
      ).map(toHead);
    });
  }

  /** The first events behind a position, about PAGE_TEXT of text at most, or one event. Empty at the end. */
  events(after: number): readonly RecordedEvent[] {
    return this.#snapshot(() => {
      const page: RecordedEvent[] = [];
      let text = 0;
      const sql = `SELECT ${EVENT} FROM events WHERE position > ? ORDER BY position LIMIT ${PAGE_EVENTS}`;
      for (const row of this.#statement(sql).iterate(after)) {
        const event = toEvent(row);
        text += textOf(event);
        if (text > PAGE_TEXT && page.length > 0) break;
        page.push(event);
      }
      return page;
    });
  }

  /** The root of an archived payload. */
  root(digest: Digest): Uint8Array | null {
    return this.#snapshot(() => {
      const bytes = this.#rows("SELECT bytes FROM payloads WHERE digest = ?", [digest])[0]?.[0];
      return bytes instanceof Uint8Array ? bytes : null;
    });
  }

  /** Those of the chunks that are there, by hash. */
  chunks(hashes: readonly string[]): ReadonlyMap<string, Uint8Array> {
    return this.#snapshot(() => {
      const chunks = new Map<string, Uint8Array>();
      for (const hash of hashes) {
        const bytes = this.#rows(CHUNK, [chunkKey(hash)])[0]?.[0];
        if (bytes instanceof Uint8Array) chunks.set(hash, bytes);
      }
      return chunks;
    });
  }

  /** The first deliveries of the filter, about PAGE_TEXT of text at most, or one. Empty at the end, and where nobody has queued yet. */
  deliveries(filter: QueueFilter): readonly QueuedDelivery[] {
    return this.#snapshot(() => {
      const page: QueuedDelivery[] = [];
      const { limit = PAGE_DELIVERIES } = filter;
      const { sql, parameters, read } = deliveryQuery(this.#path, filter);
      if (!this.#has("deliveries") || parameters.length === 0 || limit < 1) return page;
      let text = 0;
      for (const row of this.#statement(sql).iterate(...parameters)) {
        const delivery = read(row);
        if (delivery === null) continue;
        text += deliveryLength(delivery);
        if (text > PAGE_TEXT && page.length > 0) break;
        page.push(delivery);
        if (page.length >= limit) break;
      }
      return page;
    });
  }

  close(): void {
    this.#db.close();
  }

  /** Names with a head, or only with events; by session only those whose head says so. */
  #names(filter: StreamFilter): readonly StreamName[] {
    const { where, parameters } = condition(filter);
    const heads = `SELECT stream FROM heads WHERE ${where}`;
    const tail = `ORDER BY stream ${direction(filter)} LIMIT ${PAGE_STREAMS}`;
    const rows =
      filter.session === undefined
        ? this.#rows(`${heads} UNION SELECT stream FROM events WHERE ${where} ${tail}`, [...parameters, ...parameters])
        : this.#rows(`${heads} ${tail}`, parameters);
    return rows.map(([stream]) => toName(stream));
  }

  #stream(name: StreamName): StreamEvents | null {
    const head = this.#rows(`SELECT ${HEAD} FROM heads WHERE stream = ?`, [name])[0];
    const events = this.#rows(`SELECT ${EVENT} FROM events WHERE stream = ? ORDER BY revision`, [name]);
    if (head === undefined && events.length === 0) return null;
    return { stream: name, head: head === undefined ? null : toHead(head), events: events.map(toEvent) };
  }

  /** Ledgers of the first format have fewer tables. */
  #has(table: string): boolean {
    return this.#rows("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", [table]).length > 0;
  }

  #rows(sql: string, parameters: readonly unknown[]): Row[] {
    return this.#statement(sql).all(...parameters);
  }

  #statement(sql: string): Database.Statement<unknown[], Row> {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#db.prepare<unknown[], Row>(sql).raw();
    this.#statements.set(sql, statement);
    return statement;
  }

  #snapshot<T>(read: () => T): T {
    try {
      return this.#db.transaction(read)();
    } catch (error) {
      throw storeError(error, this.#path);
    }
  }
}

function condition(filter: StreamFilter): { readonly where: string; readonly parameters: readonly unknown[] } {
  const { low, high } = streamRange(filter);
  const range = "stream >= ? AND stream < ?";
  if (filter.session === undefined) return { where: range, parameters: [low, high] };
  return { where: `session IS ? AND ${range}`, parameters: [filter.session, low, high] };
}

function direction(filter: StreamFilter): "ASC" | "DESC" {
  return filter.order === "oldest" ? "ASC" : "DESC";
}

function toEvent([position, stream, revision, id, type, data, metadata]: Row): RecordedEvent {
  return {
    position: toInteger(position),
    stream: toName(stream),
    revision: toInteger(revision),
    id: toText(id),
    type: toText(type),
    data: toText(data),
    metadata: toText(metadata),
  };
}

function toHead([stream, revision, chain, session, position]: Row): StreamHead {
  return {
    stream: toName(stream),
    revision: toInteger(revision),
    chain: toText(chain),
    session: session === null ? null : toText(session),
    position: toInteger(position),
  };
}

function toName(column: unknown): StreamName {
  return toText(column) as StreamName;
}
