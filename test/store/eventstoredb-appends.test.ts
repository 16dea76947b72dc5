/** Appends under faults, against the double of EventStoreDB. Each time: every append is answered, and what is there is there once. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import type { AppendRequest, AppendResult, EventStore } from "#src/store/port.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import type { Fault } from "../support/eventstoredb/faults.mjs";
import type { Target } from "../support/eventstoredb/types.js";
import { chainsOf, collect, draft, expectedChain, further, opening, read, stream } from "../support/store-fixtures.js";

/** ms; an append has twice as long. */
const DEADLINE = 400;

/** Three appends to stream n that do not wait for each other. */
function appendThree(store: EventStore, n: number): Promise<AppendResult[]> {
  return Promise.all([opening(n, 2), further(n, 2), further(n, 3, 2)].map((request) => store.append(request)));
}

async function expectFive(store: EventStore, n: number, results: readonly AppendResult[]): Promise<void> {
  expect(results.map(({ revision }) => revision)).toEqual([1, 2, 4]);
  const { events } = await read(store, n);
  expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2, 3, 4]);
  expect(events.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4].map((i) => draft(i).id));
  expect(results.map(({ position }) => position)).toEqual([1, 2, 4].map((i) => events[i]?.position));
  expect(chainsOf(events)).toEqual(expectedChain(events));
  const prefix = stream(n).slice("hookdispatch-".length);
  expect(await collect(store.list({ order: "oldest", prefix }))).toHaveLength(1);
}

describe.each([
  { mode: "in batches", method: "batchAppend" as const },
  { mode: "one by one, as to an old server", method: "append" as const },
])("appends to EventStoreDB (a double) $mode", ({ method }) => {
  let double: Double;
  let store: EventStore;
  let n = 0;

  beforeAll(async () => {
    double = await startDouble({ features: { batchAppend: method === "batchAppend" } });
    store = await openEventStoreDb(`${double.url}&defaultDeadline=${DEADLINE}`, { mode: "write" });
  });

  afterAll(async () => {
    await store.close();
    await double.stop();
  });

  const soon = () => new Promise<void>((resolve) => setTimeout(resolve, 20));

  it.each<[string, (faults: Double["faults"], target: Target) => Fault]>([
    ["whose reply is lost", (faults, target) => faults.loseReply(target)],
    ["whose connection is cut after the write", (faults, target) => faults.loseReply(target, "cut")],
    ["whose connection is cut before the write", (faults, target) => faults.cut(target)],
    ["that is refused", (faults, target) => faults.refuse(target)],
    ["that is refused again and again", (faults, target) => faults.refuse({ ...target, times: 3 })],
    ["that is not heard of again", (faults, target) => faults.ignore(target)],
    ["that the server timed out, and wrote", (faults, target) => faults.timeOut(target, { written: true })],
    ["that the server timed out, and did not write", (faults, target) => faults.timeOut(target, { written: false })],
    ["that the server writes late", (faults, target) => faults.holdWrite(target, soon())],
    ["that the server answers late", (faults, target) => faults.holdReply(target, soon())],
  ])("should settle one %s", async (_, put) => {
    for (const skip of [0, 2]) {
      const fault = put(double.faults, { method, stream: stream(++n), skip });
      await expectFive(store, n, await appendThree(store, n));
      expect(fault.fired).toBeGreaterThan(0);
      double.faults.clear();
    }
  });
});

