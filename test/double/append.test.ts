import { randomUUID } from "node:crypto";
import { ANY, BACKWARDS, END, NO_STREAM, STREAM_EXISTS } from "@eventstore/db-client";
import { describe, expect, it } from "vitest";
import { aDouble, all, anEvent, clientOf, events, failure } from "./client.js";

describe.each([
  { path: "batch append", batchAppend: true, method: "batchAppend" as const },
  { path: "plain append", batchAppend: false, method: "append" as const },
])("an append over the wire, by $path", ({ batchAppend, method }) => {
  it("should write, and say the revision and the position of the last event", async () => {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    const first = await client.appendToStream("s-1", events(2), { expectedRevision: NO_STREAM });
    const second = await client.appendToStream("s-1", anEvent(), { expectedRevision: 1n });
    expect([first.nextExpectedRevision, second.nextExpectedRevision]).toEqual([1n, 2n]);
    const read = await all(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 1 }));
    expect(second.position).toEqual(read[0]?.event?.position);
    expect(double.calls.count(method, "s-1")).toBe(2);
    expect(double.calls.eventsWritten).toBe(3);
  });

  it("should acknowledge an identical retry with the same revision and position, and write nothing", async () => {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    const batch = events(3);
    const first = await client.appendToStream("s-1", batch, { expectedRevision: NO_STREAM });
    const again = await client.appendToStream("s-1", batch, { expectedRevision: NO_STREAM });
    expect(again).toEqual(first);
    expect(await all(client.readStream("s-1"))).toHaveLength(3);
  });

  it("should refuse another version, saying the one that there is", async () => {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    await client.appendToStream("s-1", events(2));
    await expect(client.appendToStream("s-1", anEvent(), { expectedRevision: 5n })).rejects.toMatchObject({
      type: "wrong-expected-version",
      actualVersion: 1n,
      expectedVersion: 5n,
    });
    await expect(client.appendToStream("s-2", anEvent(), { expectedRevision: STREAM_EXISTS })).rejects.toMatchObject({
      type: "wrong-expected-version",
      actualVersion: "no_stream",
    });
  });

  it("should hold an append against 1 MiB", async () => {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    const half = () => anEvent({ text: "x".repeat(500 * 1024) });
    await client.appendToStream("s-1", [half(), half()]);
    await expect(client.appendToStream("s-1", [half(), half(), half()])).rejects.toMatchObject({
      type: "maximum-append-size-exceeded",
      maxAppendSize: 1024 * 1024,
    });
    expect(await all(client.readStream("s-1"))).toHaveLength(2);
  });

  it("should keep data and metadata byte for byte, and the ids", async () => {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    const id = randomUUID();
    await client.appendToStream("s-1", anEvent({ text: "ü\u2028", deep: [{ a: null }] }, id));
    const [read] = await all(client.readStream("s-1"));
    expect(read?.event).toMatchObject({
      id,
      streamId: "s-1",
      revision: 0n,
      type: "happened",
      isJson: true,
      data: { text: "ü\u2028", deep: [{ a: null }] },
      metadata: { by: "test" },
    });
    expect(Math.abs(Date.now() - (read?.event?.created.getTime() ?? 0))).toBeLessThan(60_000);
  });

  it("should refuse a tombstoned stream for ever", async () => {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    await client.appendToStream("s-1", anEvent());
    await client.tombstoneStream("s-1");
    expect(await failure(client.appendToStream("s-1", anEvent(), { expectedRevision: ANY }))).toBe("stream-deleted");
    expect(await failure(client.appendToStream("s-1", anEvent(), { expectedRevision: NO_STREAM }))).toBe(
      "stream-deleted",
    );
  });
});

describe("a batch append", () => {
  it("should be taken in several messages", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("s-1", events(20), { batchAppendSize: 200 });
    expect(await all(client.readStream("s-1"))).toHaveLength(20);
  });

  it("should be refused when its deadline has passed already", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("s-1", anEvent());
    expect(await failure(client.appendToStream("s-1", anEvent(), { deadline: -1000 }))).toBe("deadline-exceeded");
    expect(await all(client.readStream("s-1"))).toHaveLength(1);
  });
});
