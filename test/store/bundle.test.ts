import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openBundle } from "#src/store/bundle/store.js";
import { openStore } from "#src/store/open.js";
import type { EventStore, StreamFilter } from "#src/store/port.js";
import { intoSqlite } from "../support/ledgers.js";
import { collect, opening, temporaryFolder } from "../support/store-fixtures.js";
import { alterBundle, exportTo, failingAt, memoryOf, randomRows, verified, withBundle } from "../support/transfers.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let ledger: EventStore;

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder.path, "evidence.hlb");
  ledger = await memoryOf(await randomRows(9, 21));
});
afterEach(() => folder.remove());

describe("a bundle as a store", () => {
  it("should hand over what the ledger does, in every order", async () => {
    await exportTo(path, ledger);
    const store = await openStore(`bundle:${path}`, { mode: "read" });
    const all = await collect(ledger.list({ order: "oldest" }));
    const after = all[4]!.stream;
    const filters: readonly StreamFilter[] = [
      { order: "oldest" },
      { order: "newest" },
      { order: "oldest", session: "session 0" },
      { order: "newest", session: null },
      { order: "oldest", session: "nobody's" },
      { order: "oldest", after },
      { order: "newest", after },
      { order: "newest", prefix: after.slice("hookdispatch-".length) },
    ];
    for (const filter of filters) {
      const [heads, streams] = [await collect(store.list(filter)), await collect(store.readStreams(filter))];
      const expected = await collect(ledger.list(filter));
      expect(heads).toEqual(expected.map((head, n) => ({ ...head, position: heads[n]?.position })));
      expect(streams.map(({ head }) => head)).toEqual(heads);
      for (const { head, events } of streams) expect(events[0]?.position).toBe(head?.position);
    }
    expect(await store.readStream("hookdispatch-nobody")).toBeNull();
    await store.close();
  });

  it("should read all events in an order of its own, from any place", async () => {
    await exportTo(path, ledger);
    await withBundle(path, async (bundle) => {
      const events = await collect(bundle.readAll({ after: 0 }));
      expect(events).toHaveLength((await collect(ledger.readAll({ after: 0 }))).length);
      for (const [place, { position }] of events.entries()) {
        expect(await collect(bundle.readAll({ after: position }))).toEqual(events.slice(place + 1));
      }
      const abort = new AbortController();
      const seen = [];
      for await (const page of bundle.subscribe({ after: 0, signal: abort.signal })) {
        seen.push(...page);
        if (seen.length === events.length) abort.abort();
      }
      expect(seen).toEqual(events);
      const waiting = bundle.subscribe({ after: events.at(-1)!.position, signal: new AbortController().signal }).next();
      const refused = expect(waiting).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
      await bundle.close();
      await refused;
    });
  });

  it("should go on behind streams of which nothing can be read, however many they are", async () => {
    await exportTo(path, await memoryOf(await randomRows(100, 3)));
    const all = await withBundle(path, (store) => collect(store.readAll({ after: 0 })));
    const last = all.at(-1);
    alterBundle(path, (db) => db.prepare("UPDATE streams SET events = '[[]]' WHERE stream <> ?").run(last?.stream));
    const left = await withBundle(path, (store) => collect(store.readAll({ after: 0 })));
    expect(left).toEqual(all.filter(({ stream }) => stream === last?.stream));
  });

  it("should not be written, and know nothing of its writers", async () => {
    await exportTo(path, ledger);
    await expect(openStore(`bundle:${path}`, { mode: "write" })).rejects.toMatchObject({ code: "HL_STORE_READONLY" });
    await withBundle(path, async (bundle) => {
      await expect(bundle.append()).rejects.toMatchObject({ code: "HL_STORE_READONLY" });
      expect(await bundle.writerState(ledger.writer)).toBe("unknown");
      expect(await bundle.writerState(bundle.writer)).toBe("alive");
      await bundle.close();
      await expect(bundle.readStream(opening(1).stream)).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    });
  });

  it.each(["bundle:", "bundle:a\0b", "bundle: a"])("should have a path: %j", async (url) => {
    await expect(openStore(url, { mode: "read" })).rejects.toMatchObject({ code: "HL_STORE_URL" });
  });
});