describe("appends to EventStoreDB (a double)", () => {
  let double: Double;
  const stores: EventStore[] = [];

  async function open(deadline = DEADLINE): Promise<EventStore> {
    const store = await openEventStoreDb(`${double.url}&defaultDeadline=${deadline}`, { mode: "write" });
    stores.push(store);
    return store;
  }

  beforeEach(async () => {
    double = await startDouble();
  });

  afterEach(async () => {
    double.faults.clear();
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await double.stop();
  });

  it("should take answers in any order", async () => {
    const store = await open();
    const reversed = double.faults.reverseReplies({ method: "batchAppend", stream: stream(1) }, 3);
    await expectFive(store, 1, await appendThree(store, 1));
    expect(reversed.fired).toBe(3);
  });

  it("should survive a connection that is cut in the middle of a message, and one that is cut in the middle of many", async () => {
    const store = await open(10_000);
    const data = `{"x":"${"x".repeat(200_000)}"}`;
    await store.append(opening(1));
    const cut = double.cutAfterBytes(500_000);
    const appends = Array.from({ length: 20 }, (_, i) =>
      store.append(further(1, i + 1, 1, { events: [draft(i + 1, { data })] })),
    );
    await cut;
    expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual(appends.map((_, i) => i + 1));
    expect((await read(store, 1)).events).toHaveLength(21);
  });

  it("should survive a restart of the server under many streams", async () => {
    const store = await open(2000);
    const appends = Array.from({ length: 200 }, (_, n) => [store.append(opening(n)), store.append(further(n, 1))]);
    await Promise.race(appends.flat());
    await double.restart();
    expect((await Promise.all(appends.flat())).map(({ revision }) => revision)).toEqual(appends.flatMap(() => [0, 1]));
    const streams = await collect(store.readStreams({ order: "oldest" }));
    expect(streams.map(({ events }) => events.length)).toEqual(appends.map(() => 2));
  });

  it("should say that nothing was written when the server cannot be reached for too long", async () => {
    const store = await open();
    await store.append(opening(1));
    await double.stop();
    // What was sent on the connection that is just being lost may have arrived, for all that anybody knows.
    await expect(store.append(opening(2))).rejects.toMatchObject({
      code: expect.stringMatching(/^HL_STORE_(UNAVAILABLE|AMBIGUOUS)$/),
    });
    await expect(store.append(further(1, 1))).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    await double.start();
    expect((await store.append(further(1, 1))).revision).toBe(1);
  });

  it("should say that it does not know when a reply was lost and the server with it", async () => {
    const store = await open();
    await store.append(opening(1));
    const lost = double.faults.loseReply({ method: "batchAppend", stream: stream(1) });
    const append = store.append(further(1, 1));
    const refused = expect(append).rejects.toMatchObject({ code: "HL_STORE_AMBIGUOUS" });
    await lost.struck;
    await double.stop();
    await refused;
    await double.start();
    expect((await store.append(further(1, 1))).revision).toBe(1);
    expect((await read(store, 1)).events).toHaveLength(2);
  });

  it("should say at once that this user may not write", async () => {
    const store = await open(5000);
    double.faults.deny({ method: "batchAppend", stream: stream(1) });
    const refused = store.append(opening(1));
    await expect(refused).rejects.toMatchObject({ code: "HL_STORE_DENIED" });
    await expect(refused).rejects.toThrow(stream(1));
    expect((await store.append(opening(1))).revision).toBe(0);
  });

  it("should acknowledge a dispatch only when it is listed", async () => {
    const store = await open();
    const refused = double.faults.refuse({ method: "batchAppend", stream: /^hookindex-/, times: 2 });
    await store.append(opening(1, 1, { session: "s" }));
    expect(refused.fired).toBe(2);
    expect(await collect(store.list({ order: "newest", session: "s" }))).toHaveLength(1);
    expect(await collect(store.readUnlisted())).toEqual([]);
  });

  describe("by two writers", () => {
    const at = (revision: number, data: string, writer: string): AppendRequest => {
      const metadata = `{"at":"2026-01-01T00:00:00.000Z","writer":"${writer}"}`;
      return further(1, revision, 1, { events: [draft(revision, { data, metadata })] });
    };

    it("should let one of them win, although the events have the same ids", async () => {
      const [one, other] = await Promise.all([open(5000), open(5000)]);
      await one.append(opening(1));
      await other.append(opening(2));
      const outcomes = await Promise.allSettled([
        one.append(at(1, '{"decision":"allow"}', "one")),
        other.append(at(1, '{"cause":"recovered"}', "other")),
      ]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({
        reason: { code: "HL_STORE_CONFLICT" },
      });
      const { events } = await read(one, 1);
      const winner = outcomes[0]?.status === "fulfilled" ? '{"decision":"allow"}' : '{"cause":"recovered"}';
      expect(events.map(({ data }) => data)).toEqual(['{"index":0}', winner]);
    });

    it("should never let a writer act that somebody has overtaken", async () => {
      const [stale, recoverer] = await Promise.all([open(5000), open(5000)]);
      await stale.append(opening(1));
      await recoverer.append(at(1, '{"cause":"recovered"}', "recoverer"));
      const late = stale.append(at(1, '{"decision":"allow"}', "stale"));
      await expect(late).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
      expect((await read(stale, 1)).events).toHaveLength(2);
    });

    it("should acknowledge both where they say the same, and keep one chain", async () => {
      const [one, other] = await Promise.all([open(5000), open(5000)]);
      await one.append(opening(1));
      const both = await Promise.all([one.append(at(1, '{"a":1}', "one")), other.append(at(1, '{"a":1}', "other"))]);
      expect(both[0]).toEqual(both[1]);
      await Promise.all([one.append(further(1, 2)), other.append(further(1, 2))]);
      const { events } = await read(one, 1);
      expect(events).toHaveLength(3);
      expect(chainsOf(events)).toEqual(expectedChain(events));
    });
  });

  describe("to a stream that was deleted", () => {
    it("should not begin again where the revisions go on", async () => {
      const store = await open();
      await store.append(opening(1, 3));
      double.log.remove(stream(1), "any");
      for (const attempt of [1, 2]) {
        const again = store.append(opening(1, 1, { events: [draft(attempt + 5)] }));
        await expect(again).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
      }
      await expect.poll(() => store.readStream(stream(1))).toBeNull();
    });

    it("should end when it was deleted for good", async () => {
      const store = await open(1000);
      await store.append(opening(1));
      double.log.tombstone(stream(1), "any");
      await expect(store.append(further(1, 1))).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
      await expect(store.append(opening(1))).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
      expect(await store.readStream(stream(1))).toBeNull();
    });
  });

  it("should refuse what a server of a smaller bound does not take", async () => {
    const store = await open();
    double.features = { ...double.features, maxAppendBytes: 10_000 };
    const events = [draft(0, { data: `{"x":"${"x".repeat(20_000)}"}` })];
    await expect(store.append(opening(1, 1, { events }))).rejects.toMatchObject({ code: "HL_LIMIT_APPEND" });
    await store.append(opening(1));
  });

  it("should refuse an append behind an event that is none of ours", async () => {
    const store = await open();
    const foreign = { id: draft(0).id, type: "other", json: true, data: Buffer.from("{}"), metadata: Buffer.from("") };
    double.log.append(stream(1), "none", [foreign]);
    await expect(store.append(further(1, 1))).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
  });
});
