/** Writes a bundle, in the calling thread, page by page: what a page brought is there whole or not at all. */
import { accessSync, constants, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type Database from "better-sqlite3";
import type { Digest } from "../../core/events.js";
import { HookledgerError } from "../../errors.js";
import { cut } from "../../payload/archive/cut.js";
import { ENGINE_VERSION } from "../../version.js";
import type { StreamEvents } from "../port.js";
import { createDatabase, isErrno } from "../sqlite/database-file.js";
import {
  type BundleDescription,
  type BundleSelection,
  printDescription,
  printSelection,
  selectionText,
} from "./description.js";
import { sumBundle } from "./digest.js";
import { MAX_EVENTS, printEvents } from "./event-text.js";
import { bundleError, connectBundle, findBundle, readDescription } from "./file.js";
import { MAX_CHAIN_BYTES, MAX_NAME_BYTES, MAX_SESSION_BYTES, MAX_STREAM_BYTES, SCHEMA } from "./schema.js";

/** Most streams take a page or two. */
const PAGE_BYTES = 8192;

export type BundleOrigin = {
  /** URL of the ledger, without credentials. */
  readonly source: string;
  readonly selection: BundleSelection;
  /** ms since 1970 */
  readonly now: number;
};

/** What became of a stream. `from`: the first revision that the bundle did not have. */
export type Put =
  | { readonly kind: "added" | "grown"; readonly from: number }
  | { readonly kind: "kept" }
  /** The bundle has a stream of this name with other content, and keeps it. */
  | { readonly kind: "conflict" }
  /** No bundle can hold it. */
  | { readonly kind: "unfit"; readonly detail: string };

export class BundleWriter {
  readonly #path: string;
  readonly #db: Database.Database;
  readonly #sql: ReturnType<typeof prepare>;
  readonly #source: string;
  #description: BundleDescription;

  private constructor(path: string, db: Database.Database, description: BundleDescription, source: string) {
    this.#path = path;
    this.#db = db;
    this.#sql = prepare(db);
    this.#description = description;
    this.#source = source;
  }

  /**
   * Creates the bundle, 0600, or goes on with one that was exported by the same selection. Throws HL_USAGE (another selection, no
   * folder for it), HL_BUNDLE and HL_STORE_VERSION (no bundle: left as it is), HL_STORE_LOCKED, HL_STORE_READONLY, HL_STORE_FULL.
   */
  static open(path: string, origin: BundleOrigin): BundleWriter {
    if (findBundle(path) === null) create(path, origin);
    const real = findBundle(path) ?? path;
    const db = connectBundle(real, "write");
    try {
      const description = readDescription(db, real);
      requireSelection(description, origin.selection, path);
      // Nobody else may write meanwhile. Before it is finished once there is nothing that power loss could take.
      db.pragma("locking_mode = EXCLUSIVE");
      db.pragma(`synchronous = ${description.state === "new" ? "OFF" : "FULL"}`);
      return new BundleWriter(real, db, description, origin.source);
    } catch (error) {
      db.close();
      throw bundleError(error, real);
    }
  }

  /** Counts of what the ledger could not provide are those of every export into the bundle. */
  get description(): BundleDescription {
    return this.#description;
  }

  /** Begins a page; throws as `open`. */
  begin(): void {
    this.#guarded(() => this.#sql.begin.run());
  }

  /** Ends it: it survives the death of the process. */
  commit(): void {
    this.#guarded(() => this.#sql.commit.run());
  }

  /** What the bundle has of a stream is never changed, only continued. */
  put(stream: StreamEvents): Put {
    return this.#guarded(() => this.#put(stream));
  }

  hasPayload(digest: Digest): boolean {
    return this.#guarded(() => this.#sql.payload.get(digest) !== undefined);
  }

  putPayload(digest: Digest, bytes: Uint8Array): void {
    this.#guarded(() => {
      const { root, chunks } = cut(bytes);
      this.#unfinished({});
      for (const { hash, bytes } of chunks) this.#sql.insertChunk.run(hash, bytes);
      this.#sql.insertPayload.run(digest, root);
    });
  }

  /** Within a page: payloads that its events name, and the ledger does not have. */
  lacks(lacking: { readonly missing: number; readonly damaged: number }): void {
    const { missing, damaged } = this.#description;
    this.#guarded(() => this.#unfinished({ missing: missing + lacking.missing, damaged: damaged + lacking.damaged }));
  }

  /** Computes the digest and makes everything durable. A finished bundle to which nothing was added stays as it is. */
  finish(): BundleDescription {
    return this.#guarded(() => {
      if (this.#description.state === "finished") return this.#description;
      const sum = sumBundle(this.#db, this.#path);
      // The first commit puts the contents on disk, the second one the word that they are there.
      this.#db.pragma("synchronous = FULL");
      this.#describe({});
      this.#describe({ ...sum, state: "finished" });
      return this.#description;
    });
  }

  close(): void {
    this.#db.close();
  }

  #put({ stream, head, events }: StreamEvents): Put {
    const unfit = reasonUnfit({ stream, head, events });
    if (head === null || unfit !== null) return { kind: "unfit", detail: unfit ?? "it has no head" };
    const { session, revision, chain } = head;
    const known = this.#sql.stream.get(stream);
    if (known?.revision === revision && known.chain === chain) return { kind: "kept" };
    const text = printEvents(events);
    if (text.length > MAX_STREAM_BYTES || Buffer.byteLength(text) > MAX_STREAM_BYTES) {
      return { kind: "unfit", detail: `its events take more than ${MAX_STREAM_BYTES} bytes` };
    }
    if (known === undefined) {
      this.#unfinished({});
      this.#sql.insertStream.run(stream, session, revision, chain, text);
      return { kind: "added", from: 0 };
    }
    const there = this.#sql.events.get(known.place)?.events;
    if (typeof there !== "string") return { kind: "conflict" };
    if (known.revision > revision) return { kind: continues(text, there) ? "kept" : "conflict" };
    if (!continues(there, text)) return { kind: "conflict" };
    this.#unfinished({});
    this.#sql.growStream.run(revision, chain, text, known.place);
    return { kind: "grown", from: known.revision + 1 };
  }

  /** Whatever changes the contents takes the digest away with it. */
  #unfinished(counts: Partial<BundleDescription>): void {
    const { state } = this.#description;
    if (state !== "finished" && Object.keys(counts).length === 0) return;
    this.#describe({ ...counts, state: state === "new" ? "new" : "growing", digest: null });
  }

  #describe(changes: Partial<BundleDescription>): void {
    this.#description = { ...this.#description, source: this.#source, engineVersion: ENGINE_VERSION, ...changes };
    this.#sql.describe.run(printDescription(this.#description));
  }

  #guarded<T>(write: () => T): T {
    try {
      return write();
    } catch (error) {
      throw bundleError(error, this.#path);
    }
  }
}

