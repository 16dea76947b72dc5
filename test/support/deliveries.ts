/** Deliveries for the tests of the queue. */
import type { EventStore } from "#src/store/port.js";
import type { DeliveryQueue, QueuedDelivery } from "#src/store/queue.js";
import { queueOf } from "#src/store/queue-of.js";

/** ULIDs that ascend with n. */
export function deliveryId(n: number): string {
  return `01K${String(n).padStart(23, "0")}`;
}

export function delivery(n: number, parts: Partial<QueuedDelivery> = {}): QueuedDelivery {
  return {
    id: deliveryId(n),
    state: "pending",
    lane: "chat/c-1",
    idempotencyKey: `key-${n}`,
    payload: `{"text":"message ${n}"}`,
    route: '{"channel":"chat","to":"c-1"}',
    session: "s-1",
    run: null,
    attempts: 0,
    partsSent: 0,
    dueAt: 1_700_000_000_000 + n,
    createdAt: 1_700_000_000_000 + n,
    updatedAt: 1_700_000_000_000 + n,
    receipts: "[]",
    error: null,
    ...parts,
  };
}

export function queueIn(store: EventStore): DeliveryQueue {
  const queue = queueOf(store);
  if (queue === null) throw new Error(`${store.url} keeps no queue`);
  return queue;
}

/** Page by page to the end. */
export async function allDeliveries(queue: DeliveryQueue): Promise<readonly QueuedDelivery[]> {
  const all: QueuedDelivery[] = [];
  for (;;) {
    const last = all.at(-1);
    const page = await queue.deliveries(last === undefined ? {} : { after: last.id });
    if (page.length === 0) return all;
    all.push(...page);
  }
}
