/** A store by its URL. */
import { HookledgerError } from "../errors.js";
import { openBundle } from "./bundle/store.js";
import { isServerUrl } from "./eventstoredb/address.js";
import { openEventStoreDb } from "./eventstoredb/store.js";
import { openMemoryStore } from "./memory.js";
import type { EventStore } from "./port.js";
import { openSqliteStore } from "./sqlite/store.js";

export type OpenStoreOptions = {
  /** "read" never creates or changes anything. */
  readonly mode: "read" | "write";
};

/**
 * `memory:`, `sqlite:<path>` or, to read, `bundle:<path>`. Throws HL_STORE_URL for anything else, and what opening that store throws.
 */
export async function openStore(url: string, options: OpenStoreOptions): Promise<EventStore> {
  if (url === "memory:") return openMemoryStore();
  if (url.startsWith("sqlite:")) return openSqliteStore(pathOf("sqlite:", url), options);
  if (url.startsWith("bundle:")) return openBundleToRead(pathOf("bundle:", url), options);
  if (isServerUrl(url)) return openEventStoreDb(url, options);
  throw badUrl(
    unnamed(url),
    "Write sqlite:<path>, for example sqlite:.hookledger/ledger.db, esdb://host:port or memory:, or to read bundle:<path>.",
  );
}

function openBundleToRead(path: string, { mode }: OpenStoreOptions): EventStore {
  if (mode === "read") return openBundle(path);
  throw new HookledgerError("HL_STORE_READONLY", `the bundle ${path} can only be read`, {
    hint: "hookledger import copies it into a ledger.",
  });
}

function pathOf(scheme: "sqlite:" | "bundle:", url: string): string {
  const path = url.slice(scheme.length);
  if (path === "" || path.includes("\0")) throw badUrl(`a ${scheme} URL needs a path`, `Write ${scheme}<path>.`);
  if (path !== path.trim()) throw badUrl(`the path of a ${scheme} URL begins or ends with white space`, "Remove it.");
  return path;
}

/** Never the whole URL: it may hold a password. */
function unnamed(url: string): string {
  const scheme = /^[A-Za-z][A-Za-z0-9+.-]{0,31}:/.exec(url)?.[0];
  if (scheme === undefined) return "the store URL has no scheme";
  return scheme === "memory:" ? "nothing may follow memory:" : `"${scheme}" names no store`;
}

function badUrl(message: string, hint: string): HookledgerError {
  return new HookledgerError("HL_STORE_URL", message, { hint });
}
