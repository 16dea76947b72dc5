import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { importLedger } from "#src/transfer/import.js";
import { FaultyStore, onlyNth } from "../support/faulty-store.js";
import { started } from "../support/given.js";
import { at, configBlob, kept, record } from "../support/ledger.js";
import { rowsOf } from "../support/ledgers.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import {
  contentsOf,
  cutRows,
  exportTo,
  failingAt,
  growTo,
  idOf,
  importFrom,
  memoryOf,
  randomRows,
  verified,
  withBundle,
} from "../support/transfers.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
const open: EventStore[] = [];

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "evidence.hlb");
});
afterEach(async () => {
  for (const store of open.splice(0)) await store.close();
  folder.remove();
});

async function sqlite(name: string): Promise<EventStore> {
  const store = await openSqliteStore(join(folder.path, name), { mode: "write" });
  open.push(store);
  return store;
}

/** Of a session whose conversation no event can carry. */
async function conversation(store: EventStore, n: number, turns: number): Promise<void> {
  const config = configBlob({ settings: {} });
  const text = (turn: number) => `turn ${turn}: ${"what was said then ".repeat(400)}`;
  const messages = Array.from({ length: turns }, (_, turn) => ({
    role: "ROLE_USER" as const,
    content: [{ text: { text: text(turn) } }],
  }));
  const payload = kept({ preModelCall: { messages } });
  const dispatchId = `01K${String(n).padStart(23, "0")}`;
  const begun = started([], {
    dispatchId,
    point: "pre-model-call",
    vetoBearing: false,
    configDigest: config.digest,
    descriptorDigest: config.digest,
  });
  const ended = {
    type: "decided",
    decision: "allow",
    decidedBy: "kernel:default",
    payload: payload.ref.digest,
  } as const;
  await record(store, {
    n,
    session: "long",
    happenings: [at(0, { ...begun, input: payload.ref }), at(1, ended)],
    kept: [payload],
    blobs: [config],
  });
}

describe("a ledger that goes through a bundle", () => {
  it("should come out the same in every store, and verify wherever it is", async () => {
    const ledger = await sqlite("ledger.db");
    await growTo(ledger, await randomRows(60, 11));
    const exported = await exportTo(path, ledger);
    expect(exported).toMatchObject({ added: 60, grown: 0, kept: 0, refused: [] });
    expect(exported.bundle).toMatchObject({ streams: 60, missing: 0, damaged: 0, state: "finished" });
    const original = await contentsOf(ledger);
    await withBundle(path, async (bundle) => {
      expect(await contentsOf(bundle)).toEqual(original);
      expect(await verified(bundle)).toEqual({ checked: 60, diverged: [] });
    });
    for (const target of [await sqlite("other.db"), openMemoryStore()]) {
      expect(await importFrom(path, target)).toMatchObject({ added: 60, grown: 0, kept: 0, refused: [], missing: 0 });
      expect(await contentsOf(target)).toEqual(original);
      expect(await verified(target)).toEqual({ checked: 60, diverged: [] });
      expect(await importFrom(path, target)).toMatchObject({ added: 0, grown: 0, kept: 60, refused: [] });
      expect(await contentsOf(target)).toEqual(original);
    }
  });

  it("should go from store to store without one, too", async () => {
    const source = await memoryOf(await randomRows(10, 3));
    const target = openMemoryStore();
    expect(await importLedger(source, target)).toMatchObject({ added: 10, refused: [] });
    expect(await contentsOf(target)).toEqual(await contentsOf(source));
  });

  it("should keep what large payloads have in common once", async () => {
    const source = openMemoryStore();
    for (let turns = 1; turns <= 30; turns++) await conversation(source, turns, turns);
    await exportTo(path, source);
    // All turns together are 30 × 7.6 KB; every turn sends all those before it.
    expect(statSync(path).size).toBeLessThan(1_000_000);
    const target = await sqlite("other.db");
    await importFrom(path, target);
    expect(await contentsOf(target)).toEqual(await contentsOf(source));
    expect(await verified(target)).toEqual({ checked: 30, diverged: [] });
  });

  it("should pass on a bundle as it passes on a ledger", async () => {
    await exportTo(path, await memoryOf(await randomRows(9, 4)));
    const second = join(folder.path, "second.hlb");
    const [one, other] = await withBundle(path, async (bundle) => {
      const exported = await exportTo(second, bundle);
      return [bundle.sum(), exported.bundle];
    });
    expect(one).toMatchObject({ digest: other.digest, streams: 9 });
  });
});

