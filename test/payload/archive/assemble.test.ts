import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assemble } from "#src/payload/archive/assemble.js";
import { cut } from "#src/payload/archive/cut.js";
import { nodeReferences, references } from "#src/payload/archive/references.js";
import type { BlobRead } from "#src/payload/archive/types.js";
import { conversation, keptOf, message, noise, varint } from "./fields.js";

const [LITERAL, LEAF, NODE] = [0, 1, 2];
const MIB = 1024 * 1024;

function hashOf(bytes: Uint8Array): string {
  return createHash("sha256").update("hookledger/chunk/v1\0").update(bytes).digest("hex");
}

type Part = { readonly kind: number; readonly size: number; readonly bytes: Uint8Array };

function node(size: number, parts: readonly Part[]): Buffer {
  const encoded = parts.flatMap((part) => [varint(part.size * 4 + part.kind), part.bytes]);
  return Buffer.concat([Buffer.from([0, 1]), varint(size), ...encoded]);
}

function reference(kind: number, size: number, hash: string): Part {
  return { kind, size, bytes: Buffer.from(hash, "hex") };
}

/** A store of these chunks that counts what is asked of it. */
function chunkStore(...chunks: readonly Uint8Array[]) {
  const kept = new Map(chunks.map((bytes) => [hashOf(bytes), bytes]));
  const asked: (readonly string[])[] = [];
  return {
    kept,
    asked,
    read: async (hashes: readonly string[]) => {
      asked.push(hashes);
      return kept;
    },
  };
}

async function assembled(root: Uint8Array, ...chunks: readonly Uint8Array[]): Promise<BlobRead> {
  return assemble(root, chunkStore(...chunks).read);
}

