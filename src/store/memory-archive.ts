/** Payloads of a ledger in memory. */
import type { Digest } from "../core/events.js";
import { assemble } from "../payload/archive/assemble.js";
import { cut } from "../payload/archive/cut.js";
import { references } from "../payload/archive/references.js";
import type { BlobRead } from "../payload/archive/types.js";
import type { Blob, Collected } from "./port.js";

export class MemoryArchive {
  readonly #roots = new Map<Digest, Uint8Array>();
  readonly #chunks = new Map<string, Uint8Array>();

  /** The first bytes of a digest stay. What is kept is a copy. */
  keep({ digest, bytes }: Blob): void {
    if (this.#roots.has(digest)) return;
    const { root, chunks } = cut(bytes);
    this.#roots.set(digest, new Uint8Array(root));
    for (const chunk of chunks) {
      if (!this.#chunks.has(chunk.hash)) this.#chunks.set(chunk.hash, new Uint8Array(chunk.bytes));
    }
  }

  async read(digest: Digest): Promise<BlobRead> {
    const root = this.#roots.get(digest);
    if (root === undefined) return { kind: "missing" };
    const read = await assemble(root, async () => this.#chunks);
    return read.kind === "found" && read.bytes === root ? { kind: "found", bytes: new Uint8Array(root) } : read;
  }

  /** Removes what none of the digests needs. */
  collect(referenced: ReadonlySet<string>, dryRun: boolean): Collected {
    const live = new Set<string>();
    const roots = [...this.#roots];
    const next = roots.filter(([digest]) => referenced.has(digest)).map(([, root]) => root);
    for (let bytes = next.pop(); bytes !== undefined; bytes = next.pop()) {
      for (const hash of references(bytes)) {
        const chunk = this.#chunks.get(hash);
        if (chunk === undefined || live.has(hash)) continue;
        live.add(hash);
        next.push(chunk);
      }
    }
    const deadRoots = roots.filter(([digest]) => !referenced.has(digest));
    const deadChunks = [...this.#chunks].filter(([hash]) => !live.has(hash));
    if (!dryRun) {
      for (const [digest] of deadRoots) this.#roots.delete(digest);
      for (const [hash] of deadChunks) this.#chunks.delete(hash);
    }
    const removed = deadRoots.length + deadChunks.length;
    return {
      kept: roots.length - deadRoots.length + live.size,
      removed,
      removedBytes: [...deadRoots, ...deadChunks].reduce((sum, [, bytes]) => sum + bytes.byteLength, 0),
      marked: 0,
    };
  }
}
