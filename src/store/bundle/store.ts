/** A bundle as a ledger that can only be read. */
import { randomBytes } from "node:crypto";
import type { Digest } from "../../core/events.js";
import { HookledgerError } from "../../errors.js";
import type { BlobRead } from "../../payload/archive/types.js";
import { PagedReads } from "../page.js";
import type {
  AppendResult,
  EventStore,
  RecordedEvent,
  StreamEvents,
  StreamFilter,
  StreamHead,
  StreamName,
} from "../port.js";
import { ulid } from "../ulid.js";
import { Wakeup } from "../wakeup.js";
import type { BundleDescription } from "./description.js";
import type { BundleSum } from "./digest.js";
import { findBundle } from "./file.js";
import { BundleReader } from "./reader.js";

/** Throws HL_STORE_MISSING, HL_BUNDLE, HL_STORE_VERSION, HL_STORE_LOCKED, HL_STORE_UNAVAILABLE. The file is left as it is. */
export function openBundle(path: string): BundleStore {
  const real = findBundle(path);
  if (real === null) {
    throw new HookledgerError("HL_STORE_MISSING", `there is no bundle at ${path}`, {
      hint: "hookledger export <file> writes one.",
    });
  }
  return new BundleStore(path, new BundleReader(real));
}

export class BundleStore implements EventStore {
  readonly url: string;
  readonly writer = ulid(Date.now(), randomBytes(10));
  readonly pendingBytes = 0;
  readonly #path: string;
  readonly #reader: BundleReader;
  readonly #pages = new PagedReads(() => this.#open());
  readonly #closing = new Wakeup();
  #closed = false;

  constructor(path: string, reader: BundleReader) {
    this.url = `bundle:${path}`;
    this.#path = path;
    this.#reader = reader;
  }

  /** As the file has it: foreign text, and no proof of anything. */
  get description(): BundleDescription {
    return this.#reader.description;
  }

  /** The digest that the bundle comes to, whatever it says, and what went into it. Reads every head. Throws HL_BUNDLE. */
  sum(): BundleSum {
    return this.#open().sum();
  }

  async append(): Promise<AppendResult> {
    this.#open();
    throw new HookledgerError("HL_STORE_READONLY", `the bundle ${this.#path} can only be read`, {
      hint: "hookledger import copies it into a ledger.",
    });
  }

  async readStream(stream: StreamName): Promise<StreamEvents | null> {
    return this.#open().stream(stream);
  }

  readStreams(filter: StreamFilter): AsyncGenerator<readonly StreamEvents[]> {
    return this.#pages.streams(filter);
  }

  async *readUnlisted(): AsyncGenerator<readonly StreamEvents[]> {}

  list(filter: StreamFilter): AsyncGenerator<readonly StreamHead[]> {
    return this.#pages.heads(filter);
  }

  readAll({ after }: { readonly after: number }): AsyncGenerator<readonly RecordedEvent[]> {
    return this.#pages.events(after);
  }

  /** Nothing is ever added while it is open. */
  async *subscribe(options: {
    readonly after: number;
    readonly signal: AbortSignal;
  }): AsyncGenerator<readonly RecordedEvent[]> {
    const { signal } = options;
    if (signal.aborted) return;
    const { mark } = this.#closing;
    for await (const page of this.readAll(options)) {
      yield page;
      if (signal.aborted) return;
    }
    await this.#closing.sleep(mark, signal);
    if (!signal.aborted) this.#open();
  }

  async readBlob(digest: Digest): Promise<BlobRead> {
    return this.#open().blob(digest);
  }

  /** Who wrote these events is somewhere else. */
  async writerState(writer: string): Promise<"alive" | "unknown"> {
    this.#open();
    return writer === this.writer ? "alive" : "unknown";
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#closing.wake();
    this.#reader.close();
  }

  #open(): BundleReader {
    if (this.#closed) throw new HookledgerError("HL_STORE_CLOSED", `the bundle ${this.#path} is closed`);
    return this.#reader;
  }
}
