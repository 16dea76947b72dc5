/** Deliveries for the tests of the queue. */
import type { QueuedDelivery } from "#src/store/queue.js";

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
