import type { EventStore } from "./port.js";
import type { DeliveryQueue } from "./queue.js";

/** The queue that this store keeps, which lives as long as the store; null where it keeps none: only SQLite ledgers do. */
export function queueOf(store: EventStore): DeliveryQueue | null {
  return keepsDeliveries(store) ? store : null;
}

function keepsDeliveries(store: EventStore): store is EventStore & DeliveryQueue {
  return "deliveries" in store && "put" in store && "change" in store;
}
