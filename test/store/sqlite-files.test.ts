import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { StoreChild } from "../support/store-child.js";
import { chainsOf, collect, expectedChain, opening, read, stream, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "private", "ledger.db");
});
afterEach(() => folder.remove());

/** A closed ledger with as many streams. */
async function ledger(streams: number): Promise<void> {
  const store = await openSqliteStore(path, { mode: "write" });
  await Promise.all(Array.from({ length: streams }, (_, n) => store.append(opening(n, 3, { session: "s" }))));
  await store.close();
}

/** Runs `change` on the closed ledger behind our back. */
function tamper(change: (db: Database.Database) => void): void {
  const db = new Database(path);
  change(db);
  db.close();
}

describe("the files of a ledger", () => {
  it("should be private, whatever the umask", async () => {
    const before = process.umask(0);
    try {
      const store = await openSqliteStore(path, { mode: "write" });
      await store.append(opening(1));
      const writers = `${path}.writers`;
      expect(readdirSync(dirname(path)).sort()).toEqual(
        ["", "-shm", "-wal", ".writers"].map((end) => `ledger.db${end}`),
      );
      expect(readdirSync(writers)).toEqual([`${store.writer}.lock`]);
      const mode = (file: string) => statSync(file).mode & 0o777;
      expect([dirname(path), writers].map(mode)).toEqual([0o700, 0o700]);
      const files = [path, `${path}-wal`, `${path}-shm`, join(writers, `${store.writer}.lock`)];
      expect(files.map(mode)).toEqual([0o600, 0o600, 0o600, 0o600]);
      await store.close();
      expect(readdirSync(dirname(path)).sort()).toEqual(["ledger.db", "ledger.db.writers"]);
      expect(readdirSync(writers)).toEqual([]);
    } finally {
      process.umask(before);
    }
  });

  it("should leave a folder that was there as it was", async () => {
    mkdirSync(dirname(path), { mode: 0o755 });
    chmodSync(dirname(path), 0o755);
    await ledger(1);
    expect(statSync(dirname(path)).mode & 0o777).toBe(0o755);
  });

  it("should say what they are", async () => {
    await ledger(1);
    const db = new Database(path, { readonly: true });
    expect(db.pragma("application_id", { simple: true })).toBe(0x486b4c67);
    expect(db.pragma("user_version", { simple: true })).toBe(2);
    expect(db.pragma("journal_mode", { simple: true })).toBe("wal");
    const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").pluck().all();
    expect(tables).toEqual(["chunks", "deliveries", "events", "heads", "payloads"]);
    db.close();
  });

  it("should not be created by a reader", async () => {
    await expect(openSqliteStore(path, { mode: "read" })).rejects.toMatchObject({ code: "HL_STORE_MISSING" });
    expect(readdirSync(folder.path)).toEqual([]);
  });

  it("should be found behind symbolic links", async () => {
    await ledger(2);
    const link = join(folder.path, "link.db");
    symlinkSync(path, link);
    const [one, other] = await Promise.all([path, link].map((at) => openSqliteStore(at, { mode: "write" })));
    expect(await other!.writerState(one!.writer)).toBe("alive");
    expect(await collect(other!.list({ order: "oldest" }))).toHaveLength(2);
    await Promise.all([one!.close(), other!.close()]);
    expect(readdirSync(folder.path).sort()).toEqual(["link.db", "private"]);
  });

  it("should not be created behind a link to nothing", async () => {
    symlinkSync(join(folder.path, "nowhere.db"), join(folder.path, "link.db"));
    const refused = openSqliteStore(join(folder.path, "link.db"), { mode: "write" });
    await expect(refused).rejects.toMatchObject({ code: "HL_STORE_MISSING" });
  });

  it("should outlive the store", async () => {
    await ledger(3);
    const store = await openSqliteStore(path, { mode: "read" });
    const { events, head } = await read(store, 1);
    expect(chainsOf(events)).toEqual(expectedChain(events));
    expect(head).toMatchObject({ revision: 2, session: "s" });
    await expect(store.append(opening(9))).rejects.toMatchObject({ code: "HL_STORE_READONLY" });
    await store.close();
  });
});

describe("a file that is not ours", () => {
  const foreign: readonly [what: string, make: (at: string) => void][] = [
    ["an empty file", (at) => writeFileSync(at, "")],
    ["a text", (at) => writeFileSync(at, "not a database\n".repeat(100))],
    ["the first bytes of a database", (at) => writeFileSync(at, "SQLite format 3\0")],
    [
      "another program's database",
      (at) => new Database(at).exec("CREATE TABLE t (x); INSERT INTO t VALUES (1)").close(),
    ],
    [
      "another program's database with a write-ahead log",
      (at) => {
        const db = new Database(at);
        db.pragma("journal_mode = WAL");
        db.pragma("application_id = 7");
        db.exec("CREATE TABLE t (x)");
        cpSync(at, `${at}.copy`);
        db.close();
      },
    ],
    ["a folder", (at) => mkdirSync(at)],
  ];

  it.each(foreign)("should be refused and left as it is: %s", async (_, make) => {
    mkdirSync(dirname(path));
    make(path);
    const before = snapshot();
    for (const mode of ["read", "write"] as const) {
      await expect(openSqliteStore(path, { mode })).rejects.toMatchObject({ code: "HL_STORE_FOREIGN" });
    }
    expect(snapshot()).toEqual(before);
  });

  function snapshot(): [string, string][] {
    return readdirSync(dirname(path)).map((name) => {
      const file = join(dirname(path), name);
      return [name, statSync(file).isFile() ? readFileSync(file).toString("hex") : "folder"];
    });
  }
});

