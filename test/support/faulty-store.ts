/** A store that fails on command, in front of a real one. What it lets pass, the real one carries out in order. */
import { type ErrorCode, HookledgerError } from "#src/errors.js";
import type { AppendRequest, AppendResult, EventStore, StreamName } from "#src/store/port.js";

export type Fault =
  /** Nothing is written, and the store says so. */
  | { readonly does: "refuse"; readonly code: ErrorCode }
  /** It is written; the acknowledgement is lost. */
  | { readonly does: "lose the reply" }
  /** It is not written, and nobody can tell. */
  | { readonly does: "lose the request" }
  /** Fails as no store should: outside a promise, or with something that is no error of ours. */
  | { readonly does: "throw" }
  | { readonly does: "reject with nonsense" }
  /** Written at once, acknowledged when the test says so. */
  | { readonly does: "acknowledge late" }
  /** Held back, written and acknowledged when the test says so. */
  | { readonly does: "hang" };

/** What becomes of an append; `nth` counts all appends of the store from 1. */
export type Plan = (nth: number, request: AppendRequest) => Fault | null;

export const REFUSE: Fault = { does: "refuse", code: "HL_STORE_UNAVAILABLE" };

export function fromNth(first: number, fault: Fault): Plan {
  return (nth) => (nth >= first ? fault : null);
}

export function onlyNth(which: number, fault: Fault): Plan {
  return (nth) => (nth === which ? fault : null);
}

export class FaultyStore implements EventStore {
  readonly #inner: EventStore;
  readonly #held: (() => void)[] = [];
  /** Every append that was asked for, refused ones included. */
  readonly requests: AppendRequest[] = [];
  plan: Plan;
  /** Throws to make reads fail. */
  beforeRead: (stream: StreamName) => void | Promise<void> = () => {};

  constructor(inner: EventStore, plan: Plan = () => null) {
    this.#inner = inner;
    this.plan = plan;
  }

  get url(): string {
    return this.#inner.url;
  }

  get writer(): string {
    return this.#inner.writer;
  }

  get pendingBytes(): number {
    return this.#inner.pendingBytes;
  }

  /** Of the appends to come, the first. */
  failNext(fault: "lose the reply" | "lose the request" | "refuse"): void {
    this.plan = onlyNth(this.requests.length + 1, fault === "refuse" ? REFUSE : { does: fault });
  }

  get held(): number {
    return this.#held.length;
  }

  /** Carries out or acknowledges all that is held back. */
  release(): void {
    for (const go of this.#held.splice(0)) go();
  }

  append(request: AppendRequest): Promise<AppendResult> {
    this.requests.push(request);
    const fault = this.plan(this.requests.length, request);
    switch (fault?.does) {
      case undefined:
        return this.#inner.append(request);
      case "refuse":
        return Promise.reject(new HookledgerError(fault.code, "the disk is on fire"));
      case "lose the reply":
        return this.#inner.append(request).then(() => Promise.reject(ambiguous()));
      case "lose the request":
        return Promise.reject(ambiguous());
      case "throw":
        throw new Error("thrown where a promise was due");
      case "reject with nonsense":
        return Promise.reject("nonsense");
      case "acknowledge late": {
        const written = this.#inner.append(request);
        written.catch(() => {});
        return this.#hold().then(() => written);
      }
      case "hang":
        return this.#hold().then(() => this.#inner.append(request));
    }
  }

  #hold(): Promise<void> {
    return new Promise((resolve) => {
      this.#held.push(resolve);
    });
  }

  async readStream(stream: StreamName) {
    await this.beforeRead(stream);
    return this.#inner.readStream(stream);
  }

  readStreams: EventStore["readStreams"] = (filter) => this.#inner.readStreams(filter);
  readUnlisted: EventStore["readUnlisted"] = () => this.#inner.readUnlisted();
  list: EventStore["list"] = (filter) => this.#inner.list(filter);
  readAll: EventStore["readAll"] = (options) => this.#inner.readAll(options);
  subscribe: EventStore["subscribe"] = (options) => this.#inner.subscribe(options);
  readBlob: EventStore["readBlob"] = (digest) => this.#inner.readBlob(digest);
  writerState: EventStore["writerState"] = (writer) => this.#inner.writerState(writer);
  close: EventStore["close"] = () => this.#inner.close();
}

function ambiguous(): HookledgerError {
  return new HookledgerError("HL_STORE_AMBIGUOUS", "no acknowledgement came");
}
