import { statSync } from "node:fs";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_BACKLOG_BYTES } from "#src/store/backlog.js";
import type { EventStore } from "#src/store/port.js";
import { Appender } from "#src/store/sqlite/appender.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { spawnWriter } from "#src/store/sqlite/writer-client.js";
import {
  blobOf,
  chainsOf,
  draft,
  expectedChain,
  further,
  opening,
  read,
  stream,
  temporaryFolder,
} from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

describe("a ledger that another process has locked", () => {
  it("should be waited for, and then given up with nothing written", async () => {
    const store = await openSqliteStore(path, { mode: "write", busyTimeoutMs: 100 });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    await expect(store.append(opening(1))).rejects.toMatchObject({ code: "HL_STORE_LOCKED", hint: expect.any(String) });
    other.exec("COMMIT");
    await store.append(opening(1));
    expect((await read(store, 1)).events).toHaveLength(1);
    other.close();
    await store.close();
  });

  it("should be given up by a reader, too", async () => {
    await (await openSqliteStore(path, { mode: "write" })).close();
    const other = new Database(path);
    other.pragma("locking_mode = EXCLUSIVE");
    other.exec("BEGIN IMMEDIATE");
    const refused = { code: "HL_STORE_LOCKED" };
    await expect(openSqliteStore(path, { mode: "read", busyTimeoutMs: 20 })).rejects.toMatchObject(refused);
    await expect(openSqliteStore(path, { mode: "write", busyTimeoutMs: 20 })).rejects.toMatchObject(refused);
    other.close();
  });

  it("should be written as soon as the lock is gone", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const append = store.append(opening(1));
    expect(await store.readStream(stream(1))).toBeNull();
    other.exec("ROLLBACK");
    await append;
    other.close();
    await store.close();
  });
});

describe("a full disk", () => {
  async function limited(pages: number): Promise<{ readonly db: Database.Database; readonly appender: Appender }> {
    await (await openSqliteStore(path, { mode: "write" })).close();
    const db = new Database(path);
    db.pragma(`max_page_count = ${pages}`);
    return { db, appender: new Appender(db, { path, busyTimeoutMs: 0, resumed: false }) };
  }

  it("should fail what does not fit, and nothing else", async () => {
    const { db, appender } = await limited(24);
    const large = [draft(0), draft(1, { data: `{"x":"${"x".repeat(100_000)}"}` })];
    const requests = [
      opening(1),
      opening(2, 1, { events: large }),
      opening(3),
      opening(4, 1, { events: large.slice(1) }),
    ];
    expect(appender.commit(requests)).toMatchObject([
      { revision: 0 },
      { code: "HL_STORE_FULL" },
      { revision: 0 },
      { code: "HL_STORE_FULL" },
    ]);
    expect(db.prepare("SELECT stream FROM events ORDER BY position").pluck().all()).toEqual([stream(1), stream(3)]);
    expect(db.prepare("SELECT stream FROM heads ORDER BY stream").pluck().all()).toEqual([stream(1), stream(3)]);
    db.pragma("max_page_count = 1000");
    expect(appender.commit([opening(2, 1, { events: large })])).toMatchObject([{ revision: 1 }]);
    db.close();
  });
});

describe("an append that meets a row that should not be there", () => {
  it("should fail whole, and nothing else with it", async () => {
    await (await openSqliteStore(path, { mode: "write" })).close();
    const db = new Database(path);
    const appender = new Appender(db, { path, busyTimeoutMs: 0, resumed: false });
    appender.commit([opening(2)]);
    // Somebody wrote behind the head, which does not know of it.
    db.prepare("INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, 2, '', '', '', '')").run(
      stream(2),
    );
    const outcomes = appender.commit([opening(1, 3), further(2, 1, 3), opening(3, 20), further(1, 3)]);
    expect(outcomes).toMatchObject([{ revision: 2 }, { code: expect.any(String) }, { revision: 19 }, { revision: 3 }]);
    const revisions = db.prepare("SELECT revision FROM events WHERE stream = ? ORDER BY revision").pluck();
    expect(revisions.all(stream(1))).toEqual([0, 1, 2, 3]);
    expect(revisions.all(stream(2))).toEqual([0, 2]);
    expect(revisions.all(stream(3))).toEqual(Array.from({ length: 20 }, (_, n) => n));
    const heads = db.prepare("SELECT revision FROM heads ORDER BY stream").pluck();
    expect(heads.all()).toEqual([3, 0, 19]);
    db.close();
  });
});

