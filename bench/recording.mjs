// What recording costs: dispatches made durable in SQLite beside the same rows written by better-sqlite3 alone.
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import Database from "better-sqlite3";
import { createKernel, openStore } from "hookledger";
import { fiveHooks, folder, handlers, toolCall } from "./fixtures.mjs";
import { heading, percentile, row } from "./measure.mjs";

const ROUNDS = 7;
const ALONE = 1_000;
const AT_ONCE = 64;
const BATCHES = 100;
const SLICES = 10_000;

export async function recording() {
  heading(
    "5 in-process subscribers, 12 events and a head, durable in SQLite (WAL, synchronous=FULL)",
    "dispatches a second until each decision is on disk, beside better-sqlite3 writing the same rows in the calling thread, in turn on one disk; one dispatch a transaction, and 64 in one where 64 are in flight",
    "another disk than this machine's; several processes on one ledger; large payloads",
  );
  const path = folder();
  const config = fiveHooks(path, "host");
  const kernel = await createKernel({ config, store: `sqlite:${join(path, "ledger.db")}`, host: { five: handlers } });
  const raw = new RawWriter(join(path, "raw.db"), await recordedDispatch(config));
  const dispatch = () => kernel.dispatch(toolCall, { session: "session-1", turn: "turn-1" });
  const alone = await inTurn({
    raw: async () => {
      for (let i = 0; i < ALONE; i++) raw.write(1);
      return ALONE;
    },
    hookledger: async () => {
      for (let i = 0; i < ALONE; i++) await dispatch();
      return ALONE;
    },
  });
  report("one dispatch after the other", alone, 45);
  const atOnce = await inTurn({
    raw: async () => {
      for (let i = 0; i < BATCHES; i++) raw.write(AT_ONCE);
      return BATCHES * AT_ONCE;
    },
    hookledger: async () => {
      let left = BATCHES * AT_ONCE;
      const lane = async () => {
        while (left-- > 0) await dispatch();
      };
      await Promise.all(Array.from({ length: AT_ONCE }, lane));
      return BATCHES * AT_ONCE;
    },
  });
  report("64 dispatches in flight", atOnce, 60);
  await busy(dispatch);
  await kernel.close();
  raw.close();
}

/** Time that the main thread is not idle, a dispatch, one after the other: our own work, the handlers' (none) and garbage collection. */
async function busy(dispatch) {
  const active = [];
  let before = performance.eventLoopUtilization();
  for (let i = 0; i < SLICES; i++) {
    await dispatch();
    const now = performance.eventLoopUtilization();
    active.push(now.active - before.active);
    before = now;
  }
  row(
    "main thread busy a dispatch (event loop, active)",
    `${percentile(active, 50).toFixed(3)} ms`,
    `p99 ${percentile(active, 99).toFixed(2)} ms, p99.9 ${percentile(active, 99.9).toFixed(2)} ms; target p99.9 ≤ 5 ms`,
  );
}

/** Dispatches a second of each subject, round by round in turn; the first round warms up. */
async function inTurn(subjects) {
  const rates = new Map(Object.keys(subjects).map((name) => [name, []]));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [name, run] of Object.entries(subjects)) {
      const start = performance.now();
      const count = await run();
      if (round > 0) rates.get(name).push((count / (performance.now() - start)) * 1000);
    }
  }
  return { raw: percentile(rates.get("raw"), 50), ours: percentile(rates.get("hookledger"), 50) };
}

function report(what, { raw, ours }, target) {
  row(`${what}: better-sqlite3`, `${raw.toFixed(0)}/s`);
  row(
    `${what}: hookledger`,
    `${ours.toFixed(0)}/s`,
    `${((100 * ours) / raw).toFixed(0)} % of it; target ≥ ${target} %`,
  );
}

/** The rows of one dispatch, as hookledger writes them. */
export async function recordedDispatch(config) {
  const store = await openStore("memory:", { mode: "write" });
  const kernel = await createKernel({ config, store, host: { five: handlers } });
  await kernel.dispatch(toolCall, { session: "session-1", turn: "turn-1" });
  await kernel.close();
  for await (const [stream] of store.readStreams({ order: "oldest" })) return stream;
  throw new Error("nothing was recorded");
}

class RawWriter {
  #db;
  #insert;
  #head;
  #rows;
  #dispatches = 0;

  constructor(path, stream) {
    this.#db = new Database(path);
    this.#db.pragma("journal_mode = WAL");
    this.#db.pragma("synchronous = FULL");
    this.#db.exec(`
      CREATE TABLE events (position INTEGER PRIMARY KEY, stream TEXT NOT NULL, revision INTEGER NOT NULL, id TEXT NOT NULL,
        type TEXT NOT NULL, data TEXT NOT NULL, metadata TEXT NOT NULL, UNIQUE (stream, revision));
      CREATE TABLE heads (stream TEXT PRIMARY KEY, revision INTEGER NOT NULL, chain TEXT NOT NULL, session TEXT,
        position INTEGER NOT NULL) WITHOUT ROWID;
      CREATE INDEX heads_by_session ON heads (session, stream);`);
    this.#insert = this.#db.prepare(
      "INSERT INTO events (stream, revision, id, type, data, metadata) VALUES (?, ?, ?, ?, ?, ?)",
    );
    this.#head = this.#db.prepare(
      "INSERT INTO heads (stream, revision, chain, session, position) VALUES (?, ?, ?, ?, ?)",
    );
    this.#rows = stream;
  }

  /** So many dispatches in one transaction. */
  write(count) {
    this.#db.exec("BEGIN IMMEDIATE");
    for (let i = 0; i < count; i++) this.#one();
    this.#db.exec("COMMIT");
  }

  #one() {
    const { events, head } = this.#rows;
    const name = `hookdispatch-01K0${String(this.#dispatches++).padStart(22, "0")}`;
    let position = 0;
    for (const { revision, id, type, data, metadata } of events) {
      position = Number(this.#insert.run(name, revision, id, type, data, metadata).lastInsertRowid);
    }
    this.#head.run(name, events.length - 1, head.chain, head.session, position - events.length + 1);
  }

  close() {
    this.#db.close();
  }
}
