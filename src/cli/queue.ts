/** What the commands of the queue share: the queue of the ledger that the command line names, and deliveries in it. */
import { HookledgerError } from "../errors.js";
import type { EventStore } from "../store/port.js";
import type { DeliveryQueue, QueuedDelivery, QueueFilter } from "../store/queue.js";
import { queueOf } from "../store/queue-of.js";
import { isUlid } from "../store/ulid.js";

/** Throws HL_USAGE where the store keeps none. */
export function requireQueue(store: EventStore): DeliveryQueue {
  const queue = queueOf(store);
  if (queue !== null) return queue;
  throw new HookledgerError("HL_USAGE", `${store.url} keeps no queue of deliveries`, {
    hint: "Only a SQLite ledger does; name it with --store sqlite:<path>.",
  });
}

/** Page by page, oldest first, to the end. */
export async function* queued(
  queue: DeliveryQueue,
  filter: Omit<QueueFilter, "after" | "limit">,
): AsyncGenerator<readonly QueuedDelivery[]> {
  let page = await queue.deliveries(filter);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page;
    page = await queue.deliveries({ ...filter, after: last.id });
  }
}

/** The delivery whose id is, or alone begins with, `id`. Throws HL_NOT_FOUND, HL_AMBIGUOUS_ID and HL_USAGE. */
export async function deliveryNamed(queue: DeliveryQueue, id: string): Promise<QueuedDelivery> {
  const prefix = id.toUpperCase();
  if (prefix === "") throw new HookledgerError("HL_USAGE", "a delivery's id is empty");
  const [first] = await queue.deliveries({ prefix, limit: 1 });
  if (first === undefined) {
    throw new HookledgerError("HL_NOT_FOUND", `no delivery ${isUlid(prefix) ? "has the id" : "begins with"} ${id}`, {
      hint: "hookledger queue list shows what there is.",
    });
  }
  const [second] = await queue.deliveries({ prefix, after: first.id, limit: 1 });
  if (second === undefined) return first;
  throw new HookledgerError(
    "HL_AMBIGUOUS_ID",
    `several deliveries begin with ${id}, such as ${first.id} and ${second.id}`,
    { hint: "Give more characters." },
  );
}
