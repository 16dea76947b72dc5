/** The queue as those meet it who send from it: whatever it is asked is answered in time, and what it cannot do is told. */

import type { Clock } from "../../dispatch/clock.js";
import { within } from "../../dispatch/patient-store.js";
import { said } from "../../dispatch/said.js";
import { HookledgerError } from "../../errors.js";
import { boundedMessage } from "../../payload/text.js";
import type { DeliveryChange, DeliveryQueue, DeliveryState, QueuedDelivery } from "../../store/queue.js";
import type { SendReceipt } from "../outbound/adapter.js";
import { receiptsText } from "./entry.js";

export type CustodyParts = {
  readonly queue: DeliveryQueue;
  readonly clock: Clock;
  /** ms */
  readonly timeoutMs: number;
  readonly complain: (text: string) => void;
  readonly redact: (text: string) => string;
};

/** What the end of an attempt sets; `receipts` are those of the parts that need not be sent again. */
export type Settled = {
  readonly state: Exclude<DeliveryState, "attempting">;
  readonly receipts: readonly SendReceipt[];
  readonly error?: string;
  /** ms since 1970 */
  readonly dueAt?: number;
};

export class Custody {
  readonly #parts: CustodyParts;

  constructor(parts: CustodyParts) {
    this.#parts = parts;
  }

  /**
   * Resolves once it is kept, whatever happens; rejects if it is not known to be. What turns out to be kept all the same is dropped:
   * nobody is to send what its host was told has failed.
   */
  async put(delivery: QueuedDelivery): Promise<void> {
    const { queue, clock } = this.#parts;
    try {
      await this.#inTime(queue.put([delivery], true));
    } catch (error) {
      const change = {
        state: "dropped",
        updatedAt: Math.floor(clock.wall()),
        error: "its custody was not acknowledged",
      } as const;
      queue.change(delivery.id, ["pending", "attempting"], change, false).catch(() => {});
      throw error;
    }
  }

  /** Resolves once the evidence of an attempt is durable: with false where it is not to be made any more. Rejects as `put`. */
  async begin(id: string, attempts: number): Promise<boolean> {
    const { queue, clock } = this.#parts;
    const updatedAt = Math.floor(clock.wall());
    try {
      return await this.#inTime(queue.change(id, ["pending"], { state: "attempting", attempts, updatedAt }, true));
    } catch (error) {
      // Nothing was sent: if the evidence is written yet, it is taken back.
      queue.change(id, ["attempting"], { state: "pending", updatedAt }, false).catch(() => {});
      throw error;
    }
  }

  /** Parts that the channel took, while the attempt goes on. Never rejects. */
  async progress(id: string, receipts: readonly SendReceipt[]): Promise<void> {
    await this.#change(id, ["attempting"], { partsSent: receipts.length, receipts: receiptsText(receipts) });
  }

  /** Resolves with false where it could not be written, or was in none of the states any more. Never rejects. */
  settle(id: string, from: readonly DeliveryState[], { state, receipts, error, dueAt }: Settled): Promise<boolean> {
    return this.#change(id, from, {
      state,
      partsSent: receipts.length,
      receipts: receiptsText(receipts),
      error: error === undefined ? null : boundedMessage(this.#parts.redact(error)),
      ...(dueAt === undefined ? {} : { dueAt }),
    });
  }

  /** Null where it is not there. Rejects as the store. */
  async read(id: string): Promise<QueuedDelivery | null> {
    const [found] = await this.#inTime(this.#parts.queue.deliveries({ prefix: id, limit: 1 }));
    return found ?? null;
  }

  /** All in these states, oldest first. Rejects as the store. */
  async *all(states: readonly DeliveryState[]): AsyncGenerator<QueuedDelivery> {
    for (let after: string | undefined; ; ) {
      const filter = after === undefined ? { states } : { states, after };
      const page = await this.#inTime(this.#parts.queue.deliveries(filter));
      const last = page.at(-1);
      if (last === undefined) return;
      yield* page;
      after = last.id;
    }
  }

  async #change(id: string, from: readonly DeliveryState[], change: DeliveryChange): Promise<boolean> {
    const { queue, clock, complain } = this.#parts;
    try {
      return await this.#inTime(queue.change(id, from, { ...change, updatedAt: Math.floor(clock.wall()) }, false));
    } catch (error) {
      complain(`what became of delivery ${id} (${change.state ?? "under way"}) is not recorded: ${said(error)}`);
      return false;
    }
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    const { clock, timeoutMs } = this.#parts;
    const late = (): HookledgerError =>
      new HookledgerError("HL_STORE_AMBIGUOUS", `the queue has not answered within ${timeoutMs} ms`);
    return within(answer, clock, timeoutMs, late);
  }
}
