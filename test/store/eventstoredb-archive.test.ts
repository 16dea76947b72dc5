import { describe, expect, it } from "vitest";
import { cut } from "#src/payload/archive/cut.js";
import { chunkHash } from "#src/payload/archive/hash.js";
import { encodeHeader, encodeNode } from "#src/payload/archive/node.js";
import { digest } from "#src/payload/digest.js";
import { ArchiveReader } from "#src/store/eventstoredb/archive/reader.js";
import { condemnation, content } from "#src/store/eventstoredb/archive/streams.js";
import { ArchiveWriter } from "#src/store/eventstoredb/archive/writer.js";
import type { Blob } from "#src/store/port.js";
import { AdapterTime } from "../support/adapter-time.js";
import { MemoryServerLog } from "../support/server-log.js";
import { conversation } from "../support/shared-payloads.js";

const MINUTE = 60_000;

function blobOf(bytes: Uint8Array): Blob {
  return { digest: digest("payload", bytes), bytes };
}

function rootOf({ digest }: Blob): string {
  return digest.replace("sha256:", "hookpayload-");
}

function chunksOf({ bytes }: Blob): readonly string[] {
  return cut(bytes).chunks.map(({ hash }) => `hookchunk-${hash}`);
}

async function store(log: MemoryServerLog, ...blobs: readonly Blob[]): Promise<void> {
  await new ArchiveWriter(log, new AdapterTime()).store(blobs);
}

async function isThere(log: MemoryServerLog, { digest, bytes }: Blob): Promise<boolean> {
  const read = await new ArchiveReader(log, new AdapterTime()).read(digest);
  return read.kind === "found" && Buffer.compare(read.bytes, bytes) === 0;
}

const small = blobOf(Buffer.from("small"));
const large = blobOf(conversation([1, 2, 3, 4, 5, 6]));
const longer = blobOf(conversation([1, 2, 3, 4, 5, 6, 7]));

