import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cut } from "#src/payload/archive/cut.js";
import { nodeReferences, references } from "#src/payload/archive/references.js";
import { conversation, field, keptOf, message, newBytes, noise, restored, varint } from "./fields.js";

/** Of any shape: conversations, fields of any kind, messages that break off, bytes that are none. */
const payloads = fc.oneof(
  fc
    .array(fc.record({ seed: fc.string({ maxLength: 4 }), length: fc.nat(3000) }), { maxLength: 60 })
    .map((parts) => conversation(parts.map(({ seed, length }) => message(seed, length)))),
  fc
    .array(fc.tuple(fc.integer({ min: 1, max: 20 }), fc.uint8Array({ maxLength: 300 })), { maxLength: 60 })
    .map((fields) => field(3, Buffer.concat(fields.map(([number, bytes]) => field(number, bytes))))),
  fc
    .tuple(fc.array(fc.nat(200), { maxLength: 200 }), fc.uint8Array({ maxLength: 6000 }))
    .map(([sizes, rest]) => field(1, Buffer.concat([...sizes.map((size) => field(1, noise("s", size))), rest]))),
  fc.tuple(fc.string(), fc.nat(200_000)).map(([seed, length]) => noise(seed, length)),
  fc.tuple(fc.uint8Array({ maxLength: 50 }), fc.nat(5000)).map(([bytes, times]) => repeated(bytes, times)),
  fc.uint8Array({ maxLength: 6000 }),
);

const messages = Array.from({ length: 400 }, (_, i) => message(`turn ${i}`, 1000 + ((i * 7919) % 3000)));

function repeated(bytes: Uint8Array, times: number): Buffer {
  return Buffer.concat(Array.from({ length: times }, () => bytes));
}

describe("cut", () => {
  it("should lose nothing, whatever the bytes", async () => {
    await fc.assert(
      fc.asyncProperty(payloads, async (bytes) => {
        const read = await restored(cut(bytes));
        expect(read.kind).toBe("found");
        if (read.kind === "found") expect(Buffer.compare(read.bytes, bytes)).toBe(0);
      }),
      { numRuns: 200 },
    );
  });

  it("should cut equal bytes alike, wherever they lie", () => {
    fc.assert(
      fc.property(payloads, fc.nat(9), (bytes, before) => {
        const moved = Buffer.concat([Buffer.alloc(before), bytes, Buffer.alloc(3)]).subarray(
          before,
          before + bytes.length,
        );
        const [first, second] = [cut(bytes), cut(moved)];
        expect(Buffer.compare(first.root, second.root)).toBe(0);
        expect(first.chunks.map(({ hash }) => hash)).toEqual(second.chunks.map(({ hash }) => hash));
      }),
      { numRuns: 50 },
    );
  });

  it("should cut as it always has: otherwise nothing new is shared with what is archived", () => {
    const bytes = conversation([message("a", 2000), message("b", 300_000), ...messages.slice(0, 60)]);
    const { root, chunks } = cut(bytes);
    const digest = createHash("sha256").update(root).digest("hex");
    expect([chunks.length, digest]).toEqual([101, "0d9106f96d3579e618dd4e7c20a31da0fb7670e7d581bf0d231a9bb880307feb"]);
  });

  it("should name each chunk once, by its hash, behind what it refers to", () => {
    fc.assert(
      fc.property(payloads, (bytes) => {
        const { root, chunks } = cut(bytes);
        const before = new Set<string>();
        for (const chunk of chunks) {
          const digest = createHash("sha256").update("hookledger/chunk/v1\0").update(chunk.bytes).digest("hex");
          expect(chunk.hash).toBe(digest);
          expect(before.has(chunk.hash)).toBe(false);
          before.add(chunk.hash);
        }
        const reached = new Set<string>();
        const nodes = [root];
        const kept = keptOf({ root, chunks });
        for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
          for (const hash of references(node)) reached.add(hash);
          for (const hash of nodeReferences(node)) nodes.push(kept.get(hash) ?? Buffer.alloc(0));
        }
        expect([...reached].sort()).toEqual([...before].sort());
      }),
      { numRuns: 50 },
    );
  });

  it("should keep what is small as it is, unless it looks like a manifest", () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from("{}"), noise("x", 4096).fill(1, 0, 1)]) {
      expect(cut(bytes)).toEqual({ root: bytes, chunks: [] });
    }
    const zero = Buffer.from([0, 1, 2]);
    expect(Buffer.compare(cut(zero).root, zero)).not.toBe(0);
  });

  it("should make a chunk of each message, and of a large one several", () => {
    const messages = [message("a", 500), message("b", 10), message("c", 64_000), message("d", 400_000)];
    const chunks = cut(conversation(messages)).chunks.map(({ bytes }) => Buffer.from(bytes));
    expect(chunks[0]?.equals(field(1, message("a", 500)))).toBe(true);
    expect(chunks[1]?.equals(field(1, message("c", 64_000)))).toBe(true);
    const pieces = chunks.slice(2).filter((bytes) => bytes[0] !== 0);
    expect(pieces.length).toBeGreaterThan(8);
    expect(Math.max(...pieces.map((bytes) => bytes.length))).toBeLessThanOrEqual(64 * 1024);
    expect(
      Buffer.concat(pieces)
        .subarray(0, 400_000)
        .equals(field(1, message("d", 400_000)).subarray(0, 400_000)),
    ).toBe(true);
  });

  it("should have small nodes and a small manifest whatever the payload", () => {
    const many = Array.from({ length: 20_000 }, (_, i) => message(`m${i}`, 100));
    const tiny = field(1, repeated(Buffer.from([10, 0]), 500_000));
    const same = conversation(Array.from({ length: 20_000 }, () => message("same", 100)));
    for (const bytes of [conversation(many), tiny, same, noise("raw", 3_000_000), Buffer.alloc(3_000_000)]) {
      const { root, chunks } = cut(bytes);
      expect(root.length).toBeLessThanOrEqual(500);
      const kept = keptOf({ root, chunks });
      const nodes = [root];
      for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
        expect(node.length).toBeLessThan(900);
        for (const hash of new Set(nodeReferences(node))) nodes.push(kept.get(hash) ?? Buffer.alloc(0));
      }
    }
  });

  it("should take a length that is not the payload's for no message", async () => {
    const bytes = Buffer.concat([varint(10), varint(999_999), noise("y", 9000)]);
    expect(await restored(cut(bytes))).toEqual({ kind: "found", bytes: new Uint8Array(bytes) });
  });
});

