/** The unmodified client against the double, and what tests of it need again and again. */
import { randomUUID } from "node:crypto";
import {
  type AllStreamResolvedEvent,
  EventStoreDBClient,
  type JSONEventData,
  jsonEvent,
  type ResolvedEvent,
} from "@eventstore/db-client";
import { onTestFinished } from "vitest";
import { type Double, type DoubleOptions, startDouble } from "../support/eventstoredb/double.mjs";

/** A double that is stopped after the test. */
export async function aDouble(options: DoubleOptions = {}): Promise<Double> {
  const double = await startDouble(options);
  onTestFinished(() => double.stop());
  return double;
}

/** A client that is disposed of after the test. `parameters`: of its connection string. */
export function clientOf(url: string, parameters = ""): EventStoreDBClient {
  const client = EventStoreDBClient.connectionString(`${url}${parameters}`);
  onTestFinished(() => client.dispose());
  return client;
}

export function anEvent(data: Record<string, unknown> = {}, id: string = randomUUID()): JSONEventData {
  return jsonEvent({ id, type: "happened", data: { ...data }, metadata: { by: "test" } });
}

export function events(count: number): JSONEventData[] {
  return Array.from({ length: count }, (_, n) => anEvent({ n }));
}

/** The type of a client's error, "resolved" if there is none. */
export async function failure(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "resolved",
    (error: { type?: string }) => error.type ?? String(error),
  );
}

export async function all<T extends ResolvedEvent | AllStreamResolvedEvent>(read: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const event of read) found.push(event);
  return found;
}