describe("storing payloads on a server", () => {
  it("should give back what was stored", async () => {
    const log = new MemoryServerLog();
    const huge = blobOf(conversation([1, 2, 3], 1_500_000));
    await store(log, small, large, huge, blobOf(new Uint8Array(0)));
    for (const blob of [small, large, huge, blobOf(new Uint8Array(0))]) expect(await isThere(log, blob)).toBe(true);
    expect(await new ArchiveReader(log, new AdapterTime()).read(longer.digest)).toEqual({ kind: "missing" });
  });

  it("should write the root once all chunks are acknowledged, and each once", async () => {
    const log = new MemoryServerLog();
    let held = 0;
    const release: (() => void)[] = [];
    log.gate = ({ stream }, when) => {
      if (when === "before" || !stream.startsWith("hookchunk-")) return undefined;
      held++;
      return new Promise((resolve) => release.push(resolve));
    };
    const stored = store(log, large);
    await new Promise(setImmediate);
    expect(held).toBe(chunksOf(large).length);
    expect(log.countOf("append", "hookpayload-")).toBe(0);
    for (const go of release) go();
    await stored;
    expect(log.countOf("append")).toBe(chunksOf(large).length + 1);
  });

  it("should write of a longer conversation only what is new", async () => {
    const log = new MemoryServerLog();
    const writer = new ArchiveWriter(log, new AdapterTime());
    await writer.store([large]);
    log.calls.length = 0;
    await writer.store([longer]);
    const known = new Set(chunksOf(large));
    expect(log.countOf("append")).toBe(chunksOf(longer).filter((chunk) => !known.has(chunk)).length + 1);
    expect(log.countOf("append")).toBeLessThanOrEqual(3);
    log.calls.length = 0;
    await writer.store([large, longer]);
    expect(log.calls).toEqual([]);
  });

  it("should have at most 64 appends and 4 MiB under way", async () => {
    const log = new MemoryServerLog();
    let underWay = 0;
    let most = 0;
    log.gate = (_call, when) => {
      underWay += when === "before" ? 1 : -1;
      most = Math.max(most, underWay);
      return when === "before" ? new Promise(setImmediate) : undefined;
    };
    await store(log, blobOf(conversation(Array.from({ length: 300 }, (_, n) => n))));
    expect(most).toBe(64);
    most = 0;
    await store(log, blobOf(conversation([1], 8 * 1024 * 1024)));
    expect(most).toBeGreaterThan(16);
    expect(most).toBeLessThan(65);
  });

  it("should try again what the server refuses or does not answer", async () => {
    for (const fault of ["unavailable", "lost-call", "lost-answer"] as const) {
      const log = new MemoryServerLog();
      const failed = new Set<string>();
      log.fault = ({ kind, stream }) => {
        if (kind !== "append" || failed.has(stream)) return undefined;
        failed.add(stream);
        return fault;
      };
      await store(log, large);
      expect(failed.size).toBe(chunksOf(large).length + 1);
      expect(await isThere(log, large)).toBe(true);
      for (const stream of log.streams) expect(log.peek(stream)).toHaveLength(1);
    }
  });

  it("should say that the server is not there when it never answers, and succeed later", async () => {
    const log = new MemoryServerLog();
    const writer = new ArchiveWriter(log, new AdapterTime());
    log.fault = () => "lost-call";
    await expect(writer.store([large])).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    log.fault = () => undefined;
    await writer.store([large]);
    expect(await isThere(log, large)).toBe(true);
  });

  it("should write what was deleted again, and say so of what was deleted for good", async () => {
    const log = new MemoryServerLog();
    await store(log, large);
    for (const stream of log.streams) log.remove(stream);
    expect(await new ArchiveReader(log, new AdapterTime()).read(large.digest)).toEqual({ kind: "missing" });
    await store(log, large);
    expect(await isThere(log, large)).toBe(true);
    log.tombstone(rootOf(large));
    await expect(store(log, large)).rejects.toMatchObject({ code: "HL_STORE_CORRUPT" });
  });

  it("should put right what somebody else wrote there", async () => {
    const log = new MemoryServerLog();
    const [first = "", second = ""] = chunksOf(large);
    await log.append(first, "none", [content(Buffer.from("other bytes"))]);
    await log.append(second, "none", [condemnation(0)]);
    await log.append(rootOf(large), "none", [
      { id: crypto.randomUUID(), type: "note", content: { kind: "json", data: {}, metadata: {} } },
    ]);
    await store(log, large);
    expect(await isThere(log, large)).toBe(true);
  });

  it("should write content again behind a mark, also where the stream was deleted after it was read", async () => {
    for (const deletes of [false, true]) {
      const log = new MemoryServerLog();
      await store(log, large);
      for (const stream of log.streams) await log.append(stream, 0, [condemnation(0)]);
      if (deletes) {
        log.gate = ({ kind, stream }, when) => {
          if (kind === "readStream" && when === "after") log.remove(stream);
          return undefined;
        };
      }
      await store(log, large);
      log.gate = () => undefined;
      expect(await isThere(log, large)).toBe(true);
      for (const stream of log.streams) expect(log.peek(stream).at(-1)).toMatchObject({ type: "content", revision: 2 });
    }
  });

  it("should look again once it is ten minutes ago, and call stale what is twenty minutes old", async () => {
    const log = new MemoryServerLog();
    const time = new AdapterTime();
    const writer = new ArchiveWriter(log, time);
    const kept = await writer.store([large]);
    for (const stream of log.streams) log.remove(stream);
    time.pass(10 * MINUTE);
    await writer.store([large]);
    expect(await isThere(log, large)).toBe(false);
    expect(writer.isStale(kept)).toBe(false);
    time.pass(1);
    const again = await writer.store([large]);
    expect(await isThere(log, large)).toBe(true);
    time.pass(10 * MINUTE);
    expect(writer.isStale(kept)).toBe(true);
    expect(writer.isStale(again)).toBe(false);
    time.sleep(11 * MINUTE);
    expect(writer.isStale(again)).toBe(true);
  });

  it("should count the age of a payload from its oldest part", async () => {
    const time = new AdapterTime();
    const writer = new ArchiveWriter(new MemoryServerLog(), time);
    await writer.store([large]);
    time.pass(9 * MINUTE);
    const kept = await writer.store([longer]);
    time.pass(11 * MINUTE);
    expect(writer.isStale(kept)).toBe(false);
    time.pass(1);
    expect(writer.isStale(kept)).toBe(true);
  });
});

