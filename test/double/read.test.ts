import { BACKWARDS, END, START } from "@eventstore/db-client";
import { describe, expect, it } from "vitest";
import { aDouble, all, anEvent, clientOf, events, failure } from "./client.js";

async function filled() {
  const double = await aDouble();
  const client = clientOf(double.url);
  const { position } = await client.appendToStream("s-1", events(5));
  if (position === undefined) throw new Error("no position");
  return { double, client, position };
}

describe("a read of a stream", () => {
  it("should go both ways, from a revision that is inclusive, at most as far as it is asked to", async () => {
    const { client } = await filled();
    const revisions = async (options: Parameters<typeof client.readStream>[1]) =>
      (await all(client.readStream("s-1", options))).map(({ event }) => Number(event?.revision));
    expect(await revisions({})).toEqual([0, 1, 2, 3, 4]);
    expect(await revisions({ fromRevision: 2n, maxCount: 2 })).toEqual([2, 3]);
    expect(await revisions({ fromRevision: 9n })).toEqual([]);
    expect(await revisions({ direction: BACKWARDS, fromRevision: END, maxCount: 2 })).toEqual([4, 3]);
    expect(await revisions({ direction: BACKWARDS, fromRevision: 1n })).toEqual([1, 0]);
    expect(await revisions({ direction: BACKWARDS, fromRevision: START })).toEqual([0]);
  });

  it("should find no stream where none is, and after a soft delete, and say a tombstone", async () => {
    const { client } = await filled();
    expect(await failure(all(client.readStream("s-2")))).toBe("stream-not-found");
    await client.deleteStream("s-1", { expectedRevision: 4n });
    expect(await failure(all(client.readStream("s-1")))).toBe("stream-not-found");
    await client.appendToStream("s-1", anEvent());
    expect((await all(client.readStream("s-1"))).map(({ event }) => event?.revision)).toEqual([5n]);
    await client.tombstoneStream("s-1");
    expect(await failure(all(client.readStream("s-1")))).toBe("stream-deleted");
  });

  it("should show what its metadata leaves", async () => {
    const { client } = await filled();
    await client.setStreamMetadata("s-1", { maxCount: 2 });
    expect(await all(client.readStream("s-1"))).toHaveLength(2);
    expect((await client.getStreamMetadata("s-1")).metadata).toEqual({ maxCount: 2 });
  });

  it("should take more events than fit between two breaths", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    const big = () => anEvent({ text: "x".repeat(10_000) });
    for (let batch = 0; batch < 4; batch += 1) await client.appendToStream("s-1", Array.from({ length: 50 }, big));
    expect(await all(client.readStream("s-1"))).toHaveLength(200);
  });
});

describe("a read of $all", () => {
  it("should begin at a position forwards, and before it backwards", async () => {
    const { client, position } = await filled();
    const forwards = await all(client.readAll({ fromPosition: position }));
    expect(forwards.map(({ event }) => event?.revision)).toEqual([4n]);
    const backwards = await all(client.readAll({ direction: BACKWARDS, fromPosition: position }));
    expect(backwards.map(({ event }) => event?.revision)).toEqual([3n, 2n, 1n, 0n, 0n]);
    expect(await all(client.readAll({ direction: BACKWARDS, fromPosition: END, maxCount: 2 }))).toHaveLength(2);
  });

  it("should keep what a stream hides, beside the system's own events", async () => {
    const { client } = await filled();
    await client.deleteStream("s-1");
    const streams = (await all(client.readAll())).map(({ event }) => event?.streamId);
    expect(streams).toEqual(["$user-admin", "s-1", "s-1", "s-1", "s-1", "s-1", "$$s-1"]);
  });
});

describe("a delete", () => {
  it("should say the version that there is instead", async () => {
    const { client } = await filled();
    for (const call of [
      client.deleteStream("s-1", { expectedRevision: 9n }),
      client.tombstoneStream("s-1", { expectedRevision: 9n }),
    ]) {
      await expect(call).rejects.toMatchObject({
        type: "wrong-expected-version",
        actualVersion: 4n,
        streamName: "s-1",
      });
    }
  });
});
