import type { Digest } from "../../../core/events.js";
import { assemble } from "../../../payload/archive/assemble.js";
import { chunkHash } from "../../../payload/archive/hash.js";
import { type BlobRead, MAX_CHUNK_BYTES } from "../../../payload/archive/types.js";
import type { ServerEvent, ServerLog } from "../server-log.js";
import { type Moment, momentOf, msSince, type Time } from "../time.js";
import { InFlight } from "./in-flight.js";
import { chunkStream, contentOf, payloadStream } from "./streams.js";

const READS_AT_ONCE = 32;
/** Of chunks that were read, and are what their hashes say. */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;
/** ms after which a chunk is read from the server again: what is removed or altered there is noticed after so long at the latest. */
const MAX_CACHED_MS = 5000;
/** Newest events among which the content is looked for first. */
const LOOK_BACK = 4;
const SCAN = 64;

type Cached = { readonly bytes: Uint8Array; readonly read: Moment };

/**
 * Reads payloads back from the server: the root each time, and of the chunks what was not read just now, for another payload that shares
 * them. Throws what a ServerLog's reads throw.
 */
export class ArchiveReader {
  readonly #log: ServerLog;
  readonly #time: Time;
  readonly #inFlight = new InFlight({ count: READS_AT_ONCE, bytes: Number.POSITIVE_INFINITY });
  readonly #cached = new Map<string, Cached>();
  #cachedBytes = 0;

  constructor(log: ServerLog, time: Time) {
    this.#log = log;
    this.#time = time;
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
        const known = this.#known(hash);
        if (known !== undefined) {
          found.set(hash, known);
          return;
        }
        const read = momentOf(this.#time);
        const bytes = await this.#inFlight.run(0, () => this.#content(chunkStream(hash)));
        if (bytes === null || bytes === "empty" || bytes.length > MAX_CHUNK_BYTES) return;
        found.set(hash, bytes);
        if (chunkHash(bytes).toString("hex") === hash) this.#cache(hash, { bytes, read });
      }),
    );
    return found;
  }

  #known(hash: string): Uint8Array | undefined {
    const cached = this.#cached.get(hash);
    if (cached === undefined) return undefined;
    if (msSince(this.#time, cached.read) <= MAX_CACHED_MS) return cached.bytes;
    this.#forget(hash);
    return undefined;
  }

  #cache(hash: string, cached: Cached): void {
    this.#forget(hash);
    this.#cached.set(hash, cached);
    this.#cachedBytes += cached.bytes.length;
    for (const oldest of this.#cached.keys()) {
      if (this.#cachedBytes <= MAX_CACHED_BYTES) return;
      this.#forget(oldest);
    }
  }

  #forget(hash: string): void {
    this.#cachedBytes -= this.#cached.get(hash)?.bytes.length ?? 0;
    this.#cached.delete(hash);
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