describe("reading payloads from a server", () => {
  it("should name the chunk that is missing or altered, and find it once it is right again", async () => {
    const log = new MemoryServerLog();
    await store(log, large);
    const [chunk = ""] = chunksOf(large);
    const reader = new ArchiveReader(log, new AdapterTime());
    await log.append(chunk, "any", [content(Buffer.from("other bytes"))]);
    expect(await reader.read(large.digest)).toEqual({
      kind: "damaged",
      detail: `chunk ${chunk.slice("hookchunk-".length)} is altered`,
    });
    log.remove(chunk);
    expect(await reader.read(large.digest)).toEqual({
      kind: "damaged",
      detail: `chunk ${chunk.slice("hookchunk-".length)} is missing`,
    });
    await store(log, large);
    expect((await reader.read(large.digest)).kind).toBe("found");
  });

  it("should take nothing for a chunk that is too large for one", async () => {
    const log = new MemoryServerLog();
    const bytes = new Uint8Array(1024 * 1024 + 1);
    const hash = chunkHash(bytes);
    const root = encodeNode([{ size: bytes.length, bytes: Buffer.concat([encodeHeader("leaf", bytes.length), hash]) }]);
    await log.append(`hookchunk-${hash.toString("hex")}`, "none", [content(bytes)]);
    await log.append(rootOf(small), "none", [content(root)]);
    const detail = `chunk ${hash.toString("hex")} is missing`;
    expect(await new ArchiveReader(log, new AdapterTime()).read(small.digest)).toEqual({ kind: "damaged", detail });
  });

  it("should call a root without content damaged", async () => {
    const log = new MemoryServerLog();
    await log.append(rootOf(small), "none", [condemnation(0)]);
    expect(await new ArchiveReader(log, new AdapterTime()).read(small.digest)).toEqual({
      kind: "damaged",
      detail: `${rootOf(small)} has no content`,
    });
  });

  it("should find content behind however many marks", async () => {
    const log = new MemoryServerLog();
    await store(log, small);
    for (let i = 0; i < 200; i++) await log.append(rootOf(small), "any", [condemnation(i)]);
    expect(await isThere(log, small)).toBe(true);
  });

  it("should notice what is altered or gone since it was read, after five seconds at the latest", async () => {
    const log = new MemoryServerLog();
    const time = new AdapterTime();
    await store(log, large);
    const [chunk = "", other = ""] = chunksOf(large);
    const reader = new ArchiveReader(log, time);
    await reader.read(large.digest);
    await log.append(chunk, "any", [content(Buffer.from("other bytes"))]);
    time.pass(5000);
    expect((await reader.read(large.digest)).kind).toBe("found");
    time.pass(1);
    expect((await reader.read(large.digest)).kind).toBe("damaged");
    await store(log, large);
    expect((await reader.read(large.digest)).kind).toBe("found");
    log.remove(other);
    time.sleep(5001);
    expect((await reader.read(large.digest)).kind).toBe("damaged");
  });

  it("should read a chunk that many payloads share once, and at most 32 at a time", async () => {
    const log = new MemoryServerLog();
    const long = blobOf(conversation(Array.from({ length: 200 }, (_, n) => n)));
    await store(log, long, large);
    let underWay = 0;
    let most = 0;
    log.gate = (_call, when) => {
      underWay += when === "before" ? 1 : -1;
      most = Math.max(most, underWay);
      return when === "before" ? new Promise(setImmediate) : undefined;
    };
    log.calls.length = 0;
    const reader = new ArchiveReader(log, new AdapterTime());
    await reader.read(long.digest);
    expect(most).toBe(32);
    log.calls.length = 0;
    await reader.read(large.digest);
    expect(log.calls.map(({ stream }) => stream)).toEqual([rootOf(large)]);
  });
});