describe("a conversation that changes", () => {
  const whole = conversation(messages);
  /** Of nodes and manifest that one edit rewrites: two nodes a level, now and then three. */
  const REWRITTEN = 4000;
  const edits = Array.from({ length: 40 }, (_, i) => i * 10);

  function worst(cost: (at: number) => number): number {
    return Math.max(...edits.map(cost));
  }

  it("should share all but a few nodes with itself a message later", () => {
    expect(
      worst((at) => {
        const before = messages.slice(0, 50 + at);
        const added = message(`added ${at}`, 2000);
        return newBytes(conversation(before), conversation([...before, added])) - added.length;
      }),
    ).toBeLessThan(REWRITTEN);
  });

  it("should share all but a few nodes with a window that has moved on", () => {
    expect(
      worst((at) => newBytes(conversation(messages.slice(at / 2)), conversation(messages.slice(at / 2 + 1)))),
    ).toBeLessThan(REWRITTEN);
  });

  it("should share all but a few nodes with a copy in which a message is redacted, or inserted, or missing", () => {
    const other = message("other", 1500);
    expect(worst((at) => newBytes(whole, conversation(messages.with(at, other))) - other.length)).toBeLessThan(
      REWRITTEN,
    );
    expect(worst((at) => newBytes(whole, conversation(messages.toSpliced(at, 0, other))) - other.length)).toBeLessThan(
      REWRITTEN,
    );
    expect(worst((at) => newBytes(whole, conversation(messages.toSpliced(at, 1))))).toBeLessThan(REWRITTEN);
  });

  it("should share most of a large message that is edited in the middle", () => {
    const large = noise("large", 1_000_000);
    const edited = Buffer.concat([large.subarray(0, 500_000), Buffer.from("inserted"), large.subarray(500_000)]);
    const cost = newBytes(conversation([field(2, large)]), conversation([field(2, edited)]));
    expect(cost).toBeLessThan(3 * 64 * 1024);
    expect(newBytes(large, edited)).toBeLessThan(3 * 64 * 1024);
  });

  it("should keep a session of 200 turns at little more than its messages", () => {
    const kept = new Map<string, number>();
    let unique = 0;
    for (let turn = 1; turn <= 200; turn++) {
      for (const added of messages.slice(2 * turn - 2, 2 * turn)) unique += added.length;
      const { root, chunks } = cut(conversation(messages.slice(0, 2 * turn)));
      kept.set(`root ${turn}`, root.length);
      for (const { hash, bytes } of chunks) kept.set(hash, bytes.length);
    }
    const total = [...kept.values()].reduce((sum, bytes) => sum + bytes);
    expect(total / unique).toBeLessThan(1.3);
  });
});
