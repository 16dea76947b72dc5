/** Payloads in a ledger file: `payloads` holds their roots, `chunks` what they share. */
import type Database from "better-sqlite3";
import { cut } from "../../payload/archive/cut.js";
import type { Blob } from "../port.js";

/** Writes within the transaction that is open. */
export class ArchiveWriter {
  readonly #isKept: Database.Statement<[digest: string], unknown>;
  readonly #insertRoot: Database.Statement<[digest: string, size: number, root: Uint8Array]>;
  readonly #insertChunk: Database.Statement<[hash: Buffer, size: number, bytes: Uint8Array]>;

  constructor(db: Database.Database) {
    this.#isKept = db.prepare("SELECT 1 FROM payloads WHERE digest = ?");
    this.#insertRoot = db.prepare("INSERT INTO payloads (digest, size, bytes) VALUES (?, ?, ?)");
    this.#insertChunk = db.prepare("INSERT OR IGNORE INTO chunks (digest, size, bytes) VALUES (?, ?, ?)");
  }

  /** The first bytes of a digest stay. */
  keep({ digest, bytes }: Blob): void {
    if (this.#isKept.get(digest) !== undefined) return;
    const { root, chunks } = cut(bytes);
    for (const chunk of chunks) this.#insertChunk.run(chunkKey(chunk.hash), chunk.bytes.byteLength, chunk.bytes);
    this.#insertRoot.run(digest, bytes.byteLength, root);
  }
}

/** Of a chunk in the table: its hash as 32 bytes. */
export function chunkKey(hash: string): Buffer {
  return Buffer.from(hash, "hex");
}