describe("what has happened since", () => {
  it("should be added to the bundle, and then to where it was imported", async () => {
    const rows = await randomRows(12, 5);
    const ledger = await memoryOf(cutRows(rows, [1, 2, 3]));
    const target = openMemoryStore();
    const first = await exportTo(path, ledger);
    await importFrom(path, target);
    await growTo(ledger, rows);
    const second = await exportTo(path, ledger);
    expect(second.grown).toBeGreaterThan(0);
    expect(second).toMatchObject({ added: 0, kept: 12 - second.grown, refused: [] });
    expect(second.bundle.digest).not.toBe(first.bundle.digest);
    expect(await importFrom(path, target)).toMatchObject({ grown: second.grown, kept: 12 - second.grown, refused: [] });
    expect(await contentsOf(target)).toEqual(await contentsOf(ledger));
  });

  it("should leave a finished bundle to which nothing is added as it is, byte for byte", async () => {
    const ledger = await memoryOf(await randomRows(5, 6));
    await exportTo(path, ledger);
    const before = readFileSync(path);
    expect(await exportTo(path, ledger)).toMatchObject({ added: 0, grown: 0, kept: 5 });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it("should be found where the ledger has more than the bundle", async () => {
    const rows = await randomRows(6, 7);
    await exportTo(path, await memoryOf(cutRows(rows, [1, 1, 1])));
    const target = await memoryOf(rows);
    expect(await importFrom(path, target)).toMatchObject({ added: 0, grown: 0, kept: 6, refused: [] });
  });
});

describe("a selection", () => {
  it("should be what the bundle has, and what it goes on with", async () => {
    const ledger = await memoryOf(await randomRows(12, 8));
    const ofSession = (await contentsOf(ledger)).streams.filter(({ session }) => session === "session 0");
    await exportTo(path, ledger, { session: "session 0" });
    await withBundle(path, async (bundle) => expect((await contentsOf(bundle)).streams).toEqual(ofSession));
    await expect(exportTo(path, ledger)).rejects.toMatchObject({ code: "HL_USAGE" });
    await expect(exportTo(path, ledger, { session: null })).rejects.toMatchObject({ code: "HL_USAGE" });
    expect(await exportTo(path, ledger, { session: "session 0" })).toMatchObject({ added: 0, kept: ofSession.length });
  });

  it("should go by the time at which a dispatch began, and by name", async () => {
    const ledger = openMemoryStore();
    const config = configBlob({});
    for (const n of [1, 2, 3, 4]) {
      const begun = started([], { configDigest: config.digest });
      await record(ledger, { n, wall: n * 1000, happenings: [at(0, begun)], blobs: [config] });
    }
    const names = (await contentsOf(ledger)).streams.map(({ stream }) => stream);
    const chosen = async (file: string, selection: Parameters<typeof exportTo>[2]) => {
      await exportTo(join(folder.path, file), ledger, selection);
      return withBundle(join(folder.path, file), async (bundle) =>
        (await contentsOf(bundle)).streams.map(({ stream }) => names.indexOf(stream) + 1),
      );
    };
    expect(await chosen("a", { since: 2000, until: 4000 })).toEqual([2, 3]);
    expect(await chosen("b", { since: 3000 })).toEqual([3, 4]);
    expect(await chosen("c", { streams: [names[3]!, names[0]!, "hookdispatch-nobody"] })).toEqual([1, 4]);
    expect(await chosen("d", { since: 9000 })).toEqual([]);
  });
});

describe("payloads that are not there", () => {
  it("should be counted by export and by import, and not made up", async () => {
    const source = openMemoryStore();
    for (let turns = 1; turns <= 4; turns++) await conversation(source, turns, turns);
    const rows = await rowsOf(source);
    const [gone, other] = rows.blobs.filter(({ bytes }) => bytes.byteLength > 4096).map(({ digest }) => digest);
    const blobs = rows.blobs
      .filter(({ digest }) => digest !== gone)
      .map((blob) => (blob.digest === other ? { ...blob, bytes: Buffer.from("other") } : blob));
    const ledger = await memoryOf({ ...rows, blobs });
    expect((await exportTo(path, ledger)).bundle).toMatchObject({ missing: 1, damaged: 1 });
    expect((await exportTo(path, ledger)).bundle).toMatchObject({ missing: 1, damaged: 1 });
    const target = openMemoryStore();
    expect(await importFrom(path, target)).toMatchObject({ added: 4, refused: [], missing: 2, damaged: 0 });
    expect((await contentsOf(target)).streams).toEqual((await contentsOf(ledger)).streams);
    for (const digest of [gone!, other!]) expect(await target.readBlob(digest)).toEqual({ kind: "missing" });
    expect(await importLedger(ledger, openMemoryStore())).toMatchObject({ added: 4, missing: 1, damaged: 1 });
  });
});

describe("a dispatch that is another one elsewhere", () => {
  it("should be refused by import and left as it is, and the others copied", async () => {
    const rows = await randomRows(8, 10);
    await exportTo(path, await memoryOf(rows));
    const target = openMemoryStore();
    const stream = rows.heads[2]!.stream;
    const n = Number(idOf(stream).slice(3));
    await record(target, { n, happenings: [at(0, started([], { dispatchId: idOf(stream) }))] });
    const before = await target.readStream(stream);
    const imported = await importFrom(path, target);
    expect(imported).toMatchObject({
      added: 7,
      refused: [
        { dispatchId: idOf(stream), code: "HL_IMPORT_CONFLICT", message: expect.stringContaining("revision 0") },
      ],
    });
    expect(await target.readStream(stream)).toEqual(before);
  });

  it("should be refused by export, too", async () => {
    const rows = await randomRows(4, 12);
    await exportTo(path, await memoryOf(rows));
    const other = openMemoryStore();
    const stream = rows.heads[1]!.stream;
    const n = Number(idOf(stream).slice(3));
    await record(other, { n, happenings: [at(0, started([], { dispatchId: idOf(stream) }))] });
    const exported = await exportTo(path, other);
    expect(exported).toMatchObject({ added: 0, refused: [{ dispatchId: idOf(stream), code: "HL_IMPORT_CONFLICT" }] });
    expect(await importFrom(path, openMemoryStore())).toMatchObject({ added: 4, refused: [] });
  });

  it("should be refused by export where it has come further there", async () => {
    const rows = await randomRows(4, 12);
    const other = openMemoryStore();
    const stream = rows.events.find(({ revision }) => revision === 1)!.stream;
    const begun = at(0, started([], { dispatchId: idOf(stream) }));
    await record(other, { n: Number(idOf(stream).slice(3)), happenings: [begun] });
    await exportTo(path, other);
    const before = await withBundle(path, contentsOf);
    const exported = await exportTo(path, await memoryOf(rows));
    expect(exported).toMatchObject({ added: 3, grown: 0, refused: [{ dispatchId: idOf(stream) }] });
    expect((await withBundle(path, contentsOf)).streams).toContainEqual(before.streams[0]);
  });

  it("should be refused where somebody appends to it in the same moment", async () => {
    await exportTo(path, await memoryOf(await randomRows(3, 13)));
    const target = new FaultyStore(openMemoryStore(), onlyNth(2, { does: "refuse", code: "HL_STORE_CONFLICT" }));
    expect(await importFrom(path, target)).toMatchObject({ added: 2, refused: [{ code: "HL_IMPORT_CONFLICT" }] });
  });
});

describe("a stream that no bundle can hold", () => {
  it("should be named, and the others exported", async () => {
    const rows = await randomRows(5, 14);
    const hole = rows.events.find(({ revision }) => revision === 2)!.stream;
    const source = await memoryOf(rows);
    const holed: EventStore = failingAt(source, Number.POSITIVE_INFINITY);
    const pages = holed.readStreams.bind(holed);
    const broken = new Proxy(holed, {
      get: (target, key) =>
        key === "readStreams"
          ? async function* (filter: Parameters<EventStore["readStreams"]>[0]) {
              for await (const page of pages(filter))
                yield page.map((stream) =>
                  stream.stream === hole
                    ? { ...stream, events: stream.events.filter(({ revision }) => revision !== 1) }
                    : stream,
                );
            }
          : Reflect.get(target, key),
    });
    expect(await exportTo(path, broken)).toMatchObject({
      added: 4,
      refused: [{ dispatchId: idOf(hole), code: "HL_BUNDLE", message: "revision 1 is missing" }],
    });
  });
});

describe("whatever interrupts it", () => {
  it("should leave a bundle and a ledger that the same command completes", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          seed: fc.nat(1_000_000),
          cuts: fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 6, maxLength: 6 }),
          readFails: fc.array(fc.nat(6), { maxLength: 3 }),
          appendFails: fc.array(
            fc.record({
              nth: fc.integer({ min: 1, max: 8 }),
              does: fc.constantFrom("lose the reply", "lose the request"),
            }),
            { maxLength: 3 },
          ),
        }),
        async ({ seed, cuts, readFails, appendFails }) => {
          const own = temporaryFolder();
          try {
            const file = join(own.path, "e.hlb");
            const rows = await randomRows(6, seed);
            const ledger = await memoryOf(cutRows(rows, cuts));
            for (const n of readFails) await exportTo(file, failingAt(ledger, n)).catch(() => {});
            if (readFails.some((n) => n < 6)) await withBundle(file, async (bundle) => bundle.description);
            await growTo(ledger, rows);
            expect((await exportTo(file, ledger)).refused).toEqual([]);
            const original = await contentsOf(ledger);
            await withBundle(file, async (bundle) => {
              expect(await contentsOf(bundle)).toEqual(original);
              expect(bundle.sum().digest).toBe(bundle.description.digest);
            });
            const target = openMemoryStore();
            for (const { nth, does } of appendFails) {
              await importFrom(file, new FaultyStore(target, onlyNth(nth, { does }))).catch(() => {});
            }
            expect((await importFrom(file, target)).refused).toEqual([]);
            expect(await contentsOf(target)).toEqual(original);
          } finally {
            own.remove();
          }
        },
      ),
      { numRuns: 40 },
    );
  });
});
