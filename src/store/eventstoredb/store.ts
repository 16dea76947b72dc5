/** A ledger on EventStoreDB or KurrentDB. The client runs in two threads, one for appends and one for everything else. */
import { randomBytes } from "node:crypto";
import type { Digest } from "../../core/events.js";
import { HookledgerError } from "../../errors.js";
import type { BlobRead } from "../../payload/archive/types.js";
import { checkAppend, withOwnBlobs } from "../append.js";
import { Backlog } from "../backlog.js";
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
} from "../port.js";
import { ulid } from "../ulid.js";
import { parseServerUrl, type ServerAddress } from "./address.js";
import { closed } from "./failure.js";
import { sharedNow } from "./protocol.js";
import { ClientThread, type SpawnThread } from "./thread.js";

/** Deadlines of one call in which an append has to be answered: it may have to be read back, and sent again. */
const APPEND_DEADLINES = 2;

export type EventStoreDbOptions = {
  /** "read" never writes; its `append` throws HL_STORE_READONLY. */
  readonly mode: "read" | "write";
  /** ULID, never used before; default: a fresh one. */
  readonly writer?: string;
  readonly spawnThread?: SpawnThread;
};

/**
 * Opens the ledger of the server that `url` names, once it has answered.
 * Throws HL_STORE_URL, HL_STORE_UNAVAILABLE, HL_STORE_DENIED. Streams and indexes come into being with the first append.
 */
export async function openEventStoreDb(
  url: string,
  options: EventStoreDbOptions,
): Promise<EventStore & GarbageCollection> {
  const address = parseServerUrl(url);
  const { mode, writer = ulid(Date.now(), randomBytes(10)), spawnThread } = options;
  const reading = new ClientThread({ role: "read", address }, spawnThread);
  const appending = mode === "read" ? undefined : new ClientThread({ role: "append", address }, spawnThread);
  const store = new EventStoreDb(address, writer, reading, appending);
  try {
    await Promise.all([reading.ask("ping", null), appending?.ask("ping", null)]);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class EventStoreDb implements EventStore, GarbageCollection {
  readonly url: string;
  readonly writer: string;
  readonly #deadline: number;
  readonly #reading: ClientThread;
  readonly #appending: ClientThread | undefined;
  readonly #backlog = new Backlog();
  readonly #pages = new PagedReads(() => {
    this.#requireOpen();
    const reading = this.#reading;
    return {
      streams: (filter) => reading.ask("streams", filter),
      heads: (filter) => reading.ask("heads", filter),
      events: (after) => reading.ask("events", { after }),
    };
  });
  #subscriptions = 0;
  #closed: Promise<void> | undefined;

  constructor(
    { shown, defaultDeadline }: ServerAddress,
    writer: string,
    reading: ClientThread,
    appending: ClientThread | undefined,
  ) {
    this.url = shown;
    this.writer = writer;
    this.#deadline = defaultDeadline;
    this.#reading = reading;
    this.#appending = appending;
  }

  get pendingBytes(): number {
    return this.#backlog.bytes;
  }

  async append(request: AppendRequest): Promise<AppendResult> {
    this.#requireOpen();
    if (this.#appending === undefined) throw readOnly(this.url);
    checkAppend(request);
    const bytes = this.#backlog.admit(request);
    try {
      const until = sharedNow() + APPEND_DEADLINES * this.#deadline;
      return await this.#appending.ask("append", { request: withOwnBlobs(request), until });
    } finally {
      this.#backlog.release(bytes);
    }
  }

  async readStream(stream: StreamName): Promise<StreamEvents | null> {
    this.#requireOpen();
    return this.#reading.ask("stream", stream);
  }

  readStreams(filter: StreamFilter): AsyncGenerator<readonly StreamEvents[]> {
    return this.#pages.streams(filter);
  }

  async *readUnlisted(): AsyncGenerator<readonly StreamEvents[]> {
    for (let after: number | null = 0; after !== null; ) {
      this.#requireOpen();
      const { streams, next }: { readonly streams: readonly StreamEvents[]; readonly next: number | null } =
        await this.#reading.ask("unlisted", { after });
      if (streams.length > 0) yield streams;
      after = next;
    }
  }

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
    const subscription = ++this.#subscriptions;
    let { after } = options;
    const end = (): void => void this.#reading.ask("unsubscribe", { subscription }).catch(() => {});
    signal.addEventListener("abort", end, { once: true });
    try {
      while (!signal.aborted) {
        this.#requireOpen();
        const page = await this.#reading.ask("news", { subscription, after });
        if (signal.aborted) return;
        const last = page.at(-1);
        if (last === undefined) continue;
        yield page;
        after = last.position;
      }
    } finally {
      signal.removeEventListener("abort", end);
      if (!signal.aborted) end();
    }
  }

  async readBlob(digest: Digest): Promise<BlobRead> {
    this.#requireOpen();
    return this.#reading.ask("blob", digest);
  }

  /** No lock tells whether another process lives: the age of what it wrote has to. */
  async writerState(writer: string): Promise<"alive" | "unknown"> {
    this.#requireOpen();
    return writer === this.writer ? "alive" : "unknown";
  }

  async collectGarbage(options: CollectOptions, onProgress?: (events: number) => void): Promise<Collected> {
    this.#requireOpen();
    if (this.#appending === undefined && !options.dryRun) throw readOnly(this.url);
    return this.#reading.ask("collect", options, onProgress);
  }

  close(): Promise<void> {
    this.#closed ??= this.#letGo();
    return this.#closed;
  }

  async #letGo(): Promise<void> {
    await Promise.all([this.#reading.close([]), this.#appending?.close(["append"])]);
  }

  #requireOpen(): void {
    if (this.#closed !== undefined) throw closed();
  }
}

function readOnly(url: string): HookledgerError {
  return new HookledgerError("HL_STORE_READONLY", `the ledger at ${url} is open for reading only`);
}
