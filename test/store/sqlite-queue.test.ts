import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore, GarbageCollection } from "#src/store/port.js";
import type { DeliveryQueue, DeliveryState, QueuedDelivery } from "#src/store/queue.js";
import { MAX_DELIVERY_BYTES, MAX_DELIVERY_NOTE_BYTES } from "#src/store/queue-check.js";
import { queueOf } from "#src/store/queue-of.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { allDeliveries, delivery, deliveryId, queueIn } from "../support/deliveries.js";
import { alterSqlite, printLedger, rowsOf } from "../support/ledgers.js";
import { further, opening, read, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let store: EventStore & GarbageCollection;
let queue: DeliveryQueue;

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  store = await openSqliteStore(path, { mode: "write" });
  queue = queueIn(store);
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

async function idsOf(filter: Parameters<DeliveryQueue["deliveries"]>[0]): Promise<readonly string[]> {
  return (await queue.deliveries(filter)).map(({ id }) => id);
}

const id = deliveryId;

describe("a queue of deliveries", () => {
  it("should be kept by SQLite stores only", () => {
    expect(queueOf(store)).toBe(store);
    expect(queueOf(openMemoryStore())).toBeNull();
  });

  it("should hand over what it was given, oldest first", async () => {
    const full = delivery(7, {
      state: "failed",
      lane: "ligne \0 n° 1",
      payload: JSON.stringify({ text: "\u{1F600}\0\u2028" }),
      session: null,
      run: "r-1",
      attempts: 3,
      partsSent: 2,
      receipts: '[{"id":"1"}]',
      error: "410 Gone",
    });
    await queue.put([delivery(9), full, delivery(8)], true);
    expect(await queue.deliveries({})).toEqual([full, delivery(8), delivery(9)]);
    await store.close();
    store = await openSqliteStore(path, { mode: "read" });
    expect(await queueIn(store).deliveries({})).toEqual([full, delivery(8), delivery(9)]);
  });

  it("should be searched by state, prefix and place", async () => {
    const states: readonly DeliveryState[] = [
      "pending",
      "sent",
      "unknown",
      "pending",
      "dropped",
      "failed",
      "attempting",
    ];
    await queue.put(
      states.map((state, n) => delivery(n, { state })),
      false,
    );
    expect(await idsOf({ states: ["pending"] })).toEqual([id(0), id(3)]);
    expect(await idsOf({ states: ["failed", "sent", "sent", "attempting"] })).toEqual([id(1), id(5), id(6)]);
    expect(await idsOf({ states: [] })).toEqual([]);
    expect(await idsOf({ after: id(4) })).toEqual([id(5), id(6)]);
    expect(await idsOf({ after: id(1), limit: 2 })).toEqual([id(2), id(3)]);
    expect(await idsOf({ prefix: id(5) })).toEqual([id(5)]);
    expect(await idsOf({ prefix: id(5), after: id(5) })).toEqual([]);
    expect(await idsOf({ prefix: "01K", after: id(5) })).toEqual([id(6)]);
    expect(await idsOf({ prefix: "01K", states: ["pending"], after: id(0) })).toEqual([id(3)]);
    expect(await idsOf({ prefix: "02" })).toEqual([]);
    expect(await idsOf({ prefix: "%" })).toEqual([]);
  });

  it("should come in pages, smaller ones where deliveries are large", async () => {
    const large = "x".repeat(MAX_DELIVERY_BYTES - 2);
    const many = Array.from({ length: 600 }, (_, n) => delivery(n));
    const huge = Array.from({ length: 6 }, (_, n) => delivery(1000 + n, { payload: large, route: "{}" }));
    await queue.put([...many, ...huge], false);
    expect(await queue.deliveries({})).toHaveLength(256);
    expect(await queue.deliveries({ limit: 500 })).toHaveLength(500);
    expect((await queue.deliveries({ after: id(999) })).length).toBeLessThan(5);
    expect((await allDeliveries(queue)).map((found) => found.id)).toEqual([...many, ...huge].map((put) => put.id));
  });

  it("should take several or none of them", async () => {
    await queue.put([delivery(1)], true);
    const bad = queue.put([delivery(0), delivery(2), delivery(1, { lane: "another" })], false);
    const others = [queue.put([delivery(3), delivery(4)], false), store.append(opening(1)), queue.put([], true)];
    await expect(bad).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    await Promise.all(others);
    expect(await idsOf({})).toEqual([id(1), id(3), id(4)]);
    await expect(queue.put([delivery(5), delivery(6), delivery(5, { run: "r" })], true)).rejects.toMatchObject({
      code: "HL_STORE_CONFLICT",
    });
    expect(await idsOf({})).toEqual([id(1), id(3), id(4)]);
  });

  it("should acknowledge the identical call again, and nothing that says otherwise", async () => {
    const begun = delivery(1, { state: "attempting", attempts: 1 });
    await queue.put([begun], false);
    await queue.put([begun, delivery(2)], true);
    await queue.put([begun, delivery(2)], true);
    const others: readonly Partial<QueuedDelivery>[] = [{ state: "pending" }, { session: null }, { dueAt: 1 }];
    for (const other of others) {
      await expect(queue.put([{ ...begun, ...other }], true)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    }
    await queue.change(id(1), ["attempting"], { state: "sent" }, false);
    await expect(queue.put([begun], true)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    expect((await queue.deliveries({})).map(({ state }) => state)).toEqual(["sent", "pending"]);
  });

  it("should not let two stores put the same attempt", async () => {
    const other = await openSqliteStore(path, { mode: "write" });
    const attempt = delivery(1, { state: "attempting", attempts: 1 });
    await queue.put([attempt, delivery(2)], false);
    await expect(queueIn(other).put([attempt], true)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    // What nobody has begun is the same, whoever says so.
    await queueIn(other).put([delivery(2)], true);
    await other.close();
    await queue.put([attempt], true);
  });

  it("should be changed from the expected states only, and only in what the change says", async () => {
    await queue.put([delivery(1), delivery(2)], false);
    expect(await queue.change(id(1), ["unknown", "sent"], { state: "dropped", error: "x" }, true)).toBe(false);
    expect(await queue.change(id(1), [], { state: "dropped" }, false)).toBe(false);
    expect(await queue.change(id(3), ["pending"], { state: "dropped" }, false)).toBe(false);
    expect(await queue.deliveries({})).toEqual([delivery(1), delivery(2)]);
    expect(await queue.change(id(1), ["sent", "pending"], { partsSent: 2, receipts: "[1]" }, false)).toBe(true);
    expect(await queue.change(id(1), ["pending"], { state: "failed", error: "no \ud800", updatedAt: 9 }, true)).toBe(
      true,
    );
    const changed = delivery(1, { state: "failed", partsSent: 2, receipts: "[1]", error: "no \ufffd", updatedAt: 9 });
    expect(await queue.deliveries({})).toEqual([changed, delivery(2)]);
    expect(await queue.change(id(1), ["failed"], { error: null, dueAt: 5, attempts: 4, state: "pending" }, true)).toBe(
      true,
    );
    expect((await queue.deliveries({ limit: 1 }))[0]).toEqual({
      ...changed,
      state: "pending",
      error: null,
      dueAt: 5,
      attempts: 4,
    });
  });

  it("should let exactly one of many begin an attempt", async () => {
    const other = await openSqliteStore(path, { mode: "write" });
    await queue.put([delivery(1)], true);
    const tries = Array.from({ length: 20 }, (_, n) =>
      queueIn(n % 2 === 0 ? store : other).change(id(1), ["pending"], { state: "attempting", attempts: 1 }, n > 10),
    );
    expect((await Promise.all(tries)).filter(Boolean)).toHaveLength(1);
    await other.close();
  });

  it("should be carried out in the order of the calls", async () => {
    const done = [
      store.append(opening(1, 1, { barrier: false })),
      queue.put([delivery(1)], false),
      queue.change(id(1), ["pending"], { state: "attempting" }, false),
      queue.put([delivery(2)], false),
      queue.change(id(2), ["attempting"], { state: "sent" }, false),
      store.append(further(1, 1, 1, { barrier: false })),
      queue.change(id(1), ["attempting"], { state: "sent" }, true),
    ];
    expect((await Promise.all(done)).filter((answer) => typeof answer === "boolean")).toEqual([true, false, true]);
    expect((await queue.deliveries({})).map(({ state }) => state)).toEqual(["sent", "pending"]);
    expect((await read(store, 1)).events).toHaveLength(2);
  });
});

describe("an attempt whose store has ended", () => {
  it("should be unknown to whoever reads or changes it, and to nobody before", async () => {
    const other = await openSqliteStore(path, { mode: "write" });
    const theirs = queueIn(other);
    await theirs.put([delivery(1, { state: "attempting" }), delivery(2), delivery(3, { state: "attempting" })], false);
    await theirs.change(id(2), ["pending"], { state: "attempting" }, false);
    await queue.put([delivery(4, { state: "attempting" }), delivery(5, { state: "unknown" })], false);
    expect(await idsOf({ states: ["attempting"] })).toEqual([1, 2, 3, 4].map(id));
    expect(await idsOf({ states: ["unknown"] })).toEqual([id(5)]);
    expect(await queue.change(id(1), ["unknown"], { state: "pending" }, false)).toBe(false);
    await other.close();
    expect(await idsOf({ states: ["attempting"] })).toEqual([id(4)]);
    expect(await idsOf({ states: ["unknown"] })).toEqual([1, 2, 3, 5].map(id));
    expect(await idsOf({ states: ["unknown"], limit: 2, after: id(2) })).toEqual([id(3), id(5)]);
    expect((await queue.deliveries({ limit: 1 }))[0]?.state).toBe("unknown");
    expect(await queue.change(id(1), ["attempting"], { state: "sent" }, false)).toBe(false);
    expect(await queue.change(id(1), ["unknown"], { state: "pending" }, false)).toBe(true);
    // Whoever only adds to it has not begun it.
    expect(await queue.change(id(2), ["unknown"], { error: "asked, and got no answer" }, false)).toBe(true);
    expect(await queue.change(id(3), ["unknown"], { state: "attempting" }, false)).toBe(true);
    expect((await queue.deliveries({})).map(({ state }) => state)).toEqual([
      "pending",
      "unknown",
      "attempting",
      "attempting",
      "unknown",
    ]);
  });
});

describe("an attempt of another store", () => {
  it("should be changed by nobody else", async () => {
    const other = await openSqliteStore(path, { mode: "write" });
    await queue.put([delivery(1)], false);
    expect(await queueIn(other).change(id(1), ["pending"], { state: "attempting" }, false)).toBe(true);
    // Whoever gives up a beginning that was never made takes back none that was.
    expect(await queue.change(id(1), ["attempting"], { state: "pending" }, false)).toBe(false);
    expect(await queue.change(id(1), ["attempting", "pending"], { state: "dropped" }, false)).toBe(false);
    expect(await queueIn(other).change(id(1), ["attempting"], { state: "sent" }, false)).toBe(true);
    await other.close();
    expect((await queue.deliveries({})).map(({ state }) => state)).toEqual(["sent"]);
  });
});

describe("what a queue does not take", () => {
  it("should be what is too large", async () => {
    const half = "é".repeat(MAX_DELIVERY_BYTES / 4);
    await queue.put([delivery(1, { payload: half, route: half })], false);
    const note = "n".repeat(MAX_DELIVERY_NOTE_BYTES);
    const large: readonly Partial<QueuedDelivery>[] = [
      { payload: half, route: `${half}.` },
      { receipts: note, lane: "." },
      { session: note },
      { run: note },
      { error: note },
    ];
    for (const parts of large) {
      const refused = queue.put([delivery(2), delivery(3, parts)], false);
      await expect(refused).rejects.toMatchObject({ code: "HL_LIMIT_DELIVERY" });
    }
    const change = queue.change(id(1), ["pending"], { receipts: note, error: "." }, false);
    await expect(change).rejects.toMatchObject({ code: "HL_LIMIT_DELIVERY" });
    expect(await idsOf({})).toEqual([id(1)]);
  });

  it("should be what is no delivery", async () => {
    const bad: readonly Partial<QueuedDelivery>[] = [
      { id: "x" },
      { id: id(1).toLowerCase() },
      { dueAt: 1.5 },
      { attempts: -1 },
      { partsSent: Number.NaN },
      { createdAt: 2 ** 53 },
      { updatedAt: Number.POSITIVE_INFINITY },
      { lane: "\ud800" },
      { payload: "\udc00" },
      { state: JSON.parse('"__proto__"') },
      { idempotencyKey: JSON.parse("1") },
    ];
    for (const parts of bad) {
      await expect(queue.put([delivery(1, parts)], false)).rejects.toMatchObject({ code: "HL_USAGE" });
    }
    const refused = { code: "HL_USAGE" };
    await expect(queue.change("%", ["pending"], {}, false)).rejects.toMatchObject(refused);
    await expect(queue.change(id(1), [JSON.parse('"gone"')], {}, false)).rejects.toMatchObject(refused);
    await expect(queue.change(id(1), ["pending"], { dueAt: 0.1 }, false)).rejects.toMatchObject(refused);
    expect(await idsOf({})).toEqual([]);
  });

  it("should be anything once it is closed, or open for reading only", async () => {
    const reader = await openSqliteStore(path, { mode: "read" });
    const refused = { code: "HL_STORE_READONLY" };
    await expect(queueIn(reader).put([delivery(1)], true)).rejects.toMatchObject(refused);
    await expect(queueIn(reader).change(id(1), ["pending"], {}, true)).rejects.toMatchObject(refused);
    await reader.close();
    await store.close();
    const closed = { code: "HL_STORE_CLOSED" };
    await expect(queue.put([delivery(1)], true)).rejects.toMatchObject(closed);
    await expect(queue.change(id(1), ["pending"], {}, true)).rejects.toMatchObject(closed);
    await expect(queue.deliveries({})).rejects.toMatchObject(closed);
  });

  it("should keep nothing that the caller changes afterwards", async () => {
    const given = { ...delivery(1) };
    const put = queue.put([given], true);
    given.lane = "another";
    await put;
    expect(await queue.deliveries({})).toEqual([delivery(1)]);
  });
});

describe("the record beside a queue", () => {
  it("should be what it is without one, and garbage collection should leave the queue alone", async () => {
    await store.append(opening(1, 3));
    const before = printLedger(await rowsOf(store));
    await queue.put([delivery(1), delivery(2, { state: "sent" })], true);
    expect(printLedger(await rowsOf(store))).toBe(before);
    await store.collectGarbage({ dryRun: false, now: Date.now(), graceMs: 0 });
    expect(await queue.deliveries({})).toEqual([delivery(1), delivery(2, { state: "sent" })]);
  });
});

describe("rows that somebody has altered", () => {
  it("should be read as far as they go, and throw nothing", async () => {
    await queue.put([delivery(1), delivery(2), delivery(3, { state: "attempting" }), delivery(4)], true);
    alterSqlite(path, (db) => {
      db.prepare("UPDATE deliveries SET lane = x'ff', due_at = 'soon', payload = 7, session = 1.5 WHERE id = ?").run(
        id(1),
      );
      db.prepare("UPDATE deliveries SET state = 'lost' WHERE id = ?").run(id(2));
      db.prepare("UPDATE deliveries SET writer = '../../elsewhere' WHERE id = ?").run(id(3));
    });
    const found = await queue.deliveries({});
    expect(found.map((one) => [one.id, one.state])).toEqual([
      [id(1), "pending"],
      [id(3), "unknown"],
      [id(4), "pending"],
    ]);
    expect(found[0]).toMatchObject({ lane: "", dueAt: -1, payload: expect.any(String), session: expect.any(String) });
  });

  it("should be said to be damage where they are no table of ours", async () => {
    await store.close();
    alterSqlite(path, (db) => db.exec("DROP TABLE deliveries; CREATE TABLE deliveries (id TEXT)"));
    const reader = await openSqliteStore(path, { mode: "read" });
    await expect(queueIn(reader).deliveries({})).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
    await reader.close();
    await expect(openSqliteStore(path, { mode: "write" })).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
    const db = new Database(path, { readonly: true });
    expect(db.prepare("SELECT count(*) FROM deliveries").pluck().get()).toBe(0);
    db.close();
  });
});
