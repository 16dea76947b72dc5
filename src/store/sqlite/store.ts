/** A ledger in one SQLite file. */
import { randomBytes } from "node:crypto";
import type { Digest } from "../../core/events.js";
import { HookledgerError } from "../../errors.js";
import { assemble } from "../../payload/archive/assemble.js";
import type { BlobRead } from "../../payload/archive/types.js";
import { checkAppend } from "../append.js";
import { PagedReads } from "../page.js";
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
  WriterRegistry,
} from "../port.js";
import type { DeliveryChange, DeliveryQueue, DeliveryState, QueuedDelivery, QueueFilter } from "../queue.js";
import { checkedChange, checkedDelivery, checkedId, checkedState } from "../queue-check.js";
import { ulid } from "../ulid.js";
import { Wakeup } from "../wakeup.js";
import { collectGarbage } from "./collector.js";
import { storeError } from "./failure.js";
import { findLedger, findOrCreateLedger } from "./file.js";
import { deadWritersOf, forgetWritersOf, holdWriterLock, type WriterLock, writerStateOf } from "./liveness.js";
import { LedgerReader } from "./reader.js";
import { type SpawnWriter, WriterClient } from "./writer-client.js";

/** ms after which a subscription looks for events of other processes. */
const POLL = 50;
/** ms that a lock of another process is waited for. */
const BUSY_TIMEOUT = 5000;

type SqliteStoreOptions = {
  /** "read" never creates or changes a ledger; its `append` throws HL_STORE_READONLY. */
  readonly mode: "read" | "write";
  /** ULID, never used before; default: a fresh one. */
  readonly writer?: string;
  readonly busyTimeoutMs?: number;
  readonly spawnWriter?: SpawnWriter;
};

/**
 * Opens the ledger at `path`; with mode "write" creates what is missing (folders 0700, files 0600).
 * Throws HL_STORE_MISSING, HL_STORE_FOREIGN, HL_STORE_VERSION, HL_STORE_CORRUPT, HL_STORE_LOCKED, HL_STORE_READONLY,
 * HL_STORE_FULL, HL_STORE_UNAVAILABLE. A file that is not ours is left as it is.
 */
export async function openSqliteStore(
  path: string,
  options: SqliteStoreOptions,
): Promise<EventStore & GarbageCollection> {
  const { mode, writer = ulid(Date.now(), randomBytes(10)), busyTimeoutMs = BUSY_TIMEOUT } = options;
  const real = mode === "write" ? findOrCreateLedger(path) : findLedger(path);
  const reader = new LedgerReader(real, busyTimeoutMs);
  const identity = { url: `sqlite:${path}`, path: real, writer, busyTimeoutMs };
  if (mode === "read") return new SqliteStore(identity, reader, undefined);
  let lock: WriterLock | undefined;
  try {
    lock = holdWriterLock(real, writer);
    const client = await WriterClient.open({ path: real, busyTimeoutMs }, options.spawnWriter);
    return new SqliteStore(identity, reader, { client, lock });
  } catch (error) {
    lock?.release();
    reader.close();
    throw storeError(error, real);
  }
}

type Identity = {
  readonly url: string;
  readonly path: string;
  readonly writer: string;
  readonly busyTimeoutMs: number;
};
type Writing = { readonly client: WriterClient; readonly lock: WriterLock };

class SqliteStore implements EventStore, GarbageCollection, WriterRegistry, DeliveryQueue {
  readonly url: string;
  readonly writer: string;
  readonly #path: string;
  readonly #busyTimeoutMs: number;
  readonly #reader: LedgerReader;
  readonly #pages = new PagedReads(() => this.#open());
  readonly #writing: Writing | undefined;
  readonly #news = new Wakeup();
  #closed: Promise<void> | undefined;

  constructor({ url, path, writer, busyTimeoutMs }: Identity, reader: LedgerReader, writing: Writing | undefined) {
    this.url = url;
    this.writer = writer;
    this.#path = path;
    this.#busyTimeoutMs = busyTimeoutMs;
    this.#reader = reader;
    this.#writing = writing;
  }

  get pendingBytes(): number {
    return this.#writing?.client.pendingBytes ?? 0;
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    const client = this.#client();
    checkAppend(request);
    const result = await client.append(request);
    this.#news.wake();
    return result;
  }

