/** The server's log over one connection at a time: everything has its own deadline, and what is broken is replaced. */
import type { AllStreamSubscription } from "@eventstore/db-client";
import type { Endpoint, ServerAddress } from "./address.js";
import { placeOf } from "./address.js";
import { type Acknowledged, Connection, type Place } from "./connection.js";
import {
  appendFailure,
  breaksConnection,
  callFailure,
  closed,
  isLost,
  isMissing,
  leaderOf,
  Overdue,
  unavailable,
} from "./failure.js";
import type { Expected, ServerDraft, ServerEvent, ServerLog, Written } from "./server-log.js";

/** Appends under way: few enough that a connection that breaks leaves little in doubt. */
const MAX_IN_FLIGHT = 256;
const MAX_IN_FLIGHT_BYTES = 4 * 1024 * 1024;
/** ms between attempts to read, doubled each time. */
const FIRST_PAUSE = 20;
const LAST_PAUSE = 500;

type Sending = {
  readonly stream: string;
  readonly expected: Expected;
  readonly drafts: readonly ServerDraft[];
  readonly bytes: number;
  readonly resolve: (written: Written | Promise<Written>) => void;
  readonly reject: (error: unknown) => void;
  timer: NodeJS.Timeout | undefined;
  /** Answers that its connection had given when it was sent; undefined: not sent. */
  heard: number | undefined;
};

type Open = {
  readonly connection: Connection;
  readonly maxInFlight: number;
  readonly flying: Set<Sending>;
  /** Before the first append has opened the client's stream, a second one would overtake it. */
  warmth: "cold" | "warming" | "warm";
  answers: number;
  bytes: number;
};

export class ClientLog implements ServerLog {
  readonly #address: ServerAddress;
  readonly #place: string;
  /** ms */
  readonly #deadline: number;
  readonly #waiting: Sending[] = [];
  #open: Open | undefined;
  #opening: Promise<Open> | undefined;
  #closing: Promise<void> = Promise.resolve();
  #leader: Endpoint | undefined;
  #closed = false;

  constructor(address: ServerAddress) {
    this.#address = address;
    this.#place = placeOf(address);
    this.#deadline = address.defaultDeadline;
  }

  /** Resolves once the server has answered, in one attempt. Throws HL_STORE_UNAVAILABLE, HL_STORE_DENIED. */
  async ping(): Promise<void> {
    try {
      await this.#opened();
    } catch (error) {
      throw callFailure(error, this.#place);
    }
  }

  readStream(
    stream: string,
    options:
      | { readonly direction: "forward"; readonly from: number; readonly max: number }
      | { readonly direction: "backward"; readonly max: number },
  ): Promise<readonly ServerEvent[] | null> {
    return this.#patiently(async (connection, ms) => {
      try {
        if (options.direction === "backward") return await connection.backward(stream, options.max, ms);
        return await connection.forward(stream, options.from, options.max, ms);
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
    });
  }

  readAll(options: {
    readonly after: number;
    readonly prefixes: readonly string[];
    readonly max: number;
  }): Promise<readonly ServerEvent[]> {
    const { after, prefixes, max } = options;
    return this.#patiently((connection, ms) => connection.all(after, prefixes, max, ms));
  }

