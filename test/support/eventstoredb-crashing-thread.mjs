// @ts-check
/**
 * The adapter's own thread, in which two more clients make the client throw where nobody can catch it: one's stream breaks, which
 * empties the table of promises that all clients share, and then the other's answer comes. `workerData` names their servers.
 */
import { workerData } from "node:worker_threads";
import { EventStoreDBClient, jsonEvent } from "@eventstore/db-client";

await import("#src/store/eventstoredb/worker.js");

for (const url of [workerData.late, workerData.cut]) {
  const client = EventStoreDBClient.connectionString(url);
  client.appendToStream("other", jsonEvent({ type: "x", data: {} })).catch(() => {});
}
