/** Golden ledgers as files: one folder a release, in it a ledger as text and what it replays to for each scenario. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { replayStream } from "#src/replay/replay.js";
import { Verifier } from "#src/replay/verify.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { ENGINE_VERSION } from "#src/version.js";
import { ledgerOfScenario, SCENARIOS } from "./golden-scenarios.js";
import { appendInto, intoMemory, type LedgerRows, parseLedger, printLedger } from "./ledgers.js";
import { collect, temporaryFolder } from "./store-fixtures.js";

const FOLDER = fileURLToPath(new URL("../golden", import.meta.url));

export type Golden = {
  readonly name: string;
  readonly text: string;
  readonly rows: LedgerRows;
  /** What `told` made of it when it was written. */
  readonly expected: unknown;
};

export function releases(): readonly string[] {
  return readdirSync(FOLDER, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? entry.name : []));
}

export function goldensOf(release: string): readonly Golden[] {
  const folder = join(FOLDER, release);
  const files = readdirSync(folder).filter((file) => file.endsWith(".ndjson"));
  return files.map((file) => {
    const name = basename(file, ".ndjson");
    const text = readFileSync(join(folder, file), "utf8");
    const expected: unknown = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8"));
    return { name, text, rows: parseLedger(text), expected };
  });
}

/** The one real file of a release: all its scenarios' dispatches, as its SQLite store wrote them. */
export function sqliteOf(release: string): string {
  return join(FOLDER, release, "ledger.db");
}

/** What every dispatch of a ledger replays and verifies to, as JSON data. */
export async function told(store: EventStore): Promise<unknown> {
  const verifier = new Verifier(store);
  const dispatches: unknown[] = [];
  for (const stream of await collect(store.readStreams({ order: "oldest" }))) {
    const replayed = replayStream(stream);
    const verification = await verifier.verify(stream);
    if (!("state" in replayed)) {
      dispatches.push({ failure: replayed, verification });
      continue;
    }
    const { state, ...rest } = replayed;
    dispatches.push({ ...rest, slots: state.slots, items: state.items, author: state.author, verification });
  }
  return JSON.parse(JSON.stringify({ dispatches }));
}

/** Writes what this release has no golden ledger of yet; what is there is never written again. Returns the names. */
export async function writeMissing(): Promise<readonly string[]> {
  const folder = join(FOLDER, ENGINE_VERSION);
  mkdirSync(folder, { recursive: true });
  const missing = Object.keys(SCENARIOS).filter((name) => !existsSync(join(folder, `${name}.ndjson`)));
  for (const name of missing) {
    const rows = await ledgerOfScenario(name);
    const expected = await told(await intoMemory(rows));
    writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(expected, null, 2)}\n`, { flag: "wx" });
    writeFileSync(join(folder, `${name}.ndjson`), printLedger(rows), { flag: "wx" });
  }
  if (!existsSync(sqliteOf(ENGINE_VERSION))) await writeSqlite();
  return missing;
}

async function writeSqlite(): Promise<void> {
  const temporary = temporaryFolder();
  try {
    const path = join(temporary.path, "ledger.db");
    const store = await openSqliteStore(path, { mode: "write" });
    for (const { rows } of goldensOf(ENGINE_VERSION)) await appendInto(store, rows);
    await store.close();
    writeFileSync(sqliteOf(ENGINE_VERSION), readFileSync(path), { flag: "wx" });
  } finally {
    temporary.remove();
  }
}
