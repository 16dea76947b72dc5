/** Puts a payload together again from what `cut` made of it, trusting nothing that it reads. */
import { MAX_PAYLOAD_BYTES } from "../wire.js";
import { chunkHash } from "./hash.js";
import { decodeNode, isNode, type Node } from "./node.js";
import type { BlobRead } from "./types.js";

/** Those of the chunks that there are, by hash, but for any above MAX_CHUNK_BYTES. */
export type ReadChunks = (hashes: readonly string[]) => Promise<ReadonlyMap<string, Uint8Array>>;

/** Levels of nodes below a manifest: a node has four parts or more, but for the last of its level. */
const MAX_LEVELS = 16;
/** Bytes of a payload for each part of its tree, on the average and at least. */
const BYTES_A_PART = 32;
const SPARE_PARTS = 64;
/** Chunks, and bytes of them, that are read at once. */
const BATCH_CHUNKS = 128;
const BATCH_BYTES = 4 * 1024 * 1024;

/**
 * What is kept under a root. Reads a level of the tree at a time, in batches. Bounded whatever the root says: 64 MiB, and a tree in
 * proportion. Throws nothing but what `read` throws.
 */
export async function assemble(root: Uint8Array, read: ReadChunks): Promise<BlobRead> {
  if (!isNode(root)) return { kind: "found", bytes: root };
  const manifest = decodeNode(root);
  if (manifest === null) return damaged("its manifest is malformed, or of a version that this build does not know");
  if (manifest.size > MAX_PAYLOAD_BYTES) return damaged(`its manifest says ${manifest.size} bytes`);
  try {
    return { kind: "found", bytes: await new Assembly(manifest, read).bytes() };
  } catch (error) {
    if (error instanceof Damage) return damaged(error.message);
    throw error;
  }
}

function damaged(detail: string): BlobRead {
  return { kind: "damaged", detail };
}

class Damage extends Error {}

/** Where the bytes of a chunk go. */
type Use = { readonly size: number; readonly at: number[] };
type Uses = Map<string, Use>;
type Batch = readonly (readonly [hash: string, use: Use])[];

class Assembly {
  readonly #manifest: Node;
  readonly #read: ReadChunks;
  readonly #literals: { readonly at: number; readonly bytes: Uint8Array }[] = [];
  readonly #leaves: Uses = new Map();
  #partsLeft: number;

  constructor(manifest: Node, read: ReadChunks) {
    this.#manifest = manifest;
    this.#read = read;
    this.#partsLeft = SPARE_PARTS + manifest.size / BYTES_A_PART;
  }

  /** Room for the payload is made once the whole tree has been seen. Throws Damage. */
  async bytes(): Promise<Uint8Array> {
    await this.#walk();
    const payload = new Uint8Array(this.#manifest.size);
    for (const { at, bytes } of this.#literals) payload.set(bytes, at);
    await this.#each(batches(this.#leaves, BATCH_BYTES), (bytes, use) => {
      if (bytes.length !== use.size) throw sizeDamage(use.size, bytes.length);
      for (const at of use.at) payload.set(bytes, at);
    });
    return payload;
  }

  async #walk(): Promise<void> {
    let nodes: Uses = new Map();
    this.#place(this.#manifest, 0, nodes);
    for (let level = 0; nodes.size > 0; level++) {
      if (level === MAX_LEVELS) throw new Damage("its tree is too deep");
      const below: Uses = new Map();
      await this.#each(batches(nodes, Number.POSITIVE_INFINITY), (bytes, use, hash) => {
        const node = decodeNode(bytes);
        if (node === null) throw new Damage(`chunk ${hash} is no node`);
        if (node.size !== use.size) throw sizeDamage(use.size, node.size);
        for (const at of use.at) this.#place(node, at, below);
      });
      nodes = below;
    }
  }

  #place(node: Node, start: number, nodes: Uses): void {
    this.#partsLeft -= node.parts.length;
    if (this.#partsLeft < 0) throw new Damage("its tree has too many parts");
    let at = start;
    for (const { kind, size, bytes } of node.parts) {
      if (kind === "literal") this.#literals.push({ at, bytes });
      else use(kind === "leaf" ? this.#leaves : nodes, bytes, size, at);
      at += size;
    }
  }

  /** Every chunk once, as long as each is what its hash says. */
  async #each(batches: Iterable<Batch>, take: (bytes: Uint8Array, use: Use, hash: string) => void): Promise<void> {
    for (const batch of batches) {
      const chunks = await this.#read(batch.map(([hash]) => hash));
      for (const [hash, use] of batch) {
        const bytes = chunks.get(hash);
        if (bytes === undefined) throw new Damage(`chunk ${hash} is missing`);
        if (chunkHash(bytes).toString("hex") !== hash) throw new Damage(`chunk ${hash} is altered`);
        take(bytes, use, hash);
      }
    }
  }
}

function use(uses: Uses, rawHash: Uint8Array, size: number, at: number): void {
  const hash = Buffer.from(rawHash.buffer, rawHash.byteOffset, rawHash.length).toString("hex");
  const known = uses.get(hash);
  if (known === undefined) uses.set(hash, { size, at: [at] });
  else if (known.size === size) known.at.push(at);
  else throw sizeDamage(known.size, size);
}

function sizeDamage(expected: number, found: number): Damage {
  return new Damage(`a part of ${expected} bytes has ${found}`);
}

/** `maxBytes`: of what the chunks of one batch stand for. */
function* batches(uses: Uses, maxBytes: number): Generator<Batch> {
  let batch: (readonly [string, Use])[] = [];
  let bytes = 0;
  for (const entry of uses) {
    if (batch.length === BATCH_CHUNKS || (batch.length > 0 && bytes + entry[1].size > maxBytes)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(entry);
    bytes += entry[1].size;
  }
  if (batch.length > 0) yield batch;
}