describe("a ledger that is damaged or newer", () => {
  it("should be refused when its format is newer", async () => {
    await ledger(1);
    tamper((db) => db.pragma("user_version = 3"));
    for (const mode of ["read", "write"] as const) {
      await expect(openSqliteStore(path, { mode })).rejects.toMatchObject({ code: "HL_STORE_VERSION" });
    }
  });

  it("should be refused when it was cut short", async () => {
    await ledger(50);
    truncateSync(path, 4096 * 3);
    for (const mode of ["read", "write"] as const) {
      await expect(openSqliteStore(path, { mode })).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
    }
  });

  it("should say so when a page is found to be damaged", async () => {
    await ledger(200);
    const bytes = readFileSync(path);
    writeFileSync(path, bytes.fill(0xff, 4096 * 20, 4096 * 21));
    const store = await openSqliteStore(path, { mode: "read" });
    await expect(collect(store.readStreams({ order: "oldest" }))).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
    await store.close();
  });

  it("should hand over logs and heads that do not fit, for the verifier to judge", async () => {
    await ledger(4);
    tamper((db) => {
      db.prepare("DELETE FROM events WHERE stream = ?").run(stream(0));
      db.prepare("DELETE FROM events WHERE stream = ? AND revision = 2").run(stream(1));
      db.prepare("DELETE FROM heads WHERE stream = ?").run(stream(3));
      db.prepare("UPDATE events SET data = x'ff00', revision = 'two' WHERE stream = ? AND revision = 2").run(stream(2));
    });
    const store = await openSqliteStore(path, { mode: "read" });
    for (const order of ["oldest", "newest"] as const) {
      const streams = await collect(store.readStreams({ order }));
      const found = streams.map(({ head, events }) => [head?.revision, events.map(({ revision }) => revision)]);
      const expected = [
        [2, []],
        [2, [0, 1]],
        [2, [0, 1, -1]],
        [undefined, [0, 1, 2]],
      ];
      expect(found).toEqual(order === "oldest" ? expected : expected.reverse());
    }
    expect((await read(store, 2)).events[2]?.data).toEqual(expect.any(String));
    await store.close();
  });

  it("should take no event behind a lost head", async () => {
    await ledger(1);
    tamper((db) => db.prepare("DELETE FROM heads").run());
    const store = await openSqliteStore(path, { mode: "write" });
    const lost = opening(0, 1, { events: [{ ...opening(0).events[0]!, id: "other" }] });
    await expect(store.append(lost)).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
    await store.append(opening(1));
    await store.close();
  });
});

describe("a ledger that cannot be written", () => {
  /** As root nothing is read-only, so the other process runs as nobody. */
  const other = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};

  async function locked(): Promise<void> {
    await ledger(3);
    chmodSync(folder.path, 0o755);
    chmodSync(path, 0o444);
    chmodSync(dirname(path), 0o555);
  }

  it("should be read all the same", async () => {
    await locked();
    expect(await new StoreChild(["open", path, "read"], other).end()).toEqual(["streams 3"]);
    expect(readdirSync(dirname(path)).sort()).toEqual(["ledger.db", "ledger.db.writers"]);
    chmodSync(dirname(path), 0o755);
  });

  it("should be refused to a writer", async () => {
    await locked();
    expect(await new StoreChild(["open", path, "write"], other).end()).toEqual(["HL_STORE_READONLY"]);
    chmodSync(path, 0o666);
    expect(await new StoreChild(["open", path, "write"], other).end()).toEqual(["HL_STORE_READONLY"]);
    const missing = join(dirname(path), "other.db");
    expect(await new StoreChild(["open", missing, "write"], other).end()).toEqual(["HL_STORE_READONLY"]);
    chmodSync(dirname(path), 0o755);
  });

  it("should not be read past events that wait in its write-ahead log", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    await store.append(opening(1));
    const copy = join(folder.path, "copy");
    cpSync(dirname(path), copy, { recursive: true, filter: (file) => !file.endsWith("-shm") });
    await store.close();
    for (const file of readdirSync(copy)) chmodSync(join(copy, file), 0o755);
    chmodSync(folder.path, 0o755);
    chmodSync(copy, 0o555);
    const [said] = await new StoreChild(["open", join(copy, "ledger.db"), "read"], other).end();
    expect(said).toBe("HL_STORE_READONLY");
    chmodSync(copy, 0o755);
  });
});
