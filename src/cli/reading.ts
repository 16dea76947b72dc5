import { openStore } from "../store/open.js";
import type { EventStore } from "../store/port.js";
import type { CommandCall } from "./command.js";

/** Opens the ledger that the command line names, reads, and closes it. Nothing is created or changed. */
export async function withLedger<T>(call: CommandCall, read: (store: EventStore) => Promise<T>): Promise<T> {
  const store = await openStore(call.store, { mode: "read" });
  try {
    return await read(store);
  } finally {
    await store.close();
  }
}
