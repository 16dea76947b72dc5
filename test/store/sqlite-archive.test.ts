import { createHash } from "node:crypto";
import { join } from "node:path";
import Database from "better-sqlite3";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cut } from "#src/payload/archive/cut.js";
import { chunkHash } from "#src/payload/archive/hash.js";
import { encodeHeader, encodeNode, isNode } from "#src/payload/archive/node.js";
import type { EventStore, GarbageCollection } from "#src/store/port.js";
import { Appender } from "#src/store/sqlite/appender.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { collectAll, naming } from "../contract/garbage-contract.js";
import { conversation, message } from "../payload/archive/fields.js";
import { blobOf, draft, numbered, opening, stream, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let store: EventStore & GarbageCollection;
let db: Database.Database;

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  store = await openSqliteStore(path, { mode: "write" });
  db = new Database(path);
});
afterEach(async () => {
  db.close();
  await store.close();
  folder.remove();
});

const messages = Array.from({ length: 60 }, (_, i) => message(`m${i}`, 900));
const payload = conversation(messages);
const counts = () => [count("payloads"), count("chunks")];

function count(table: string): unknown {
  return db.prepare(`SELECT count(*) FROM ${table}`).pluck().get();
}

function removeStream(n: number): void {
  db.prepare("DELETE FROM events WHERE stream = ?").run(stream(n));
  db.prepare("DELETE FROM heads WHERE stream = ?").run(stream(n));
}

describe("the archive in a ledger file", () => {
  it("should hold a small root under the digest and chunks by 32 bytes", async () => {
    await store.append(naming(1, [numbered(1)], [[numbered(1), payload]]));
    const root = db.prepare("SELECT size, length(bytes) AS length FROM payloads").get();
    expect(root).toEqual({ size: payload.length, length: expect.any(Number) });
    expect(db.prepare("SELECT max(length(bytes)) FROM payloads").pluck().get()).toBeLessThan(500);
    expect(db.prepare("SELECT DISTINCT typeof(digest), length(digest) FROM chunks").raw().all()).toEqual([
      ["blob", 32],
    ]);
  });

  it("should still be read where an older build kept payloads whole", async () => {
    db.prepare("INSERT INTO payloads (digest, size, bytes) VALUES (?, ?, ?)").run(numbered(7), payload.length, payload);
    expect(Buffer.compare((await blobOf(store, numbered(7))) ?? Buffer.alloc(0), payload)).toBe(0);
    await store.append(naming(1, [numbered(7)], [[numbered(7), payload]]));
    expect(counts()).toEqual([1, 0]);
    await collectAll(store);
    expect(counts()).toEqual([1, 0]);
  });

  it("should take nothing for a chunk that is too large for one", async () => {
    const large = new Uint8Array(1024 * 1024 + 1);
    const hash = chunkHash(large);
    const root = encodeNode([{ size: large.length, bytes: Buffer.concat([encodeHeader("leaf", large.length), hash]) }]);
    const insert = (table: string) => db.prepare(`INSERT INTO ${table} (digest, size, bytes) VALUES (?, ?, ?)`);
    insert("chunks").run(hash, large.length, large);
    insert("payloads").run(numbered(1), large.length, root);
    const detail = `chunk ${hash.toString("hex")} is missing`;
    expect(await store.readBlob(numbered(1))).toEqual({ kind: "damaged", detail });
  });

  it("should be written with the events or not at all", async () => {
    await store.close();
    db.pragma("max_page_count = 24");
    const appender = new Appender(db, { path, busyTimeoutMs: 0, resumed: false });
    expect(appender.commit([opening(1), naming(2, [numbered(1)], [[numbered(1), payload]])])).toMatchObject([
      { revision: 0 },
      { code: "HL_STORE_FULL" },
    ]);
    const alone = naming(3, [numbered(1)], [[numbered(1), payload]]);
    expect(appender.commit([alone])).toMatchObject([{ code: "HL_STORE_FULL" }]);
    expect(counts()).toEqual([0, 0]);
    expect(count("events")).toBe(1);
    db.pragma("max_page_count = 1000");
    expect(appender.commit([alone])).toMatchObject([{ revision: 0 }]);
    expect(count("payloads")).toBe(1);
  });
});