describe("assemble", () => {
  const payload = conversation(Array.from({ length: 300 }, (_, i) => message(`m${i}`, 900)));

  it("should hand over a root that is the payload itself", async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from("{}")]) {
      expect(await assembled(bytes)).toEqual({ kind: "found", bytes });
    }
  });

  it("should read a level at a time", async () => {
    const { root, chunks } = cut(payload);
    const store = chunkStore(...chunks.map(({ bytes }) => bytes));
    expect((await assemble(root, store.read)).kind).toBe("found");
    expect(store.asked.length).toBeLessThanOrEqual(7);
    expect(Math.max(...store.asked.map(({ length }) => length))).toBeLessThanOrEqual(128);
    expect(new Set(store.asked.flat()).size).toBe(store.asked.flat().length);
  });

  it("should tell which chunk is missing or altered, whichever it is", async () => {
    const whole = cut(payload);
    for (const { hash, bytes } of whole.chunks) {
      const kept = keptOf(whole);
      kept.delete(hash);
      expect(await assemble(whole.root, async () => kept)).toEqual({
        kind: "damaged",
        detail: `chunk ${hash} is missing`,
      });
      const altered = Buffer.from(bytes);
      altered[altered.length - 1] = (altered.at(-1) ?? 0) ^ 1;
      kept.set(hash, altered);
      expect(await assemble(whole.root, async () => kept)).toEqual({
        kind: "damaged",
        detail: `chunk ${hash} is altered`,
      });
    }
  });

  it("should let pass what the reader throws", async () => {
    const { root } = cut(payload);
    const refused = assemble(root, () => Promise.reject(new Error("no connection")));
    await expect(refused).rejects.toThrow("no connection");
  });

  describe("with a hostile root", () => {
    it("should never throw and never hang", async () => {
      const { root, chunks } = cut(payload);
      const { read } = chunkStore(...chunks.map(({ bytes }) => bytes));
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.concat([Buffer.from([0, 1]), bytes])),
            fc
              .tuple(fc.nat(root.length - 1), fc.nat(255))
              .map(([at, byte]) => Buffer.from(root).fill(byte, at, at + 1)),
            fc.nat(root.length - 1).map((length) => root.subarray(0, length)),
          ),
          async (bytes) => {
            const found = await assemble(bytes, read);
            if (bytes[0] === 0 && found.kind === "found")
              expect(found.bytes.length).toBeLessThanOrEqual(payload.length);
            expect(references(bytes).length).toBeLessThan(20);
          },
        ),
        { numRuns: 500 },
      );
    });

    it("should refuse an unknown version, a size over 64 MiB, and sizes that do not add up", async () => {
      const leaf = noise("leaf", 200);
      const one = reference(LEAF, 200, hashOf(leaf));
      const good = node(200, [one]);
      expect((await assembled(good, leaf)).kind).toBe("found");
      expect((await assembled(Buffer.from(good).fill(2, 1, 2), leaf)).kind).toBe("damaged");
      expect((await assembled(node(201, [one]), leaf)).kind).toBe("damaged");
      expect((await assembled(node(201, [reference(LEAF, 201, hashOf(leaf))]), leaf)).kind).toBe("damaged");
      const empty = { kind: LITERAL, size: 0, bytes: Buffer.alloc(0) };
      expect((await assembled(node(200, [one, empty]), leaf)).kind).toBe("damaged");
      const huge = node(64 * MIB + 1, [reference(LEAF, 64 * MIB + 1, hashOf(leaf))]);
      expect(await assembled(huge, leaf)).toEqual({ kind: "damaged", detail: "its manifest says 67108865 bytes" });
      const other = node(201, [reference(NODE, 201, hashOf(good))]);
      expect(await assembled(other, good, leaf)).toMatchObject({ detail: "a part of 201 bytes has 200" });
      const twice = node(399, [one, reference(LEAF, 199, hashOf(leaf))]);
      expect((await assembled(twice, leaf)).kind).toBe("damaged");
    });

    it("should refuse a chain of nodes without end", async () => {
      let inner = node(1, [{ kind: LITERAL, size: 1, bytes: Buffer.from("x") }]);
      const chunks = [inner];
      for (let depth = 0; depth < 40; depth++) {
        inner = node(1, [reference(NODE, 1, hashOf(inner))]);
        chunks.push(inner);
      }
      expect(await assembled(inner, ...chunks)).toMatchObject({ kind: "damaged", detail: "its tree is too deep" });
    });

    it("should refuse a tree that unfolds into more parts than its bytes explain", async () => {
      let inner = node(1, [{ kind: LITERAL, size: 1, bytes: Buffer.from("x") }]);
      const chunks = [inner];
      for (let size = 1; size < 2 ** 24; size *= 16) {
        inner = node(
          size * 16,
          Array.from({ length: 16 }, () => reference(NODE, size, hashOf(inner))),
        );
        chunks.push(inner);
      }
      const started = process.hrtime.bigint();
      expect(await assembled(inner, ...chunks)).toMatchObject({ detail: "its tree has too many parts" });
      expect(Number(process.hrtime.bigint() - started) / 1e6).toBeLessThan(5000);
    });

    it("should make no room for bytes before the tree was seen", async () => {
      const absent = "ab".repeat(32);
      const before = process.memoryUsage().arrayBuffers;
      const roots = Array.from({ length: 20 }, () => assembled(node(64 * MIB, [reference(NODE, 64 * MIB, absent)])));
      for (const found of await Promise.all(roots)) expect(found.kind).toBe("damaged");
      expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(32 * MIB);
    });

    it("should not take a leaf for a node, nor a node for a leaf of another size", async () => {
      const leaf = noise("leaf", 300).fill(7, 0, 1);
      expect((await assembled(node(300, [reference(NODE, 300, hashOf(leaf))]), leaf)).kind).toBe("damaged");
      const inner = node(300, [reference(LEAF, 300, hashOf(leaf))]);
      expect((await assembled(node(300, [reference(LEAF, 300, hashOf(inner))]), inner, leaf)).kind).toBe("damaged");
    });
  });

  describe("references", () => {
    it("should tell nodes from leaves, and be none for a payload", () => {
      const leaf = "ab".repeat(32);
      const inner = "cd".repeat(32);
      const root = node(30, [
        { kind: LITERAL, size: 10, bytes: noise("l", 10) },
        reference(LEAF, 10, leaf),
        reference(NODE, 10, inner),
      ]);
      expect(references(root)).toEqual([leaf, inner]);
      expect(nodeReferences(root)).toEqual([inner]);
      expect(references(payload)).toEqual([]);
      expect(references(Buffer.alloc(0))).toEqual([]);
    });
  });
});
