/**
 * The store port: what a ledger must be able to do. One contract suite (test/contract) runs against every adapter.
 * Events travel as texts: the record is what was written, byte for byte, and nothing between the recorder and the
 * verifier parses and prints it again.
 */
import type { Digest, EventType } from "../core/events.js";
import type { BlobRead } from "../payload/archive/types.js";

/** `hookdispatch-<ULID>`. */
export type StreamName = `hookdispatch-${string}`;

/** An event as the recorder hands it over. */
export type EventDraft = {
  /** UUID; identical on a retry. */
  readonly id: string;
  readonly type: EventType;
  /** RFC 8785 text. */
  readonly data: string;
  /** RFC 8785 text of the metadata without `chain` and `payloads`; never the empty object. */
  readonly metadata: string;
  /** RFC 8785 text of `{digest: base64}` for small payloads, or undefined. Outside the chain, so that it can be erased. */
  readonly payloads?: string;
};

/** An event as it stands in the ledger. `metadata` is the JSON text with `chain` (and `payloads`) in it. */
export type RecordedEvent = {
  /** Order in the whole ledger, ascending, not necessarily dense. */
  readonly position: number;
  readonly stream: StreamName;
  readonly revision: number;
  readonly id: string;
  /** As stored: may be a type this build does not know. */
  readonly type: string;
  readonly data: string;
  readonly metadata: string;
};

/** A payload too large to travel in the metadata. Written in the same transaction as the events that refer to it. */
export type Blob = { readonly digest: Digest; readonly bytes: Uint8Array };

export type AppendRequest = {
  readonly stream: StreamName;
  /** Revision of the stream's last event, or "none" for a stream that must not exist. */
  readonly expected: number | "none";
  readonly events: readonly EventDraft[];
  readonly blobs?: readonly Blob[];
  /** For look-ups by session; only with the first append of a stream (HL_USAGE otherwise). */
  readonly session?: string;
  /**
   * true: resolve only once this append and every earlier one to its stream is durable (survives power loss); in SQLite that is every
   * earlier one of this store.
   * false: resolve once it is ordered and survives the death of the process; durable at the latest with the next barrier or close.
   */
  readonly barrier: boolean;
};

/** Where the last event of the append stands. */
export type AppendResult = { readonly revision: number; readonly position: number };

/** One row of `heads`. A log that ends before its head is truncated. */
export type StreamHead = {
  readonly stream: StreamName;
  readonly revision: number;
  /** Hex SHA-256 after the last event. */
  readonly chain: string;
  readonly session: string | null;
  /** Position of the stream's first event. */
  readonly position: number;
};

export type StreamEvents = {
  readonly stream: StreamName;
  readonly head: StreamHead | null;
  readonly events: readonly RecordedEvent[];
};

export type StreamFilter = {
  readonly order: "oldest" | "newest";
  /** Exactly this session; null selects dispatches without one; undefined all. */
  readonly session?: string | null;
  /** Streams whose ULID part starts with this (upper case). */
  readonly prefix?: string;
  /** Go on behind this stream, in the given order. */
  readonly after?: StreamName;
};

export type CollectOptions = {
  /** Removes nothing and marks nothing: only counts. */
  readonly dryRun: boolean;
  /** Wall clock, ms since 1970. */
  readonly now: number;
  /**
   * ms for which what nothing refers to is left alone, where the store cannot look for references and remove in one step: there
   * the first collection marks, and one that runs this much later removes what is still marked and unreferenced. SQLite ignores it.
   */
  readonly graceMs: number;
};

/** Counts of payload roots and chunks together; bytes are of their contents. */
export type Collected = {
  readonly kept: number;
  readonly removed: number;
  readonly removedBytes: number;
  /** Unreferenced, and to be removed by a collection after the grace. */
  readonly marked: number;
};

