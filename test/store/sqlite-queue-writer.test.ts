import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_BACKLOG_BYTES } from "#src/store/backlog.js";
import { MAX_DELIVERY_BYTES } from "#src/store/queue-check.js";
import { Appender } from "#src/store/sqlite/appender.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { spawnWriter } from "#src/store/sqlite/writer-client.js";
import { allDeliveries, delivery, deliveryId, queueIn } from "../support/deliveries.js";
import { opening, read, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
const writer = "01HF7YAT00WR1TERWR1TERWR1T";

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

async function open() {
  const workers: Worker[] = [];
  const store = await openSqliteStore(path, {
    mode: "write",
    busyTimeoutMs: 200,
    spawnWriter: (data) => {
      const worker = spawnWriter(data);
      workers.push(worker);
      return worker;
    },
  });
  return { store, queue: queueIn(store), workers };
}

/** What the writer's thread does, in this one. */
async function appenderOn(busyTimeoutMs = 0) {
  await (await openSqliteStore(path, { mode: "write" })).close();
  const db = new Database(path, { timeout: 0 });
  const appender = new Appender(db, { path, busyTimeoutMs, resumed: false });
  const put = (barrier: boolean, ...deliveries: readonly ReturnType<typeof delivery>[]) =>
    ({ kind: "put", deliveries, writer, barrier }) as const;
  const changeTo = (state: "sent" | "failed", barrier: boolean) =>
    ({ kind: "change", id: deliveryId(1), from: ["pending"], to: { state }, writer, barrier }) as const;
  /** Frames (pages) in the write-ahead log. */
  const frames = () =>
    db.prepare<[], [number, number, number]>("PRAGMA wal_checkpoint(NOOP)").raw().get()?.[1] ?? Number.NaN;
  const states = () => db.prepare("SELECT state FROM deliveries ORDER BY id").pluck().all();
  return { db, appender, put, changeTo, frames, states };
}

describe("the writer's thread", () => {
  it("should leave what concerns the queue ambiguous when it dies, with what came before and after it", async () => {
    const { store, queue, workers } = await open();
    await queue.put([delivery(1)], true);
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const pending = [
      store.append(opening(1, 1, { barrier: false })),
      queue.put([delivery(2)], false),
      queue.change(deliveryId(1), ["pending"], { state: "attempting" }, true),
    ];
    const outcomes = Promise.allSettled(pending);
    await Promise.resolve();
    await Promise.resolve();
    const dead = workers[0]?.terminate();
    other.exec("ROLLBACK");
    other.close();
    await dead;
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: "rejected", reason: { code: "HL_STORE_AMBIGUOUS" } });
    expect(store.pendingBytes).toBe(0);
    // Repeating the identical calls settles it, and of a change reading it tells.
    await store.append(opening(1));
    await queue.put([delivery(2)], true);
    const [first] = await queue.deliveries({ limit: 1 });
    const again = await queue.change(deliveryId(1), ["pending"], { state: "attempting" }, true);
    expect(again).toBe(first?.state === "pending");
    expect((await queue.deliveries({})).map(({ state }) => state)).toEqual(["attempting", "pending"]);
    expect(workers).toHaveLength(2);
    await store.close();
  });

  it("should keep the calls' order over its death: nothing without what came before", async () => {
    for (let round = 0; round < 6; round++) {
      const { store, queue, workers } = await open();
      const calls = Array.from({ length: 40 }, (_, i) => {
        const n = round * 100 + i;
        return i % 2 === 0 ? store.append(opening(n, 1, { barrier: false })) : queue.put([delivery(n)], i % 10 === 9);
      });
      const outcomes = Promise.allSettled(calls);
      for (let turn = 0; turn < round; turn++) await new Promise((resolve) => setImmediate(resolve));
      await workers[0]?.terminate();
      await outcomes;
      const put = new Set((await allDeliveries(queue)).map(({ id }) => id));
      const there = await Promise.all(
        Array.from({ length: 40 }, async (_, i) => {
          const n = round * 100 + i;
          return i % 2 === 0 ? (await read(store, n).catch(() => null)) !== null : put.has(deliveryId(n));
        }),
      );
      // A thread that is replaced goes on with what it was not handed yet: only one gap, of what was under way.
      const switches = there.filter((found, i) => i > 0 && found !== there[i - 1]).length;
      expect(switches).toBeLessThanOrEqual(2);
      (await outcomes).forEach(({ status }, i) => {
        if (status === "fulfilled") expect(there[i]).toBe(true);
      });
      await store.close();
    }
  });

  it("should give up on a ledger that another process has locked, with nothing written", async () => {
    const { store, queue } = await open();
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(queue.put([delivery(1)], true)).rejects.toMatchObject({ code: "HL_STORE_LOCKED" });
    other.exec("COMMIT");
    other.close();
    expect(await queue.deliveries({})).toEqual([]);
    await queue.put([delivery(1)], true);
    await store.close();
  });

  it("should be spared what would be too much to wait", async () => {
    const { store, queue } = await open();
    const large = "x".repeat(MAX_DELIVERY_BYTES - 2);
    const first = store.append(opening(1, 1, { barrier: false }));
    const many = Array.from({ length: MAX_BACKLOG_BYTES / MAX_DELIVERY_BYTES + 1 }, (_, n) =>
      delivery(n, { payload: large, route: "{}" }),
    );
    await expect(queue.put(many, true)).rejects.toMatchObject({ code: "HL_STORE_BACKLOG" });
    const put = queue.put([delivery(100)], true);
    expect(store.pendingBytes).toBeGreaterThan(100);
    await Promise.all([first, put]);
    expect(store.pendingBytes).toBe(0);
    expect(await queue.deliveries({})).toEqual([delivery(100)]);
    await store.close();
  });
});

