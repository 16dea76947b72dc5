/** Which file a process was started from. */

import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import type { Digest } from "../../core/events.js";

type Identity = { readonly dev: bigint; readonly ino: bigint; readonly size: bigint; readonly ctimeNs: bigint };

/** SHA-256 of a file's plain bytes, as `sha256sum` prints it; read again only where the file is another one. */
export class FileDigest {
  readonly #path: string;
  #known: { readonly identity: Identity; readonly digest: Digest } | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** Of the file as it is now. Throws what the file system throws. */
  async now(): Promise<Digest> {
    const identity = await this.#identity();
    if (this.#known !== null && isSame(this.#known.identity, identity)) return this.#known.digest;
    const hash = createHash("sha256");
    await pipeline(createReadStream(this.#path), hash);
    const digest: Digest = `sha256:${hash.digest("hex")}`;
    this.#known = { identity, digest };
    return digest;
  }

  /** Is the file still the one that `now` read? */
  async holds(): Promise<boolean> {
    return this.#known !== null && isSame(this.#known.identity, await this.#identity());
  }

  async #identity(): Promise<Identity> {
    const { dev, ino, size, ctimeNs } = await stat(this.#path, { bigint: true });
    return { dev, ino, size, ctimeNs };
  }
}

function isSame(one: Identity, other: Identity): boolean {
  return one.dev === other.dev && one.ino === other.ino && one.size === other.size && one.ctimeNs === other.ctimeNs;
}
