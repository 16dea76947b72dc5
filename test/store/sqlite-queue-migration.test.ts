import { copyFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { delivery, queueIn } from "../support/deliveries.js";
import { sqliteOf, told } from "../support/golden.js";
import { alterSqlite } from "../support/ledgers.js";
import { StoreChild } from "../support/store-child.js";
import { opening, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

/** A ledger of format 1, as a release wrote it. */
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  copyFileSync(sqliteOf("0.1.0"), path);
});
afterEach(() => folder.remove());

function versionOf(): unknown {
  const db = new Database(path, { readonly: true });
  try {
    return db.pragma("user_version", { simple: true });
  } finally {
    db.close();
  }
}

describe("a ledger of format 1", () => {
  it("should be read as it is, without a queue", async () => {
    const before = readFileSync(path);
    const store = await openSqliteStore(path, { mode: "read" });
    expect(await queueIn(store).deliveries({})).toEqual([]);
    await store.close();
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(versionOf()).toBe(1);
  });

  it("should be brought up to date by its first writer, and tell the same", async () => {
    const reader = await openSqliteStore(path, { mode: "read" });
    const before = await told(reader);
    const store = await openSqliteStore(path, { mode: "write" });
    expect(versionOf()).toBe(2);
    await queueIn(store).put([delivery(1)], true);
    // Whoever opened it before sees it, too.
    expect(await queueIn(reader).deliveries({})).toEqual([delivery(1)]);
    expect(await told(store)).toEqual(before);
    await Promise.all([store.close(), reader.close()]);
    const again = await openSqliteStore(path, { mode: "write" });
    expect(await queueIn(again).deliveries({})).toEqual([delivery(1)]);
    await again.close();
  });

  it("should have the tables that a new one has", async () => {
    await (await openSqliteStore(path, { mode: "write" })).close();
    const fresh = join(folder.path, "fresh.db");
    await (await openSqliteStore(fresh, { mode: "write" })).close();
    const [migrated, made] = [path, fresh].map((at) => {
      const db = new Database(at, { readonly: true });
      const rows = db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
      db.close();
      return rows;
    });
    expect(migrated).toEqual(made);
  });

  it("should be brought up to date once, whoever comes first", async () => {
    const children = [1, 2, 3].map((n) => new StoreChild(["deliver", path, String(n * 1000), "3"]));
    for (const child of children) expect((await child.end()).at(-1)).toBe("closed");
    const store = await openSqliteStore(path, { mode: "read" });
    expect((await queueIn(store).deliveries({})).map(({ state }) => state)).toEqual(Array(9).fill("sent"));
    await store.close();
    expect(readdirSync(folder.path).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("should keep its queue where a build of format 1 puts the version back", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    await queueIn(store).put([delivery(1)], true);
    alterSqlite(path, (db) => db.pragma("user_version = 1"));
    await queueIn(store).put([delivery(1)], true);
    const reader = await openSqliteStore(path, { mode: "read" });
    expect(await queueIn(reader).deliveries({})).toEqual([delivery(1)]);
    await reader.close();
    await store.close();
    const next = await openSqliteStore(path, { mode: "write" });
    expect(versionOf()).toBe(2);
    expect(await queueIn(next).deliveries({})).toEqual([delivery(1)]);
    await next.close();
  });

  it("should stay as it is while somebody else holds its lock", async () => {
    const other = new Database(path);
    other.exec("BEGIN IMMEDIATE");
    const refused = openSqliteStore(path, { mode: "write", busyTimeoutMs: 20 });
    await expect(refused).rejects.toMatchObject({ code: "HL_STORE_LOCKED" });
    const patient = openSqliteStore(path, { mode: "write" });
    await new Promise((resolve) => setImmediate(resolve));
    other.exec("ROLLBACK");
    expect(other.pragma("user_version", { simple: true })).toBe(1);
    other.close();
    const store = await patient;
    expect(versionOf()).toBe(2);
    await store.append(opening(1));
    await store.close();
  });
});
