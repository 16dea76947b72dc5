/**
 * A subscription that outlives the client's: whatever ends one of those, the next begins behind what was seen last. Events wait here
 * until they are asked for, and when enough wait, the client is not read from.
 */
import type { AllStreamSubscription, ResolvedEvent } from "@eventstore/db-client";
import { HookledgerError } from "../../errors.js";
import { PAGE_TEXT, textOf } from "../page.js";
import type { RecordedEvent } from "../port.js";
import { CATEGORY } from "./catalogue/entries.js";
import type { ClientLog } from "./client-log.js";
import type { Place } from "./connection.js";
import { toRecorded } from "./event.js";
import { toServerEvent } from "./gather.js";

/** Events that wait at most, and about how much text. */
const MAX_WAITING = 1024;
/** ms before the next attempt, doubled each time. */
const FIRST_PAUSE = 20;
const LAST_PAUSE = 1000;

type Waiter = { readonly resolve: (events: readonly RecordedEvent[]) => void; readonly reject: (error: Error) => void };

export class Subscription {
  readonly #log: ClientLog;
  /** Behind which the client's next subscription begins. */
  #place: Place | undefined;
  /** Commit position of the last event that was taken. */
  #after: number;
  #events: RecordedEvent[] = [];
  #text = 0;
  #waiter: Waiter | undefined;
  #current: AllStreamSubscription | undefined;
  #failure: Error | undefined;
  #running = false;
  #ended = false;

  /** `after`: commit position, exclusive; 0: from the start. */
  constructor(log: ClientLog, after: number) {
    this.#log = log;
    this.#after = after;
    if (after > 0) this.#place = { commit: BigInt(after), prepare: BigInt(after) };
  }

  /** What came since; waits for something, or for the end. Throws HL_STORE_DENIED; an attempt after that begins anew. */
  next(): Promise<readonly RecordedEvent[]> {
    if (!this.#running && !this.#ended) void this.#run();
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#hand();
    });
  }

  end(): void {
    this.#ended = true;
    void this.#current?.unsubscribe().catch(() => {});
    this.#hand();
  }

  #hand(): void {
    const waiter = this.#waiter;
    if (waiter === undefined) return;
    if (this.#events.length === 0 && !this.#ended && this.#failure === undefined) return;
    this.#waiter = undefined;
    if (this.#events.length === 0 && this.#failure !== undefined) {
      waiter.reject(this.#failure);
      this.#failure = undefined;
      return;
    }
    waiter.resolve(this.#events);
    this.#events = [];
    this.#text = 0;
    this.#current?.resume();
  }

  async #run(): Promise<void> {
    this.#running = true;
    for (let pause = FIRST_PAUSE; !this.#ended; pause = Math.min(2 * pause, LAST_PAUSE)) {
      const seen = this.#after;
      const failure = await this.#follow().catch((error: unknown) => error);
      if (failure instanceof HookledgerError && failure.code !== "HL_STORE_UNAVAILABLE") {
        this.#failure = failure;
        this.#hand();
        break;
      }
      if (this.#after > seen) pause = FIRST_PAUSE;
      if (!this.#ended) await new Promise((resolve) => setTimeout(resolve, pause));
    }
    this.#running = false;
  }

  /** One subscription of the client's, until it ends; resolves to why. */
  async #follow(): Promise<Error | null> {
    const { subscription, failed } = await this.#log.follow(this.#place, [CATEGORY], async (place) => {
      // Events in front of it may still be on their way to us; what comes behind it waits for this.
      await new Promise(setImmediate);
      if (subscription === this.#current && subscription.readableLength === 0) this.#place = place;
    });
    this.#current = subscription;
    return new Promise((resolve) => {
      const stop = (error: Error | null): void => {
        if (this.#current !== subscription) return;
        this.#current = undefined;
        void subscription.unsubscribe().catch(() => {});
        resolve(error);
      };
      subscription.on("data", (resolved: ResolvedEvent) => {
        if (this.#current !== subscription) return;
        try {
          this.#take(resolved);
        } catch (error) {
          stop(failed(error));
        }
      });
      subscription.on("error", (error) => stop(failed(error)));
      subscription.on("end", () => stop(null));
      subscription.on("close", () => stop(null));
      if (this.#ended) stop(null);
    });
  }

  #take(resolved: ResolvedEvent): void {
    const event = toServerEvent(resolved);
    if (event === null || event.position <= this.#after) return;
    this.#after = event.position;
    this.#place = resolved.event?.position ?? { commit: BigInt(event.position), prepare: BigInt(event.position) };
    const recorded = toRecorded(event);
    this.#events.push(recorded);
    this.#text += textOf(recorded);
    if (this.#events.length >= MAX_WAITING || this.#text >= PAGE_TEXT) this.#current?.pause();
    this.#hand();
  }
}

/** Those of one thread, by the number that the store gave them. */
export class Subscriptions {
  readonly #log: ClientLog;
  readonly #all = new Map<number, Subscription>();

  constructor(log: ClientLog) {
    this.#log = log;
  }

  next(id: number, after: number): Promise<readonly RecordedEvent[]> {
    let subscription = this.#all.get(id);
    if (subscription === undefined) {
      subscription = new Subscription(this.#log, after);
      this.#all.set(id, subscription);
    }
    return subscription.next();
  }

  end(id: number): void {
    this.#all.get(id)?.end();
    this.#all.delete(id);
  }

  endAll(): void {
    for (const id of [...this.#all.keys()]) this.end(id);
  }
}
