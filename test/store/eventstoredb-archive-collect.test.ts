import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { cut } from "#src/payload/archive/cut.js";
import { digest } from "#src/payload/digest.js";
import { collectGarbage } from "#src/store/eventstoredb/archive/collect.js";
import { ArchiveReader } from "#src/store/eventstoredb/archive/reader.js";
import { condemnation } from "#src/store/eventstoredb/archive/streams.js";
import { ArchiveWriter } from "#src/store/eventstoredb/archive/writer.js";
import type { Blob, Collected } from "#src/store/port.js";
import { AdapterTime } from "../support/adapter-time.js";
import { MemoryServerLog } from "../support/server-log.js";
import { conversation } from "../support/shared-payloads.js";
import { temporaryFolder } from "../support/store-fixtures.js";

const HOUR = 3_600_000;
const GRACE = 24 * HOUR;

function blobOf(bytes: Uint8Array): Blob {
  return { digest: digest("payload", bytes), bytes };
}

function partsOf({ bytes }: Blob): number {
  return cut(bytes).chunks.length + 1;
}

class Server {
  readonly log = new MemoryServerLog();
  readonly time = new AdapterTime();
  readonly writer = new ArchiveWriter(this.log, this.time);

  async refer(stream: string, { digest }: Blob): Promise<void> {
    const data = { input: { digest, size: 1, encoding: "proto" } };
    await this.log.append(`hookdispatch-${stream}`, "any", [
      { id: randomUUID(), type: "started", content: { kind: "json", data, metadata: {} } },
    ]);
  }

  collect(dryRun = false, onProgress?: (events: number) => void): Promise<Collected> {
    const { log, time } = this;
    return collectGarbage(log, time, { dryRun, now: time.wall(), graceMs: GRACE }, onProgress);
  }

  async kindOf({ digest }: Blob): Promise<string> {
    return (await new ArchiveReader(this.log, this.time).read(digest)).kind;
  }
}

const used = blobOf(conversation([1, 2, 3, 4]));
/** Shares three messages with the used one. */
const unused = blobOf(conversation([2, 3, 4, 5]));

async function withGarbage(): Promise<Server> {
  const server = new Server();
  await server.writer.store([used, unused]);
  await server.refer("a", used);
  return server;
}

const sharedParts = cut(used.bytes).chunks.filter(({ hash }) =>
  cut(unused.bytes).chunks.some((chunk) => chunk.hash === hash),
).length;
const garbage = partsOf(unused) - sharedParts;

