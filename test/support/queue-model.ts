/** A queue of deliveries in memory, of several processes that come and go: what a queue does, as plainly as it can be said. */
import type { DeliveryChange, DeliveryQueue, DeliveryState, QueuedDelivery, QueueFilter } from "#src/store/queue.js";

export type QueueCall =
  | { readonly op: "put"; readonly id: string; readonly state: DeliveryState; readonly barrier: boolean }
  | { readonly op: "change"; readonly id: string; readonly change: DeliveryChange; readonly barrier: boolean }
  | { readonly op: "read" };

type Kept = { readonly delivery: QueuedDelivery; readonly by: QueueProcess };

export class QueueModel {
  readonly #kept = new Map<string, Kept>();
  readonly calls: QueueCall[] = [];

  open(): QueueProcess {
    return new QueueProcess(this.#kept, this.calls);
  }

  /** Oldest first, as the next process would see them. */
  get all(): readonly QueuedDelivery[] {
    return [...this.#kept.values()].map(seen).sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  get states(): readonly DeliveryState[] {
    return this.all.map(({ state }) => state);
  }

  /** As an operator does it. */
  resolve(id: string, state: "pending" | "sent" | "dropped"): void {
    const kept = this.#kept.get(id);
    if (kept === undefined || seen(kept).state !== "unknown") throw new Error(`${id} is not unknown`);
    this.#kept.set(id, { ...kept, delivery: { ...kept.delivery, state } });
  }

  /** Puts it there as some earlier process left it. */
  leave(delivery: QueuedDelivery): void {
    const by = this.open();
    this.#kept.set(delivery.id, { delivery, by });
    by.die();
  }
}

/** The queue as one process has it open. */
export class QueueProcess implements DeliveryQueue {
  readonly #kept: Map<string, Kept>;
  readonly #calls: QueueCall[];
  /** What happens before a call is carried out: it may wait, and what it throws is the call's answer, nothing having been written. */
  before: (call: QueueCall) => Promise<void> | void = () => {};
  alive = true;

  constructor(kept: Map<string, Kept>, calls: QueueCall[]) {
    this.#kept = kept;
    this.#calls = calls;
  }

  /** Nothing that it asks for is carried out or answered any more. */
  die(): void {
    this.alive = false;
  }

  async put(deliveries: readonly QueuedDelivery[], barrier: boolean): Promise<void> {
    for (const { id, state } of deliveries) await this.#called({ op: "put", id, state, barrier });
    for (const delivery of deliveries) this.#kept.set(delivery.id, { delivery, by: this });
  }

  async change(id: string, from: readonly DeliveryState[], change: DeliveryChange, barrier: boolean): Promise<boolean> {
    await this.#called({ op: "change", id, change, barrier });
    const kept = this.#kept.get(id);
    if (kept === undefined || !from.includes(seen(kept).state)) return false;
    if (seen(kept).state === "attempting" && kept.by !== this) return false;
    const by = change.state === "attempting" ? this : kept.by;
    this.#kept.set(id, { delivery: { ...kept.delivery, ...change }, by });
    return true;
  }

  async deliveries({ states, prefix = "", after = "", limit = 256 }: QueueFilter): Promise<readonly QueuedDelivery[]> {
    await this.#called({ op: "read" });
    return [...this.#kept.values()]
      .map(seen)
      .filter(({ id, state }) => id.startsWith(prefix) && id > after && (states?.includes(state) ?? true))
      .sort((a, b) => (a.id < b.id ? -1 : 1))
      .slice(0, limit);
  }

  async #called(call: QueueCall): Promise<void> {
    this.#calls.push(call);
    await this.before(call);
    if (!this.alive) await new Promise<never>(() => {});
  }
}

function seen({ delivery, by }: Kept): QueuedDelivery {
  return delivery.state === "attempting" && !by.alive ? { ...delivery, state: "unknown" } : delivery;
}
