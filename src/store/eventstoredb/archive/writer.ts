import { HookledgerError } from "../../../errors.js";
import { cut } from "../../../payload/archive/cut.js";
import type { Blob } from "../../port.js";
import { isConflict, patiently } from "../patience.js";
import { Recent } from "../recent.js";
import type { Expected, ServerEvent, ServerLog } from "../server-log.js";
import { earlier, type Moment, momentOf, msSince, type Time } from "../time.js";
import { InFlight } from "./in-flight.js";
import { chunkStream, content, contentOf, isCondemnation, payloadStream } from "./streams.js";

/** What was there is not looked at again for so long. */
const KNOWN = { maxAgeMs: 10 * 60 * 1000, maxEntries: 64 * 1024 };
/** ms after which something that was there may have been condemned, and deleted: far less than any grace. */
const STALE_MS = 20 * 60 * 1000;
/** Bytes of one event of content: what a server takes, less what it adds. */
const MAX_CONTENT = 900 * 1024;
const IN_FLIGHT = { count: 64, bytes: 4 * 1024 * 1024 };
/** Newest events among which the content is looked for. */
const LOOK_BACK = 8;
const MAX_ATTEMPTS = 16;

/** That something is kept, as of the longest ago that any part of it was seen. */
export type Kept = { readonly since: Moment };

/** Keeps payloads on the server. One for each appending connection. */
export class ArchiveWriter {
  readonly #log: ServerLog;
  readonly #time: Time;
  readonly #inFlight = new InFlight(IN_FLIGHT);
  readonly #known: Recent;
  readonly #pending = new Map<string, Promise<Moment>>();

  constructor(log: ServerLog, time: Time) {
    this.#log = log;
    this.#time = time;
    this.#known = new Recent(time, KNOWN);
  }

  /**
   * Resolves once all of it is acknowledged: only then may an event that refers to it be sent. Writes what is missing. If `isStale`
   * by the time that event is acknowledged, store again before anybody is told.
   * Throws HL_STORE_UNAVAILABLE, HL_STORE_DENIED, HL_STORE_CLOSED, HL_LIMIT_APPEND, HL_STORE_CORRUPT (a stream was deleted for good).
   */
  async store(blobs: readonly Blob[]): Promise<Kept> {
    const kept = await Promise.all(blobs.map((blob) => this.#store(blob)));
    return { since: kept.reduce(earlier, momentOf(this.#time)) };
  }

  /** May a collection have deleted it since it was seen? */
  isStale({ since }: Kept): boolean {
    return msSince(this.#time, since) > STALE_MS;
  }

  async #store({ digest, bytes }: Blob): Promise<Moment> {
    const { root, chunks } = cut(bytes);
    const moments = await Promise.all(chunks.map((chunk) => this.#put(chunkStream(chunk.hash), chunk.bytes)));
    return moments.reduce(earlier, await this.#put(payloadStream(digest), root));
  }

  /** When it was there. */
  #put(stream: string, bytes: Uint8Array): Promise<Moment> | Moment {
    const known = this.#known.get(stream) ?? this.#pending.get(stream);
    if (known !== undefined) return known;
    const pending = this.#inFlight
      .run(bytes.length, () => this.#settle(stream, bytes))
      .finally(() => this.#pending.delete(stream));
    this.#pending.set(stream, pending);
    return pending;
  }

  async #settle(stream: string, bytes: Uint8Array): Promise<Moment> {
    if (bytes.length > MAX_CONTENT) {
      throw new HookledgerError("HL_LIMIT_APPEND", `${stream} would have ${bytes.length} bytes`);
    }
    let expected: Expected = "none";
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      let asked = momentOf(this.#time);
      if (await this.#append(stream, expected, bytes)) return this.#seen(stream, asked);
      asked = momentOf(this.#time);
      const events = await this.#newest(stream);
      const last = events?.[0];
      if (last !== undefined && !isCondemnation(last) && holds(events, bytes)) return this.#seen(stream, asked);
      expected = last?.revision ?? (events === null ? "none" : "any");
    }
    throw new HookledgerError(
      "HL_STORE_CORRUPT",
      `${stream} of the archive cannot be written: it was deleted for good`,
    );
  }

  /** false: the stream is not at the expected revision. */
  async #append(stream: string, expected: Expected, bytes: Uint8Array): Promise<boolean> {
    try {
      await patiently(this.#time, () => this.#log.append(stream, expected, [content(bytes)]));
      return true;
    } catch (error) {
      if (isConflict(error)) return false;
      throw error;
    }
  }

  #newest(stream: string): Promise<readonly ServerEvent[] | null> {
    return patiently(this.#time, () => this.#log.readStream(stream, { direction: "backward", max: LOOK_BACK }));
  }

  #seen(stream: string, then: Moment): Moment {
    this.#known.add(stream, then);
    return then;
  }
}

/** Is it what a reader would find? */
function holds(newestFirst: readonly ServerEvent[] | null | undefined, bytes: Uint8Array): boolean {
  for (const event of newestFirst ?? []) {
    const found = contentOf(event);
    if (found !== null) return Buffer.compare(found, bytes) === 0;
  }
  return false;
}