describe("a collection on a server", () => {
  it("should mark what nothing refers to, and remove it a grace later", async () => {
    expect(sharedParts).toBe(3);
    const server = await withGarbage();
    const kept = partsOf(used);
    expect(await server.collect()).toEqual({ kept, marked: garbage, removed: 0, removedBytes: 0 });
    server.time.pass(GRACE - 1);
    expect(await server.collect()).toEqual({ kept, marked: garbage, removed: 0, removedBytes: 0 });
    expect(await server.kindOf(unused)).toBe("found");
    server.time.pass(1);
    const sharedHashes = new Set(cut(used.bytes).chunks.map(({ hash }) => hash));
    const { root, chunks } = cut(unused.bytes);
    const removedBytes = chunks
      .filter(({ hash }) => !sharedHashes.has(hash))
      .reduce((sum, { bytes }) => sum + bytes.length, root.length);
    expect(await server.collect()).toEqual({ kept, marked: 0, removed: garbage, removedBytes });
    expect(await server.kindOf(unused)).toBe("missing");
    expect(await server.kindOf(used)).toBe("found");
    expect(await server.collect()).toEqual({ kept, marked: 0, removed: 0, removedBytes: 0 });
    server.log.scavenge();
    expect(await server.collect()).toEqual({ kept, marked: 0, removed: 0, removedBytes: 0 });
  });

  it("should only count in a dry run", async () => {
    const server = await withGarbage();
    const counted = await server.collect(true);
    expect(counted.marked).toBe(garbage);
    expect(server.log.streams.every((stream) => server.log.peek(stream).length === 1)).toBe(true);
    await server.collect();
    server.time.pass(GRACE);
    const would = await server.collect(true);
    expect(would.removed).toBe(garbage);
    expect(await server.kindOf(unused)).toBe("found");
    expect(await server.collect()).toEqual(would);
  });

  it("should leave what was stored again behind the mark, or referred to again", async () => {
    const server = await withGarbage();
    const other = blobOf(conversation([7, 8, 9, 10]));
    await server.writer.store([other]);
    await server.collect();
    server.time.pass(HOUR);
    await server.writer.store([unused]);
    await server.refer("b", other);
    server.time.pass(GRACE);
    expect(await server.collect()).toMatchObject({ marked: garbage, removed: 0 });
    expect(await server.kindOf(unused)).toBe("found");
    expect(await server.kindOf(other)).toBe("found");
  });

  it("should see references that come while it is at work, also when it has marked for long", async () => {
    const server = await withGarbage();
    await server.collect();
    server.time.pass(GRACE);
    let referred = false;
    server.log.gate = ({ kind }, when) => {
      if (referred || kind !== "readAll" || when === "before") return undefined;
      referred = true;
      return server.refer("b", unused);
    };
    expect(await server.collect()).toEqual({ kept: partsOf(used) + garbage, marked: 0, removed: 0, removedBytes: 0 });
    expect(await server.kindOf(unused)).toBe("found");
  });

  it("should not remove what is stored between its look and its removal", async () => {
    const server = await withGarbage();
    await server.collect();
    server.time.pass(GRACE);
    let stored: Promise<void> | undefined;
    server.log.gate = ({ kind }, when) => {
      if (kind !== "delete" || when === "after") return undefined;
      stored ??= new ArchiveWriter(server.log, server.time).store([unused]).then(() => undefined);
      return stored;
    };
    const { removed } = await server.collect();
    expect(removed).toBe(0);
    expect(await server.kindOf(unused)).toBe("found");
  });

  it("should remove what a dispatch referred to once that is gone from the log", async () => {
    const server = await withGarbage();
    server.log.remove("hookdispatch-a");
    expect((await server.collect()).kept).toBe(partsOf(used));
    server.log.scavenge();
    expect((await server.collect()).kept).toBe(0);
    server.time.pass(GRACE);
    await server.collect();
    expect(server.log.streams).toEqual([]);
  });

  it("should try again what the server does not answer, and count it once", async () => {
    const server = await withGarbage();
    const failed = new Set<string>();
    server.log.fault = ({ kind, stream }) => {
      if (kind === "readStream" || kind === "readAll" || failed.has(kind + stream)) return undefined;
      failed.add(kind + stream);
      return "lost-answer";
    };
    expect(await server.collect()).toMatchObject({ kept: partsOf(used), marked: garbage });
    server.time.pass(GRACE);
    expect(await server.collect()).toMatchObject({ kept: partsOf(used), removed: garbage });
    expect(await server.kindOf(unused)).toBe("missing");
  });

  it("should not trust a mark that it cannot read, nor touch streams that are none of ours", async () => {
    const server = await withGarbage();
    const root = unused.digest.replace("sha256:", "hookpayload-");
    const marks = [{}, { at: 5 }, { at: "yesterday" }, ["at"]];
    for (const data of marks) {
      await server.log.append(root, "any", [{ ...condemnation(0), content: { kind: "json", data, metadata: {} } }]);
      expect(await server.collect(true)).toMatchObject({ marked: garbage, removed: 0 });
    }
    const foreign = ["hookchunk-x", `hookchunk-${"A".repeat(64)}`, "hookpayload-", "hookchunks-1"];
    for (const stream of foreign) await server.log.append(stream, "any", [condemnation(0)]);
    await server.collect();
    server.time.pass(GRACE);
    expect(await server.collect()).toMatchObject({ removed: garbage });
    for (const stream of foreign) expect(server.log.peek(stream)).toHaveLength(1);
  });

  it("should take any digest in an event's data for a reference, of foreign events too", async () => {
    const server = await withGarbage();
    const text = `see ${unused.digest}, please`;
    await server.log.append("hookdispatch-x", "any", [
      { id: randomUUID(), type: "note", content: { kind: "bytes", data: Buffer.from(text) } },
    ]);
    expect(await server.collect()).toMatchObject({ kept: partsOf(used) + garbage, marked: 0 });
  });

  it("should see a reference however deep it stands in an event of somebody else", async () => {
    const server = await withGarbage();
    const data = JSON.parse(`${'{"a":['.repeat(50_000)}"${unused.digest}"${"]}".repeat(50_000)}`);
    await server.log.append("hookdispatch-deep", "none", [
      { id: randomUUID(), type: "x", content: { kind: "json", data: {}, metadata: {} } },
    ]);
    const readAll = server.log.readAll.bind(server.log);
    server.log.readAll = async (options) => {
      const content = { kind: "json", data, metadata: {} } as const;
      const events = await readAll(options);
      return events.map((event) => (event.stream === "hookdispatch-deep" ? { ...event, content } : event));
    };
    expect(await server.collect()).toMatchObject({ marked: 0 });
  });

  it("should refuse a grace that writers could not keep", async () => {
    const { log, time } = new Server();
    const options = { dryRun: false, now: time.wall(), graceMs: HOUR - 1 };
    await expect(collectGarbage(log, time, options)).rejects.toMatchObject({ code: "HL_USAGE" });
    expect((await collectGarbage(log, time, { ...options, dryRun: true })).kept).toBe(0);
  });

  it("should tell its progress", async () => {
    const server = await withGarbage();
    for (let n = 0; n < 600; n++) await server.refer(`n${n}`, used);
    const told: number[] = [];
    await server.collect(false, (events) => told.push(events));
    expect(told.length).toBeGreaterThan(2);
    expect(told).toEqual([...told].sort((a, b) => a - b));
  });

  describe("with a temporary folder of its own", () => {
    const folder = temporaryFolder();
    const { TMPDIR } = process.env;
    afterAll(() => {
      folder.remove();
      if (TMPDIR === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = TMPDIR;
    });

    it("should leave no file behind, whatever happens", async () => {
      process.env["TMPDIR"] = folder.path;
      const server = await withGarbage();
      const during: number[] = [];
      await server.collect(false, () => during.push(readdirSync(folder.path).length));
      expect(new Set(during)).toEqual(new Set([1]));
      expect(readdirSync(folder.path)).toEqual([]);
      server.log.fault = () => "unavailable";
      await expect(server.collect()).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
      expect(readdirSync(folder.path)).toEqual([]);
    });

    it("should say so if it cannot be written", async () => {
      process.env["TMPDIR"] = join(folder.path, "missing");
      await expect(new Server().collect()).rejects.toMatchObject({
        code: "HL_STORE_UNAVAILABLE",
        hint: "Name a folder with room for it in TMPDIR.",
      });
    });
  });
});
