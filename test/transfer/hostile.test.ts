/** Bundles from people who wish us ill: nothing of them ends the process, and nothing that was changed gets into a ledger. */
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { EventType } from "#src/core/events.js";
import { HookledgerError } from "#src/errors.js";
import { openBundle } from "#src/store/bundle/store.js";
import { openMemoryStore } from "#src/store/memory.js";
import { chainAfter } from "#src/store/seal.js";
import { importLedger } from "#src/transfer/import.js";
import { collect, temporaryFolder } from "../support/store-fixtures.js";
import {
  alterBundle,
  contentsOf,
  exportTo,
  idOf,
  importFrom,
  memoryOf,
  randomRows,
  verified,
  withBundle,
} from "../support/transfers.js";

let folder: ReturnType<typeof temporaryFolder>;
let good: string;
let original: Awaited<ReturnType<typeof contentsOf>>;

beforeAll(async () => {
  folder = temporaryFolder();
  good = join(folder.path, "good.hlb");
  const ledger = await memoryOf(await randomRows(12, 99));
  await exportTo(good, ledger);
  original = await contentsOf(ledger);
});
afterAll(() => folder.remove());

let copies = 0;
function copied(): string {
  const path = join(folder.path, `copy-${++copies}.hlb`);
  copyFileSync(good, path);
  return path;
}

/** Does everything with the bundle that can be done. Throws what is no error of ours, and where something changed was let through. */
async function use(path: string): Promise<"refused" | "found out" | "as it was"> {
  let bundle: ReturnType<typeof openBundle>;
  try {
    bundle = openBundle(path);
  } catch (error) {
    expect(error).toBeInstanceOf(HookledgerError);
    return "refused";
  }
  const target = openMemoryStore();
  let found = false;
  const attempt = async (work: () => Promise<boolean>) => {
    try {
      found = (await work()) || found;
    } catch (error) {
      if (!(error instanceof HookledgerError) || error.code === "HL_INTERNAL") throw error;
      found = true;
    }
  };
  await attempt(async () => bundle.sum().digest !== bundle.description.digest);
  await attempt(async () => (await verified(bundle)).diverged.length > 0);
  await attempt(async () => (await collect(bundle.list({ order: "newest" }))).length !== 12);
  await attempt(async () => (await collect(bundle.readAll({ after: 0 }))).length === 0);
  await attempt(async () => {
    const { refused, missing, damaged } = await importLedger(bundle, target);
    return refused.length + missing + damaged > 0;
  });
  await bundle.close();
  const arrived = await contentsOf(target);
  for (const stream of arrived.streams) expect(original.streams).toContainEqual(stream);
  for (const [digest, hash] of arrived.blobs) expect(original.blobs.get(digest)).toBe(hash);
  if (!found) expect(arrived).toEqual(original);
  return found ? "found out" : "as it was";
}

describe("a bundle with bytes that were changed", () => {
  it("should be refused, found out, or be as it was", async () => {
    const bytes = readFileSync(good);
    const path = join(folder.path, "flipped.hlb");
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ at: fc.nat(bytes.length - 1), to: fc.integer({ min: 0, max: 255 }) }), {
          minLength: 1,
          maxLength: 6,
        }),
        async (changes) => {
          const copy = Buffer.from(bytes);
          for (const { at, to } of changes) copy[at] = to;
          writeFileSync(path, copy);
          const came = await use(path);
          seen.set(came, (seen.get(came) ?? 0) + 1);
        },
      ),
      { numRuns: 250 },
    );
    expect(seen.get("found out")).toBeGreaterThan(20);
  });

  it("should be refused or found out where it was cut off", async () => {
    const bytes = readFileSync(good);
    const path = join(folder.path, "cut.hlb");
    for (let part = 1; part < 16; part++) {
      writeFileSync(path, bytes.subarray(0, (bytes.length * part) / 16));
      expect(await use(path)).not.toBe("as it was");
    }
  });

  it("should not lead anybody in circles", async () => {
    const bytes = readFileSync(good);
    const path = join(folder.path, "circles.hlb");
    const pageSize = bytes.readUInt16BE(16);
    // Every four bytes that name a page, aimed at another.
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length / pageSize - 1), fc.nat(), fc.nat(), async (page, word, aim) => {
        const copy = Buffer.from(bytes);
        copy.writeUInt32BE((aim % (bytes.length / pageSize)) + 1, page * pageSize + (word % (pageSize / 4)) * 4);
        writeFileSync(path, copy);
        await use(path);
      }),
      { numRuns: 150 },
    );
  });
});

const VALUES = [null, 0, -1, 5, 2 ** 53, 0.5, "", "x", "hookdispatch-", "[]", "[[1,2,3,4]]", "[".repeat(300_000)];
const COLUMNS = {
  streams: ["place", "stream", "session", "revision", "chain", "events"],
  payloads: ["digest", "root"],
  chunks: ["hash", "bytes"],
  description: ["text"],
} as const;

