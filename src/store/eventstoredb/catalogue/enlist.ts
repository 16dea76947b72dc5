import { HookledgerError } from "../../../errors.js";
import type { StreamName } from "../../port.js";
import { isConflict, patiently } from "../patience.js";
import { Recent } from "../recent.js";
import type { ServerDraft, ServerLog } from "../server-log.js";
import { momentOf, type Time } from "../time.js";
import {
  dispatchEntry,
  idOf,
  indexOf,
  type Listing,
  leafOf,
  listingsOf,
  prefixEntry,
  readEntry,
  sessionIndexOf,
} from "./entries.js";

/** How long a directory's entry is taken to be there once it was seen or written. */
const KNOWN = { maxAgeMs: 10 * 60 * 1000, maxEntries: 4096 };
/** Entries at the end of a directory among which one is looked for before it is written again. */
const LOOK_BACK = 64;

export type Enlisting = {
  /**
   * Every entry is on its way to the server: what is appended from then on arrives behind them. null: so it is already, as for all
   * but the first dispatches of 32 seconds. Never rejects.
   */
  readonly sent: Promise<void> | null;
  /**
   * Every entry is acknowledged; a dispatch is not before that. Rejects with HL_STORE_UNAVAILABLE, HL_STORE_DENIED, HL_STORE_CLOSED,
   * or HL_STORE_CORRUPT (a stream of the catalogue was deleted for good); nobody needs to be there to catch it. Enlist again then.
   */
  readonly written: Promise<void>;
};

/** Enters dispatches into the catalogue. One for each appending connection. */
export class Enlister {
  readonly #log: ServerLog;
  readonly #time: Time;
  readonly #known: Recent;
  readonly #pending = new Map<string, Listed>();

  constructor(log: ServerLog, time: Time) {
    this.#log = log;
    this.#time = time;
    this.#known = new Recent(time, KNOWN);
  }

  /** To be called before the first append of a stream, and again before a repetition of it. */
  enlist(stream: StreamName, session: string | null): Enlisting {
    const id = idOf(stream);
    const written: Promise<void>[] = [];
    const sent: Promise<void>[] = [];
    for (const listing of listingsOf(id)) {
      const listed = this.#list(listing);
      if (listed === null) continue;
      sent.push(listed.sent);
      written.push(listed.written);
    }
    if (session !== null) written.push(this.#append(sessionIndexOf(session), () => dispatchEntry(id, session)));
    written.push(this.#append(indexOf(leafOf(id)), () => dispatchEntry(id, session !== null)));
    return { sent: sent.length === 0 ? null : all(sent), written: silenced(all(written)) };
  }

  /** null: it is there. */
  #list(listing: Listing): Listed | null {
    const key = `${listing.index} ${listing.prefix}`;
    if (this.#known.get(key) !== undefined) return null;
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const listed = this.#lookOrWrite(listing, key);
    this.#pending.set(key, listed);
    return listed;
  }

  #lookOrWrite(listing: Listing, key: string): Listed {
    const asked = momentOf(this.#time);
    const writing = this.#isListed(listing).then((there) => ({
      written: there ? DONE : this.#append(listing.index, () => prefixEntry(listing.prefix)),
    }));
    const written = writing
      .then(({ written }) => written)
      .then(() => this.#known.add(key, asked))
      .finally(() => this.#pending.delete(key));
    return { sent: writing.then(() => undefined), written: silenced(written) };
  }

  /** Short-lived processes would otherwise each leave an entry. */
  async #isListed({ index, prefix }: Listing): Promise<boolean> {
    try {
      const last = await this.#log.readStream(index, { direction: "backward", max: LOOK_BACK });
      return last?.some((event) => readEntry(event)?.name === prefix) ?? false;
    } catch {
      return false;
    }
  }

  async #append(index: string, draft: () => ServerDraft): Promise<void> {
    try {
      await patiently(this.#time, () => this.#log.append(index, "any", [draft()]));
    } catch (error) {
      if (!isConflict(error)) throw error;
      throw new HookledgerError("HL_STORE_CORRUPT", `${index} of the catalogue was deleted for good`, { cause: error });
    }
  }
}

type Listed = { readonly sent: Promise<void>; readonly written: Promise<void> };

const DONE = Promise.resolve();

async function all(promises: readonly Promise<void>[]): Promise<void> {
  await Promise.all(promises);
}

function silenced(promise: Promise<void>): Promise<void> {
  promise.catch(() => undefined);
  return promise;
}
