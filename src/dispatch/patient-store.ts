/** The ledger as a dispatcher meets it: whatever a dispatch asks of it is answered in time, and what it refuses for want of room is told. */
import type { Digest } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { BlobRead } from "../payload/archive/types.js";
import type { AppendRequest, AppendResult, EventStore, StreamEvents, StreamName } from "../store/port.js";
import type { Clock } from "./clock.js";

/** ms that an answer of the ledger is waited for, unless the host says otherwise */
export const STORE_TIMEOUT_MS = 30_000;

type Patience = {
  readonly clock: Clock;
  /** ms */
  readonly timeoutMs: number;
  /** Told of every append that was refused with HL_STORE_BACKLOG. */
  readonly onBacklog: () => void;
};

/**
 * A store that is silent for too long counts as one that failed: an append is then HL_STORE_AMBIGUOUS, since it may be written yet, and
 * a read HL_STORE_UNAVAILABLE. Pages are read by nobody who keeps a dispatch waiting, and are handed through.
 */
export class PatientStore implements EventStore {
  readonly #store: EventStore;
  readonly #patience: Patience;
  /** By stream: appends that are no longer waited for, and may be carried out yet. */
  readonly #givenUp = new Map<StreamName, Promise<unknown>>();

  constructor(store: EventStore, patience: Patience) {
    this.#store = store;
    this.#patience = patience;
  }

  get url(): string {
    return this.#store.url;
  }

  get writer(): string {
    return this.#store.writer;
  }

  get pendingBytes(): number {
    return this.#store.pendingBytes;
  }

  append(request: AppendRequest): Promise<AppendResult> {
    const { clock, timeoutMs, onBacklog } = this.#patience;
    const answer = this.#store.append(request);
    const late = (): HookledgerError => {
      this.#giveUp(request.stream, answer);
      return silent("HL_STORE_AMBIGUOUS", timeoutMs);
    };
    return within(answer, clock, timeoutMs, late).catch((error: unknown) => {
      if (error instanceof HookledgerError && error.code === "HL_STORE_BACKLOG") onBacklog();
      throw error;
    });
  }

  /**
   * Resolves once every append to the stream that was not waited for is answered after all; null if there is none. Before that,
   * whatever is written behind the stream's end may be followed by one of them.
   */
  unanswered(stream: StreamName): Promise<unknown> | null {
    return this.#givenUp.get(stream) ?? null;
  }

  #giveUp(stream: StreamName, answer: Promise<unknown>): void {
    const answered: Promise<unknown> = Promise.allSettled([this.#givenUp.get(stream), answer]).then(() => {
      if (this.#givenUp.get(stream) === answered) this.#givenUp.delete(stream);
    });
    this.#givenUp.set(stream, answered);
  }

  readStream(stream: StreamName): Promise<StreamEvents | null> {
    return this.inTime(this.#store.readStream(stream));
  }

  readBlob(digest: Digest): Promise<BlobRead> {
    return this.inTime(this.#store.readBlob(digest));
  }

  writerState(writer: string): Promise<"alive" | "dead" | "unknown"> {
    return this.inTime(this.#store.writerState(writer));
  }

  readStreams: EventStore["readStreams"] = (filter) => this.#store.readStreams(filter);
  readUnlisted: EventStore["readUnlisted"] = () => this.#store.readUnlisted();
  list: EventStore["list"] = (filter) => this.#store.list(filter);
  readAll: EventStore["readAll"] = (options) => this.#store.readAll(options);
  subscribe: EventStore["subscribe"] = (options) => this.#store.subscribe(options);
  close: EventStore["close"] = () => this.#store.close();

  /** As `answer` settles; HL_STORE_UNAVAILABLE once it is late. */
  inTime<T>(answer: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#patience;
    return within(answer, clock, timeoutMs, () => silent("HL_STORE_UNAVAILABLE", timeoutMs));
  }
}

function silent(code: "HL_STORE_AMBIGUOUS" | "HL_STORE_UNAVAILABLE", ms: number): HookledgerError {
  return new HookledgerError(code, `the ledger has not answered within ${ms} ms`);
}

/**
 * As `work` settles, or rejected with what `late` says once `ms` have passed. An answer that arrived while the event loop was blocked
 * still counts: it is heard before the timer is believed.
 */
export function within<T>(work: Promise<T>, clock: Clock, ms: number, late: () => HookledgerError): Promise<T> {
  return new Promise((resolve, reject) => {
    let undo = clock.timer(ms, () => {
      undo = clock.defer(() => reject(late()));
    });
    work.then(
      (value) => {
        undo();
        resolve(value);
      },
      (error: unknown) => {
        undo();
        reject(error);
      },
    );
  });
}