describe("a bundle's file", () => {
  it("should be its owner's alone, and alone", async () => {
    await exportTo(path, ledger);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder.path)).toEqual(["evidence.hlb"]);
    await withBundle(path, async (bundle) => collect(bundle.list({ order: "oldest" })));
    expect(readdirSync(folder.path)).toEqual(["evidence.hlb"]);
  });

  it("should be read where nothing can be written", async () => {
    await exportTo(path, ledger);
    chmodSync(path, 0o400);
    chmodSync(folder.path, 0o500);
    await withBundle(path, async (bundle) => expect(await collect(bundle.list({ order: "oldest" }))).toHaveLength(9));
    chmodSync(folder.path, 0o700);
  });

  it.each([
    ["esdb://admin:pass/word@host:2113?tls=true&userKeyFile=/home/me/key", "esdb://host:2113"],
    ["esdb+discover://one:2113,two:2113", "esdb+discover://one:2113,two:2113"],
    ["esdb://admin:p@ss/w?rd@host:2113", "esdb:"],
    ["sqlite:a ledger@home?.db", "sqlite:a ledger@home?.db"],
  ])("should say what it is and where it comes from, but no secret of it: %s", async (url, source) => {
    const server = new Proxy(ledger, {
      get: (target, key) => {
        if (key === "url") return url;
        const value: unknown = Reflect.get(target, key);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const { bundle } = await exportTo(path, server, { session: "session 0" });
    expect(bundle).toMatchObject({
      state: "finished",
      selection: { session: "session 0" },
      source,
    });
    expect(bundle.createdAt).toBe("2026-11-30T12:00:00.000Z");
    await withBundle(path, async ({ description }) => expect(description).toEqual(bundle));
  });

  it("should say that it is unfinished, and be read all the same", async () => {
    await exportTo(path, failingAt(ledger, 5)).catch(() => {});
    await withBundle(path, async (bundle) => {
      expect(bundle.description).toMatchObject({ state: "new", digest: null });
      expect(await collect(bundle.list({ order: "oldest" }))).toHaveLength(5);
    });
  });

  it("should have one digest, whatever it was made by and in whatever order", async () => {
    const other = join(folder.path, "other.hlb");
    await exportTo(other, failingAt(ledger, 3)).catch(() => {});
    const [one, two] = [await exportTo(path, ledger), await exportTo(other, ledger)];
    expect(two.bundle.digest).toBe(one.bundle.digest);
    expect(one.bundle.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  });
});

describe("a file that is no bundle", () => {
  const FOREIGN: Readonly<Record<string, (path: string) => void | Promise<void>>> = {
    "an empty file": (file) => writeFileSync(file, ""),
    text: (file) => writeFileSync(file, "SQLite format 3 is what this is not"),
    "another database": (file) => {
      const db = new Database(file);
      db.exec("CREATE TABLE streams (x)");
      db.close();
    },
    "a ledger": async (file) => intoSqlite(file, await randomRows(2, 1)),
    "a bundle that asks for a write-ahead log": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.pragma("journal_mode = WAL"));
    },
    "a bundle with a trigger": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("CREATE TRIGGER t AFTER INSERT ON streams BEGIN DELETE FROM payloads; END"));
    },
    "a bundle with a view": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("CREATE VIEW v AS SELECT 1"));
    },
    "a bundle with a view for a table": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("DROP TABLE chunks; CREATE VIEW chunks AS SELECT '' AS hash, x'' AS bytes"));
    },
    "a bundle with one more table": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("CREATE TABLE zebra (x)"));
    },
    "a bundle with one more column": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("ALTER TABLE streams ADD COLUMN x GENERATED ALWAYS AS (hex(events))"));
    },
    "a bundle without an index": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("DROP INDEX streams_by_session"));
    },
    "a bundle that describes itself otherwise": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec(`UPDATE description SET text = '{"__proto__":1}'`));
    },
    "a bundle with two descriptions": async (file) => {
      await exportTo(file, ledger);
      alterBundle(file, (db) => db.exec("INSERT INTO description SELECT text FROM description"));
    },
  };

  it.each(Object.entries(FOREIGN))("should be refused and left byte-identical: %s", async (_, make) => {
    await make(path);
    const before = readFileSync(path);
    const files = readdirSync(folder.path);
    expect(() => openBundle(path)).toThrow(expect.objectContaining({ code: "HL_BUNDLE" }));
    await expect(exportTo(path, ledger)).rejects.toMatchObject({ code: "HL_BUNDLE" });
    expect(readFileSync(path).equals(before)).toBe(true);
    expect(readdirSync(folder.path)).toEqual(files);
  });

  it("should be refused where it is a folder, or a newer bundle", async () => {
    expect(() => openBundle(folder.path)).toThrow(expect.objectContaining({ code: "HL_BUNDLE" }));
    await exportTo(path, ledger);
    alterBundle(path, (db) => db.pragma("user_version = 2"));
    expect(() => openBundle(path)).toThrow(expect.objectContaining({ code: "HL_STORE_VERSION" }));
    await expect(exportTo(path, ledger)).rejects.toMatchObject({ code: "HL_STORE_VERSION" });
  });

  it("should be missed where it is not there, and made nowhere else", async () => {
    expect(() => openBundle(path)).toThrow(expect.objectContaining({ code: "HL_STORE_MISSING" }));
    const nowhere = join(folder.path, "no", "where.hlb");
    await expect(exportTo(nowhere, ledger)).rejects.toMatchObject({ code: "HL_USAGE" });
    expect(existsSync(join(folder.path, "no"))).toBe(false);
  });

  it("should be followed where it is a link", async () => {
    await exportTo(path, ledger);
    const link = join(folder.path, "link.hlb");
    symlinkSync(path, link);
    expect(await exportTo(link, ledger)).toMatchObject({ kept: 9 });
  });

  it("should say what to do where an export was interrupted in the middle of a page", async () => {
    await exportTo(path, failingAt(ledger, 3)).catch(() => {});
    const writing = new Database(path);
    writing.pragma("cache_size = 1");
    writing.exec("BEGIN");
    writing.exec("UPDATE streams SET events = events || printf('%.*c', 200000, 'x')");
    const copy = join(folder.path, "copy.hlb");
    for (const end of ["", "-journal"]) copyFileSync(`${path}${end}`, `${copy}${end}`);
    writing.close();
    expect(() => openBundle(copy)).toThrow(expect.objectContaining({ code: "HL_BUNDLE" }));
    expect(await exportTo(copy, ledger)).toMatchObject({ added: 6, kept: 3, bundle: { state: "finished" } });
    await withBundle(copy, async (bundle) => expect(await verified(bundle)).toEqual({ checked: 9, diverged: [] }));
  });
});