describe("a barrier", () => {
  it("should force what came before to disk, also where it changes nothing itself", async () => {
    const { db, appender, put, changeTo, frames } = await appenderOn();
    const syncs = () => {
      const before = frames();
      appender.sync();
      return frames() > before;
    };
    appender.commit([put(false, delivery(1))]);
    expect(syncs()).toBe(true);
    appender.commit([put(true, delivery(2))]);
    expect(syncs()).toBe(false);
    for (const nothing of [put(true, delivery(2)), put(true), { ...changeTo("sent", true), from: [] }]) {
      appender.commit([opening(frames(), 1, { barrier: false })]);
      expect(appender.commit([nothing])).toEqual([{ changed: false }]);
      expect(syncs()).toBe(false);
    }
    appender.commit([changeTo("sent", false)]);
    expect(syncs()).toBe(true);
    db.close();
  });
});

describe("one transaction", () => {
  it("should hold events and deliveries, each request all or nothing", async () => {
    const { db, appender, put, changeTo, states } = await appenderOn();
    const outcomes = appender.commit([
      opening(1),
      put(false, delivery(1), delivery(2)),
      put(false, delivery(3), delivery(2, { lane: "another" }), delivery(4)),
      changeTo("sent", false),
      changeTo("failed", true),
      opening(1, 2),
    ]);
    expect(outcomes).toMatchObject([
      { revision: 0 },
      { changed: true },
      { code: "HL_STORE_CONFLICT" },
      { changed: true },
      { changed: false },
      { code: "HL_STORE_CONFLICT" },
    ]);
    expect(states()).toEqual(["sent", "pending"]);
    expect(db.prepare("SELECT count(*) FROM events").pluck().get()).toBe(1);
    db.close();
  });

  it("should fail what does not fit on the disk, and nothing else", async () => {
    const { db, appender, put, changeTo, states } = await appenderOn();
    db.pragma("max_page_count = 40");
    const large = "x".repeat(120_000);
    expect(
      appender.commit([
        put(false, delivery(1)),
        put(true, delivery(2), delivery(3, { payload: large })),
        opening(1),
        put(true, delivery(4, { payload: large })),
        changeTo("sent", true),
      ]),
    ).toMatchObject([
      { changed: true },
      { code: "HL_STORE_FULL" },
      { revision: 0 },
      { code: "HL_STORE_FULL" },
      { changed: true },
    ]);
    expect(states()).toEqual(["sent"]);
    db.close();
  });
});