describe("garbage collection in a ledger file", () => {
  it("should remove what only removed streams named, and overwrite it", async () => {
    const told = Buffer.from("the secret of stream two".repeat(10));
    await store.append(naming(1, [numbered(1)], [[numbered(1), payload]]));
    const before = counts();
    await store.append(naming(2, [numbered(2)], [[numbered(2), conversation([...messages, told])]]));
    removeStream(2);
    await collectAll(store);
    expect(counts()).toEqual(before);
    expect(await blobOf(store, numbered(1))).not.toBeNull();
    db.pragma("wal_checkpoint(TRUNCATE)");
    expect(db.serialize().includes("the secret of stream two")).toBe(false);
  });

  it("should notice that the end of the log was removed and its positions were given away again", async () => {
    for (let n = 1; n <= 6; n++) await store.append(naming(n, [numbered(n)], [[numbered(n), payload]]));
    await store.append(naming(7, [], [[numbered(7), payload]]));
    let isFirst = true;
    await store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 }, () => {
      if (!isFirst) return;
      isFirst = false;
      for (let n = 4; n <= 7; n++) removeStream(n);
      // In another process, whose commits are its own: five events on the positions of four.
      const other = new Database(path);
      const appender = new Appender(other, { path, busyTimeoutMs: 5000, resumed: false });
      appender.commit([8, 9, 10, 11, 12].map((n) => naming(n, n === 8 ? [numbered(7)] : [])));
      other.close();
    });
    expect(await blobOf(store, numbered(7))).not.toBeNull();
  });

  it("should see what is committed between its last look and its turn to write", async () => {
    await store.append(naming(1, [], [[numbered(1), payload]]));
    db.exec("BEGIN IMMEDIATE");
    const insert =
      "INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, 0, 'id', 'started', ?, '{}')";
    db.prepare(insert).run(stream(2), `{"names":"${numbered(1)}"}`);
    let steps = 0;
    const collected = await store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 }, () => {
      // The second step is the first of the sweep: behind it comes the attempt to write, and only then this.
      if (++steps === 2) setImmediate(() => db.exec("COMMIT"));
    });
    expect(collected.removed).toBe(0);
    expect(await blobOf(store, numbered(1))).not.toBeNull();
  });

  it("should count without a right to write", async () => {
    await store.append(naming(1, [], [[numbered(1), payload]]));
    const reader = await openSqliteStore(path, { mode: "read" });
    const found = await reader.collectGarbage({ dryRun: true, now: 0, graceMs: 0 });
    expect(found).toMatchObject({ kept: 0, marked: 0 });
    expect(found.removed).toBeGreaterThan(60);
    expect(found.removedBytes).toBeGreaterThan(50_000);
    const refused = reader.collectGarbage({ dryRun: false, now: 0, graceMs: 0 });
    await expect(refused).rejects.toMatchObject({ code: "HL_STORE_READONLY" });
    await reader.close();
    expect(await store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 })).toEqual(found);
  });

  it("should wait for a lock without holding up the event loop, and then give up", async () => {
    await store.append(naming(1, [], [[numbered(1), payload]]));
    const impatient = await openSqliteStore(path, { mode: "write", busyTimeoutMs: 100 });
    db.exec("BEGIN IMMEDIATE");
    const refused = impatient.collectGarbage({ dryRun: false, now: 0, graceMs: 0 });
    await expect(refused).rejects.toMatchObject({ code: "HL_STORE_LOCKED" });
    const patient = store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 });
    setTimeout(() => db.exec("COMMIT"), 20);
    expect((await patient).removed).toBeGreaterThan(60);
    await impatient.close();
  });

  it("should end when the store is closed", async () => {
    for (let n = 0; n < 30; n++) await store.append(naming(n, [], [[numbered(n), conversation(messages.slice(n))]]));
    const collecting = store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 });
    const refused = expect(collecting).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    await store.close();
    await refused;
  });

  it("should take for a reference what is none, rather than the reverse", async () => {
    const data = `{"reason":"mentions ${numbered(1)}, no more"}`;
    const blobs = [{ digest: numbered(1), bytes: payload }];
    await store.append(opening(1, 1, { events: [draft(0, { data })], blobs }));
    db.prepare("UPDATE events SET data = CAST(data AS BLOB)").run();
    await collectAll(store);
    expect(await blobOf(store, numbered(1))).not.toBeNull();
  });

  it("should keep what a node refers to, also where somebody else's payload has the bytes of that node in it", async () => {
    const node = cut(payload).chunks.find(({ bytes }) => isNode(bytes))?.bytes ?? Buffer.alloc(0);
    const filler = createHash("shake256", { outputLength: 60_000 }).update("filler").digest();
    const [piece] = cut(filler).chunks;
    const forged = Buffer.concat([piece?.bytes ?? filler, node]);
    expect(cut(forged).chunks.map(({ bytes }) => Buffer.compare(bytes, node))).toContain(0);
    await store.append(naming(1, [numbered(1)], [[numbered(1), forged]]));
    await store.append(naming(2, [numbered(2)], [[numbered(2), payload]]));
    await collectAll(store);
    expect(await store.readBlob(numbered(2))).toMatchObject({ kind: "found" });
  });

  it("should keep what a payload shares with one of which a node is missing", async () => {
    const shorter = conversation(messages.slice(0, 45));
    const shared = new Set(cut(shorter).chunks.map(({ hash }) => hash));
    await store.append(naming(1, [numbered(1)], [[numbered(1), payload]]));
    await store.append(naming(2, [numbered(2)], [[numbered(2), shorter]]));
    const own = cut(payload).chunks.filter(({ hash, bytes }) => isNode(bytes) && !shared.has(hash));
    for (const { hash } of own) db.prepare("DELETE FROM chunks WHERE digest = ?").run(Buffer.from(hash, "hex"));
    expect(own.length).toBeGreaterThan(0);
    await collectAll(store);
    expect(await store.readBlob(numbered(2))).toMatchObject({ kind: "found" });
  });

  it("should keep what a node refers to that was missing when it was first named", async () => {
    await store.append(naming(1, [numbered(1)], [[numbered(1), payload]]));
    db.prepare("DELETE FROM chunks").run();
    const stray = conversation([message("stray", 30_000)]);
    await store.append(naming(3, [numbered(3)], [[numbered(3), stray]]));
    removeStream(3);
    const appender = new Appender(db, { path, busyTimeoutMs: 0, resumed: false });
    let appended = false;
    await store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 }, (events) => {
      if (events === 0 || appended) return;
      appended = true;
      appender.commit([naming(2, [numbered(2)], [[numbered(2), payload]])]);
    });
    expect(await store.readBlob(numbered(2))).toMatchObject({ kind: "found" });
  });

  it("should keep what is referred to while streams are removed and two processes collect", async () => {
    const other = await openSqliteStore(path, { mode: "write" });
    const payloadOf = (n: number) => conversation(messages.slice(n % 11, 15 + ((n * 17) % 40)));
    const named = new Map<number, number>();
    const garbage = new Set<number>();
    let streams = 0;
    const steps = fc.array(
      fc.record({
        payload: fc.nat(15),
        remove: fc.nat(30),
        behind: fc.constantFrom("nothing", "collect", "collect twice"),
      }),
      { minLength: 1, maxLength: 20 },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (sequence) => {
        const running: Promise<unknown>[] = [];
        for (const { payload: n, remove, behind } of sequence) {
          const writer = n % 2 === 0 ? store : other;
          await writer.append(naming(++streams, [numbered(n)], [[numbered(n), payloadOf(n)]]));
          named.set(streams, n);
          garbage.delete(n);
          if (named.has(streams - remove)) {
            removeStream(streams - remove);
            garbage.add(named.get(streams - remove) ?? -1);
            named.delete(streams - remove);
          }
          if (behind !== "nothing") running.push(collectAll(store));
          if (behind === "collect twice") running.push(collectAll(other));
        }
        await Promise.all(running);
        await collectAll(store);
        const live = new Set(named.values());
        for (const n of live) {
          const bytes = (await blobOf(store, numbered(n))) ?? Buffer.alloc(0);
          expect(Buffer.compare(bytes, payloadOf(n))).toBe(0);
        }
        for (const n of garbage) {
          if (!live.has(n)) expect(await store.readBlob(numbered(n))).toEqual({ kind: "missing" });
        }
      }),
      { numRuns: 15 },
    );
    await other.close();
  });
});