/**
 * Errors thrown by every method: HL_STORE_CLOSED, HL_STORE_UNAVAILABLE, HL_STORE_LOCKED (busy for more than 5 s),
 * HL_STORE_CORRUPT, HL_STORE_READONLY, HL_STORE_FULL; `append` also HL_STORE_CONFLICT (the stream is not at `expected`;
 * nothing was written), HL_LIMIT_EVENT (an event above 256 KiB), HL_LIMIT_APPEND (events above
 * 768 KiB together), HL_STORE_BACKLOG (too much waits to be written already; nothing of this append was) and HL_STORE_AMBIGUOUS (it may or may not have been written: read back, or retry the identical request).
 */
export interface EventStore {
  /** The store's URL, for messages. */
  readonly url: string;
  /** Names the writer in each event's metadata; alive as long as the store is open. A ULID. */
  readonly writer: string;
  /** Bytes of appends, blobs included, that are not answered yet. An append beyond the store's bound is refused: HL_STORE_BACKLOG. */
  readonly pendingBytes: number;

  /**
   * Appends all or nothing, sealing each event with the chain. Idempotent: an identical batch (same ids, position by
   * position) at an exact `expected` revision that is there already is acknowledged again; a partial overlap is a conflict.
   * Appends of one store are carried out in the order of the calls.
   */
  append(request: AppendRequest): Promise<AppendResult>;

  /** All events of a stream, oldest first, with its head; null if there is no such stream. */
  readStream(stream: StreamName): Promise<StreamEvents | null>;

  /** Whole streams, a page at a time, by ULID. Flat in memory: at most about 4 MiB of event text a page, or one stream. */
  readStreams(filter: StreamFilter): AsyncIterable<readonly StreamEvents[]>;

  /**
   * Streams that `list` and `readStreams` do not show, because the store's own index does not name them: put there by somebody
   * else, or by a crash at the worst moment. May read the whole ledger; nothing where there is no separate index.
   */
  readUnlisted(): AsyncIterable<readonly StreamEvents[]>;

  /** Heads only, a page at a time, by ULID. */
  list(filter: StreamFilter): AsyncIterable<readonly StreamHead[]>;

  /** Every event in ledger order behind `after` (0 = from the start), a page at a time, to the end as it is when reached. */
  readAll(options: { readonly after: number }): AsyncIterable<readonly RecordedEvent[]>;

  /** As `readAll`, then goes on with what is appended (by any process) until `signal` aborts. Each event exactly once, in order. */
  subscribe(options: { readonly after: number; readonly signal: AbortSignal }): AsyncIterable<readonly RecordedEvent[]>;

  /** What is kept under a digest; every chunk was checked, the digest of the whole is the caller's to check. */
  readBlob(digest: Digest): Promise<BlobRead>;

  /** Is the writer that this ledger names still alive? "unknown" where the store cannot tell (then age decides). */
  writerState(writer: string): Promise<"alive" | "dead" | "unknown">;

  /** Flushes, makes everything durable, and lets go. Idempotent. */
  close(): Promise<void>;
}

/** Part of every store that can be written. */
export interface GarbageCollection {
  /**
   * Removes payloads and chunks that no event refers to (a crash between a payload and its events, removed streams), never one
   * that an event refers to, whatever is appended meanwhile. `onProgress` is told of each page with the events read so far.
   */
  collectGarbage(options: CollectOptions, onProgress?: (events: number) => void): Promise<Collected>;
}

export function collectsGarbage(store: EventStore): store is EventStore & GarbageCollection {
  return "collectGarbage" in store;
}

/** Part of stores that know at once of a writer that died. */
export interface WriterRegistry {
  /** Writers that ended without closing the ledger and have not been forgotten: they may have left dispatches open. */
  deadWriters(): Promise<readonly string[]>;
  /** What they left is closed, and nobody needs to look for it again. They stay dead. */
  forgetWriters(writers: readonly string[]): Promise<void>;
}

export function registersWriters(store: EventStore): store is EventStore & WriterRegistry {
  return "deadWriters" in store && "forgetWriters" in store;
}
