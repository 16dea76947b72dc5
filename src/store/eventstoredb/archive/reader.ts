import type { Digest } from "../../../core/events.js";
import { assemble } from "../../../payload/archive/assemble.js";
import { chunkHash } from "../../../payload/archive/hash.js";
import type { BlobRead } from "../../../payload/archive/types.js";
import type { ServerEvent, ServerLog } from "../server-log.js";
import { InFlight } from "./in-flight.js";
import { chunkStream, contentOf, payloadStream } from "./streams.js";

const READS_AT_ONCE = 32;
/** Of chunks that were read, and are what their hashes say. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;
/** Newest events among which the content is looked for first. */
const LOOK_BACK = 4;
const SCAN = 64;

/** Reads payloads back from the server. Throws what a ServerLog's reads throw. */
export class ArchiveReader {
  readonly #log: ServerLog;
  readonly #inFlight = new InFlight({ count: READS_AT_ONCE, bytes: Number.POSITIVE_INFINITY });
  readonly #cached = new Map<string, Uint8Array>();
  #cachedBytes = 0;

  constructor(log: ServerLog) {
    this.#log = log;
  }

  async read(digest: Digest): Promise<BlobRead> {
    const root = await this.#content(payloadStream(digest));
    if (root === null) return { kind: "missing" };
    if (root === "empty") return { kind: "damaged", detail: `${payloadStream(digest)} has no content` };
    return assemble(root, (hashes) => this.#chunks(hashes));
  }

  async #chunks(hashes: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>> {
    const found = new Map<string, Uint8Array>();
    await Promise.all(
      hashes.map(async (hash) => {
        const bytes = this.#cached.get(hash) ?? (await this.#inFlight.run(0, () => this.#content(chunkStream(hash))));
        if (bytes === null || bytes === "empty") return;
        found.set(hash, bytes);
        this.#cache(hash, bytes);
      }),
    );
    return found;
  }

  #cache(hash: string, bytes: Uint8Array): void {
    if (this.#cached.delete(hash)) this.#cachedBytes -= bytes.length;
    else if (chunkHash(bytes).toString("hex") !== hash) return;
    this.#cached.set(hash, bytes);
    this.#cachedBytes += bytes.length;
    for (const [oldest, { length }] of this.#cached) {
      if (this.#cachedBytes <= MAX_CACHED_BYTES) return;
      this.#cached.delete(oldest);
      this.#cachedBytes -= length;
    }
  }

  /** The newest content; null if there is no stream, "empty" if nothing in it is content. */
  async #content(stream: string): Promise<Uint8Array | null | "empty"> {
    const last = await this.#log.readStream(stream, { direction: "backward", max: LOOK_BACK });
    if (last === null) return null;
    return newest(last) ?? (last.length < LOOK_BACK ? "empty" : this.#contentBefore(stream));
  }

  /** Where many marks stand behind it. */
  async #contentBefore(stream: string): Promise<Uint8Array | "empty"> {
    let content: Uint8Array | "empty" = "empty";
    for (let from = 0; ; ) {
      const page = await this.#log.readStream(stream, { direction: "forward", from, max: SCAN });
      const last = page?.at(-1);
      if (page === null || last === undefined) return content;
      content = newest(page.toReversed()) ?? content;
      from = last.revision + 1;
    }
  }
}

function newest(newestFirst: readonly ServerEvent[]): Uint8Array | undefined {
  for (const event of newestFirst) {
    const content = contentOf(event);
    if (content !== null) return content;
  }
  return undefined;
}
