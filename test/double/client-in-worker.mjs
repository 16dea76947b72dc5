// The unmodified client in a thread of its own, which does what the parent says and dies of what the client throws.
import { parentPort } from "node:worker_threads";
import { EventStoreDBClient, jsonEvent } from "@eventstore/db-client";

const clients = new Map();

parentPort.on("message", ({ url, stream, bytes }) => {
  const client = clients.get(url) ?? EventStoreDBClient.connectionString(`${url}`);
  clients.set(url, client);
  const event = jsonEvent({ type: "happened", data: { text: "x".repeat(bytes) } });
  client.appendToStream(stream, event).then(
    () => parentPort.postMessage({ stream, result: "written" }),
    (error) => parentPort.postMessage({ stream, result: error.type }),
  );
});