describe("a bundle with a column that holds what we never write", () => {
  const cases = Object.entries(COLUMNS).flatMap(([table, columns]) =>
    columns.map((column) => [table, column] as const),
  );

  it.each(cases)("should be refused or found out, or not matter: %s.%s", async (table, column) => {
    for (const value of [...VALUES, Buffer.from("x"), Buffer.alloc(0)]) {
      const path = copied();
      alterBundle(path, (db) => {
        db.pragma("ignore_check_constraints = ON");
        const rowid = table === "payloads" ? "digest" : "rowid";
        try {
          db.prepare(
            `UPDATE ${table} SET ${column} = ? WHERE ${rowid} = (SELECT ${rowid} FROM ${table} LIMIT 1 OFFSET ?)`,
          ).run(value, table === "description" ? 0 : 1);
        } catch {
          // SQLite keeps its own keys.
        }
      });
      await use(path);
    }
  });
});

describe("a dispatch that was changed in its bundle", () => {
  const stream = () => original.streams[3]!.stream;

  /** As somebody would who knows the format: the text of one row. */
  function changed(change: (events: string[][]) => string[][], head: { revision?: number } = {}): string {
    const path = copied();
    alterBundle(path, (db) => {
      const { events } = db.prepare("SELECT events FROM streams WHERE stream = ?").get(stream()) as { events: string };
      db.prepare("UPDATE streams SET events = ?, revision = coalesce(?, revision) WHERE stream = ?").run(
        JSON.stringify(change(JSON.parse(events))),
        head.revision ?? null,
        stream(),
      );
    });
    return path;
  }

  const CHANGES: Readonly<Record<string, (events: string[][]) => string[][]>> = {
    "the data of an event": (events) =>
      events.map(([id, type, data, metadata], n) =>
        n === 0
          ? [id!, type!, data!.replace('"flags":[]', '"flags":["redacted"]'), metadata!]
          : [id!, type!, data!, metadata!],
      ),
    "its metadata": (events) =>
      events.map(([id, type, data, metadata]) => [id!, type!, data!, metadata!.replace("0.1.0", "9.9.9")]),
    "an id": (events) => events.map(([id, ...rest], n) => [n === 0 ? id!.replace(/.$/, "f") : id!, ...rest]),
    "its last event": (events) => events.slice(0, -1),
    "an event in the middle": (events) => events.filter((_, n) => n !== 1),
    "the order of two events": ([one, two, ...rest]) => [two!, one!, ...rest],
    "a payload that an event carries": (events) =>
      events.map(([id, type, data, metadata]) => [
        id!,
        type!,
        data!,
        metadata!.replace(/("payloads":\{"[^"]+":")..../, "$1AAAA"),
      ]),
    "payloads beside those that an event names": (events) =>
      events.map(([id, type, data, metadata]) => [id!, type!, data!, metadata!.replace(/\}$/, ',"payloads":{"a":1}}')]),
  };

  it.each(Object.entries(CHANGES))("should be refused by import, and named by both: %s", async (_, change) => {
    const path = changed(change);
    const target = openMemoryStore();
    const { added, refused } = await importFrom(path, target);
    expect({ added, refused }).toMatchObject({
      added: 11,
      refused: [{ dispatchId: idOf(stream()), code: "HL_BUNDLE" }],
    });
    expect(await target.readStream(stream())).toBeNull();
    const { diverged } = await withBundle(path, verified);
    expect(diverged).toMatchObject([{ dispatchId: idOf(stream()) }]);
  });

  it("should be refused where its head was made to fit what it was changed to", async () => {
    const path = changed(CHANGES["the data of an event"]!);
    alterBundle(path, (db) => {
      const row = db.prepare("SELECT events FROM streams WHERE stream = ?").get(stream()) as { events: string };
      let chain = "";
      for (const [revision, [, type = "", data = "", metadata = ""]] of (
        JSON.parse(row.events) as string[][]
      ).entries()) {
        const covered = `${metadata.slice(0, metadata.indexOf(',"chain":"'))}}`;
        chain = chainAfter(chain, revision, { type: type as EventType, data, metadata: covered });
      }
      db.prepare("UPDATE streams SET chain = ? WHERE stream = ?").run(chain, stream());
    });
    expect(await importFrom(path, openMemoryStore())).toMatchObject({
      added: 11,
      refused: [{ code: "HL_BUNDLE", message: "revision 0: the event is not what was sealed" }],
    });
  });

  it("should be missed where it was taken away", async () => {
    const path = copied();
    alterBundle(path, (db) => db.prepare("DELETE FROM streams WHERE stream = ?").run(stream()));
    await withBundle(path, async (bundle) => {
      expect(await verified(bundle)).toEqual({ checked: 11, diverged: [] });
      expect(bundle.sum().digest).not.toBe(bundle.description.digest);
    });
  });

  it.each([
    ["a head", "UPDATE streams SET chain = replace(chain, substr(chain, 1, 1), 'x') WHERE stream = ?"],
    ["a name", "UPDATE streams SET stream = substr(stream, 1, 38) || 'Z' WHERE stream = ?"],
    ["a payload", "INSERT INTO payloads SELECT 'sha256:', x'00' WHERE ? IS NOT NULL"],
  ])("should be told by the digest where %s was changed or added", async (_, sql) => {
    const path = copied();
    alterBundle(path, (db) => db.prepare(sql).run(stream()));
    await withBundle(path, async (bundle) => expect(bundle.sum().digest).not.toBe(bundle.description.digest));
  });
});