function create(path: string, { source, selection, now }: BundleOrigin): void {
  requireFolder(path);
  const description: BundleDescription = {
    engineVersion: ENGINE_VERSION,
    source,
    selection,
    createdAt: new Date(now).toISOString(),
    state: "new",
    digest: null,
    streams: 0,
    events: 0,
    payloads: 0,
    missing: 0,
    damaged: 0,
  };
  try {
    createDatabase(resolve(path), (db) => {
      db.pragma(`page_size = ${PAGE_BYTES}`);
      db.exec(SCHEMA);
      db.prepare("INSERT INTO description VALUES (?)").run(printDescription(description));
    });
  } catch (error) {
    throw bundleError(error, path);
  }
}

/** A mistyped path makes no folders. */
function requireFolder(path: string): void {
  const folder = dirname(resolve(path));
  try {
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) {
      throw new HookledgerError("HL_USAGE", `${path} cannot be written: its folder does not exist`);
    }
    accessSync(folder, constants.W_OK);
  } catch (error) {
    if (error instanceof HookledgerError) throw error;
    const why = isErrno(error, "EROFS") ? "its file system is read-only" : "permission denied";
    throw new HookledgerError("HL_USAGE", `${path} cannot be written: ${why}`, { cause: error });
  }
}

function requireSelection(description: BundleDescription, selection: BundleSelection, path: string): void {
  if (printSelection(description.selection) === printSelection(selection)) return;
  throw new HookledgerError(
    "HL_USAGE",
    `the bundle ${path} holds another selection: ${selectionText(description.selection)}`,
    {
      hint: "Export with that selection to go on with it, or to another file.",
    },
  );
}

/** Of a stream that is not what a row can say; whether it is sound is not judged: damage is evidence, too. */
function reasonUnfit({ stream, head, events }: StreamEvents): string | null {
  if (head === null) return "it has no head";
  if (Buffer.byteLength(stream) > MAX_NAME_BYTES) return "its name is no dispatch's";
  if (events.length > MAX_EVENTS) return `it has more than ${MAX_EVENTS} events`;
  const gap = events.findIndex(({ revision }, place) => revision !== place);
  if (gap >= 0) return `revision ${gap} is missing`;
  const { revision, chain, session } = head;
  const fits =
    Number.isSafeInteger(revision) &&
    revision >= 0 &&
    revision < MAX_EVENTS &&
    Buffer.byteLength(chain) <= MAX_CHAIN_BYTES &&
    Buffer.byteLength(session ?? "") <= MAX_SESSION_BYTES;
  return fits ? null : "its head is none";
}

/** Does the longer list of events begin with all of the shorter one? */
function continues(shorter: string, longer: string): boolean {
  return longer.startsWith(shorter.slice(0, -1)) && (longer[shorter.length - 1] === "," || shorter === longer);
}

type StreamRow = { readonly place: number; readonly revision: number; readonly chain: string };

function prepare(db: Database.Database) {
  return {
    begin: db.prepare<[]>("BEGIN IMMEDIATE"),
    commit: db.prepare<[]>("COMMIT"),
    describe: db.prepare<[string]>("UPDATE description SET text = ?"),
    stream: db.prepare<[string], StreamRow>("SELECT place, revision, chain FROM streams WHERE stream = ?"),
    events: db.prepare<[number], { readonly events: unknown }>("SELECT events FROM streams WHERE place = ?"),
    insertStream: db.prepare<[string, string | null, number, string, string]>(
      "INSERT INTO streams (stream, session, revision, chain, events) VALUES (?, ?, ?, ?, ?)",
    ),
    growStream: db.prepare<[number, string, string, number]>(
      "UPDATE streams SET revision = ?, chain = ?, events = ? WHERE place = ?",
    ),
    payload: db.prepare<[string], unknown>("SELECT 1 FROM payloads WHERE digest = ?"),
    insertPayload: db.prepare<[string, Uint8Array]>("INSERT OR IGNORE INTO payloads (digest, root) VALUES (?, ?)"),
    insertChunk: db.prepare<[string, Uint8Array]>("INSERT OR IGNORE INTO chunks (hash, bytes) VALUES (?, ?)"),
  };
}