describe("the writer's thread", () => {
  /** Opens the ledger and gives access to the threads that write it. */
  async function open(): Promise<{ readonly store: EventStore; readonly workers: Worker[] }> {
    const workers: Worker[] = [];
    const store = await openSqliteStore(path, {
      mode: "write",
      spawnWriter: (data) => {
        const worker = spawnWriter(data);
        workers.push(worker);
        return worker;
      },
    });
    return { store, workers };
  }

  it("should leave appends ambiguous when it dies, and be replaced", async () => {
    const { store, workers } = await open();
    await store.append(opening(1));
    const pending = [store.append(further(1, 1, 1, { barrier: false })), store.append(further(1, 2))];
    const outcomes = Promise.allSettled(pending);
    // The barrier goes out in a microtask; the thread ends before or after it has written.
    await Promise.resolve();
    await Promise.resolve();
    await workers[0]?.terminate();
    for (const outcome of await outcomes) {
      if (outcome.status === "rejected") expect(outcome.reason).toMatchObject({ code: "HL_STORE_AMBIGUOUS" });
    }
    // Either way, repeating the identical appends settles it.
    await store.append(further(1, 1, 1, { barrier: false }));
    await store.append(further(1, 2));
    const { events } = await read(store, 1);
    expect(chainsOf(events)).toEqual(expectedChain(events));
    expect(events).toHaveLength(3);
    expect(workers).toHaveLength(2);
    expect(await store.writerState(store.writer)).toBe("alive");
    await store.close();
  });

  it("should leave an append ambiguous that waits for another process when it dies", async () => {
    const { store, workers } = await open();
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const pending = store.append(opening(1));
    const refused = expect(pending).rejects.toMatchObject({ code: "HL_STORE_AMBIGUOUS" });
    await Promise.resolve();
    await Promise.resolve();
    const dead = workers[0]?.terminate();
    other.exec("ROLLBACK");
    other.close();
    await dead;
    await refused;
    await store.append(opening(1));
    await store.close();
  });

  it("should say that it has ended where it fails while it is closed", async () => {
    const failing = `const { parentPort } = require("node:worker_threads");
      parentPort.on("message", () => { throw new Error("not today"); });
      parentPort.postMessage({ kind: "ready" });`;
    const store = await openSqliteStore(path, {
      mode: "write",
      spawnWriter: () => new Worker(failing, { eval: true }),
    });
    await expect(store.close()).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
  });

  it("should not be replaced for ever", async () => {
    const workers: Worker[] = [];
    const store = await openSqliteStore(path, {
      mode: "write",
      spawnWriter: (data) => {
        const worker = spawnWriter(data);
        if (workers.push(worker) > 1) void worker.terminate();
        return worker;
      },
    });
    await workers[0]?.terminate();
    await expect(store.append(opening(1))).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    expect(workers).toHaveLength(4);
    await expect(store.close()).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    await expect(store.append(opening(2))).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    const next = await openSqliteStore(path, { mode: "write" });
    expect(await next.writerState(store.writer)).toBe("dead");
    await next.close();
  });

  it("should refuse what would be too much to wait, write nothing of it, and answer the rest in order", async () => {
    const { store } = await open();
    const digest = `sha256:${"ab".repeat(32)}` as const;
    const bytes = new Uint8Array(MAX_BACKLOG_BYTES);
    const large = opening(3, 1, { blobs: [{ digest, bytes }] });
    const first = [0, 1, 2].map((n) => store.append(opening(n, 1, { barrier: false })));
    expect(store.pendingBytes).toBeGreaterThan(0);
    await expect(store.append(large)).rejects.toMatchObject({ code: "HL_STORE_BACKLOG" });
    expect((await Promise.all([...first, store.append(opening(4))])).map(({ position }) => position)).toEqual([
      1, 2, 3, 4,
    ]);
    expect(store.pendingBytes).toBe(0);
    // Alone it may be larger than the bound.
    const alone = store.append(large);
    await expect(store.append(opening(5))).rejects.toMatchObject({ code: "HL_STORE_BACKLOG" });
    expect((await alone).position).toBe(5);
    expect(await blobOf(store, digest)).toHaveLength(bytes.length);
    expect(await store.readStream(stream(5))).toBeNull();
    await store.close();
  });

  it("should count nothing of what a dead thread leaves unanswered", async () => {
    const { store, workers } = await open();
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const pending = store.append(opening(1));
    const refused = expect(pending).rejects.toMatchObject({ code: "HL_STORE_AMBIGUOUS" });
    await Promise.resolve();
    await Promise.resolve();
    const dead = workers[0]?.terminate();
    other.close();
    await dead;
    await refused;
    expect(store.pendingBytes).toBe(0);
    await store.close();
  });

  it("should take more appends at once than fit into one transaction", async () => {
    const { store } = await open();
    const appends = Array.from({ length: 3000 }, (_, n) =>
      store.append(n === 0 ? opening(1) : further(1, n, 1, { barrier: n === 2999 })),
    );
    expect((await Promise.all(appends)).at(-1)).toEqual({ revision: 2999, position: 3000 });
    await store.close();
  });

  it("should keep the write-ahead log short under load", async () => {
    const { store } = await open();
    const data = `{"x":"${"x".repeat(200_000)}"}`;
    for (let n = 0; n < 75; n++) {
      const events = Array.from({ length: 3 }, (_, i) => draft(i, { data }));
      await store.append(opening(n, 1, { events, barrier: false }));
    }
    expect(statSync(`${path}-wal`).size).toBeLessThan(30 * 1024 * 1024);
    await store.close();
    expect(statSync(path).size).toBeGreaterThan(40_000_000);
  });
});