  async put(deliveries: readonly QueuedDelivery[], barrier: boolean): Promise<void> {
    const client = this.#client();
    await client.queue({ kind: "put", deliveries: deliveries.map(checkedDelivery), writer: this.writer, barrier });
  }

  async change(id: string, from: readonly DeliveryState[], change: DeliveryChange, barrier: boolean): Promise<boolean> {
    const client = this.#client();
    return client.queue({
      kind: "change",
      id: checkedId(id),
      from: from.map(checkedState),
      to: checkedChange(change),
      writer: this.writer,
      barrier,
    });
  }

  async deliveries(filter: QueueFilter): Promise<readonly QueuedDelivery[]> {
    return this.#open().deliveries(filter);
  }

  async readStream(stream: StreamName): Promise<StreamEvents | null> {
    return this.#open().stream(stream);
  }

  readStreams(filter: StreamFilter): AsyncGenerator<readonly StreamEvents[]> {
    return this.#pages.streams(filter);
  }

  /** Streams without a head are listed, too. */
  async *readUnlisted(): AsyncGenerator<readonly StreamEvents[]> {}

  list(filter: StreamFilter): AsyncGenerator<readonly StreamHead[]> {
    return this.#pages.heads(filter);
  }

  readAll({ after }: { readonly after: number }): AsyncGenerator<readonly RecordedEvent[]> {
    return this.#pages.events(after);
  }

  async *subscribe(options: {
    readonly after: number;
    readonly signal: AbortSignal;
  }): AsyncGenerator<readonly RecordedEvent[]> {
    const { signal } = options;
    let { after } = options;
    while (!signal.aborted) {
      const mark = this.#news.mark;
      const page = this.#open().events(after);
      const last = page.at(-1);
      if (last === undefined) {
        await this.#news.sleep(mark, signal, POLL);
        continue;
      }
      yield page;
      after = last.position;
    }
  }

  async readBlob(digest: Digest): Promise<BlobRead> {
    const root = this.#open().root(digest);
    if (root === null) return { kind: "missing" };
    const read = await assemble(root, async (hashes) => this.#open().chunks(hashes));
    // What nothing refers to may be removed while it is read.
    return read.kind === "damaged" && this.#open().root(digest) === null ? { kind: "missing" } : read;
  }

  async collectGarbage({ dryRun }: CollectOptions, onProgress?: (events: number) => void): Promise<Collected> {
    this.#open();
    if (this.#writing === undefined && !dryRun) throw this.#readOnly();
    return collectGarbage({
      path: this.#path,
      busyTimeoutMs: this.#busyTimeoutMs,
      dryRun,
      onStep: (events) => {
        this.#open();
        onProgress?.(events);
      },
    });
  }

  async writerState(writer: string): Promise<"alive" | "dead" | "unknown"> {
    this.#open();
    return writerStateOf(this.#path, writer);
  }

  async deadWriters(): Promise<readonly string[]> {
    this.#open();
    return deadWritersOf(this.#path);
  }

  async forgetWriters(writers: readonly string[]): Promise<void> {
    this.#open();
    if (this.#writing !== undefined) forgetWritersOf(this.#path, writers);
  }

  close(): Promise<void> {
    this.#closed ??= this.#letGo();
    return this.#closed;
  }

  /** The reader goes first: the last connection to close empties the write-ahead log, and that takes a writer. */
  async #letGo(): Promise<void> {
    this.#news.wake();
    this.#reader.close();
    try {
      await this.#writing?.client.close();
    } finally {
      this.#writing?.lock.release();
    }
  }

  /** Throws HL_STORE_CLOSED and HL_STORE_READONLY. */
  #client(): WriterClient {
    this.#open();
    if (this.#writing === undefined) throw this.#readOnly();
    return this.#writing.client;
  }

  #readOnly(): HookledgerError {
    return new HookledgerError("HL_STORE_READONLY", `the ledger ${this.#path} is open for reading only`);
  }

  #open(): LedgerReader {
    if (this.#closed !== undefined) throw new HookledgerError("HL_STORE_CLOSED", `the ledger ${this.#path} is closed`);
    return this.#reader;
  }
}