  append(stream: string, expected: Expected, drafts: readonly ServerDraft[]): Promise<Written> {
    if (this.#closed) return Promise.reject(closed());
    return new Promise((resolve, reject) => {
      const bytes = drafts.reduce((sum, draft) => sum + sizeOf(draft), 0);
      const sending: Sending = {
        ...{ stream, expected, drafts, bytes, resolve, reject },
        timer: undefined,
        heard: undefined,
      };
      sending.timer = setTimeout(() => this.#giveUp(sending), this.#deadline);
      this.#waiting.push(sending);
      this.#pump();
    });
  }

  async deleteStream(stream: string, expected: number): Promise<void> {
    let open: Open | undefined;
    try {
      open = await this.#opened();
    } catch (error) {
      throw callFailure(error, this.#place);
    }
    try {
      await open.connection.remove(stream, expected, this.#deadline);
    } catch (error) {
      if (breaksConnection(error)) this.#discard(open, error);
      throw appendFailure(error, stream, this.#place);
    }
  }

  /** A subscription of the client's behind a place, with what to do when it fails. Throws as a read does. */
  async follow(
    after: Place | undefined,
    prefixes: readonly string[],
    checkpointReached: (place: Place) => Promise<void>,
  ): Promise<{ readonly subscription: AllStreamSubscription; readonly failed: (error: unknown) => Error }> {
    let open: Open;
    try {
      open = await this.#opened();
    } catch (error) {
      throw callFailure(error, this.#place);
    }
    const subscription = open.connection.follow(after, prefixes, checkpointReached);
    const failed = (error: unknown): Error => {
      if (isLost(error)) this.#discard(open, error);
      return callFailure(error, this.#place);
    };
    return { subscription, failed };
  }

  /** Ends what is under way. Idempotent. */
  async close(): Promise<void> {
    this.#closed = true;
    for (const sending of this.#waiting.splice(0)) this.#settle(sending, closed());
    const open = this.#open ?? (await this.#opening?.catch(() => undefined));
    if (open !== undefined) this.#discard(open, closed());
    await this.#closing;
  }

  async #patiently<T>(call: (connection: Connection, ms: number) => Promise<T>): Promise<T> {
    const until = performance.now() + this.#deadline;
    for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
      let open: Open | undefined;
      try {
        open = await this.#opened();
        return await call(open.connection, Math.max(1, until - performance.now()));
      } catch (error) {
        const failure = callFailure(error, this.#place);
        const transient = failure.code === "HL_STORE_UNAVAILABLE";
        if (open !== undefined && transient && breaksConnection(error)) this.#discard(open, error);
        if (!transient || performance.now() + pause >= until) throw failure;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #opened(): Promise<Open> {
    if (this.#closed) throw closed();
    if (this.#open !== undefined) return this.#open;
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<Open> {
    await this.#closing;
    const connection = new Connection(this.#address, this.#leader);
    try {
      const pipelines = await connection.open(this.#deadline);
      const open: Open = {
        connection,
        maxInFlight: pipelines ? MAX_IN_FLIGHT : 1,
        flying: new Set(),
        warmth: "cold",
        answers: 0,
        bytes: 0,
      };
      this.#open = open;
      this.#pump();
      return open;
    } catch (error) {
      this.#leader = leaderOf(error);
      this.#closing = connection.close();
      this.#refuseWaiting(error);
      throw error;
    }
  }

  /** Whatever was under way on it is in doubt. */
  #discard(open: Open, error: unknown): void {
    if (this.#open !== open) return;
    this.#open = undefined;
    this.#leader = leaderOf(error);
    this.#closing = open.connection.close();
    for (const sending of [...open.flying]) this.#landed(open, sending, error);
  }

  #pump(): void {
    if (this.#waiting.length === 0) return;
    const open = this.#open;
    if (open === undefined) {
      // Goes on with what waits, or refuses it.
      this.#opened().catch(() => {});
      return;
    }
    for (let [next] = this.#waiting; next !== undefined && this.#hasRoom(open, next); [next] = this.#waiting) {
      this.#waiting.shift();
      this.#send(open, next);
    }
  }

  #hasRoom({ flying, bytes, maxInFlight, warmth }: Open, next: Sending): boolean {
    if (warmth === "warming" || flying.size >= maxInFlight) return false;
    return flying.size === 0 || bytes + next.bytes <= MAX_IN_FLIGHT_BYTES;
  }

  #send(open: Open, sending: Sending): void {
    sending.heard = open.answers;
    open.flying.add(sending);
    open.bytes += sending.bytes;
    open.connection.write(sending.stream, sending.expected, sending.drafts).then(
      (written) => {
        open.answers++;
        this.#landed(open, sending, written);
      },
      (error: unknown) => {
        open.answers++;
        if (breaksConnection(error)) this.#discard(open, error);
        this.#landed(open, sending, error);
      },
    );
    if (open.warmth === "warm") return;
    open.warmth = "warming";
    setImmediate(() => {
      open.warmth = "warm";
      this.#pump();
    });
  }

  /** Once for each: by its answer, by its own deadline, or with its connection. */
  #landed(open: Open, sending: Sending, outcome: unknown): void {
    if (!open.flying.delete(sending)) return;
    open.bytes -= sending.bytes;
    if (isAcknowledged(outcome)) {
      clearTimeout(sending.timer);
      sending.resolve(this.#written(sending.stream, outcome));
    } else this.#settle(sending, outcome);
    this.#pump();
  }

  /** A server that repeats an answer need not say where the events are. */
  #written(stream: string, { revision, position }: Acknowledged): Written | Promise<Written> {
    if (position !== null) return { revision, position };
    return this.readStream(stream, { direction: "forward", from: revision, max: 1 }).then((events) => {
      const event = events?.[0];
      if (event === undefined) throw appendFailure(new Overdue(), stream, this.#place);
      return { revision, position: event.position };
    });
  }

  #giveUp(sending: Sending): void {
    const place = this.#waiting.indexOf(sending);
    if (place >= 0) {
      this.#waiting.splice(place, 1);
      this.#settle(sending, unavailable(`EventStoreDB at ${this.#place} took no append within ${this.#deadline} ms`));
      return;
    }
    const open = this.#open;
    if (open === undefined || !open.flying.has(sending)) return;
    const silent = open.answers === sending.heard;
    this.#landed(open, sending, new Overdue());
    if (silent) this.#discard(open, new Overdue());
  }

  #refuseWaiting(error: unknown): void {
    const failure = callFailure(error, this.#place);
    for (const sending of this.#waiting.splice(0)) this.#settle(sending, failure);
  }

  #settle(sending: Sending, error: unknown): void {
    clearTimeout(sending.timer);
    sending.reject(appendFailure(error, sending.stream, this.#place));
  }
}

function isAcknowledged(outcome: unknown): outcome is Acknowledged {
  return typeof outcome === "object" && outcome !== null && "revision" in outcome && "position" in outcome;
}

/** Of a JSON event as much as its writer said. */
function sizeOf({ content, size = 1024 }: ServerDraft): number {
  return content.kind === "bytes" ? content.data.byteLength : size;
}
