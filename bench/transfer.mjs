// Moving a ledger: into an evidence bundle, and out of it into another ledger.
import { rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { createKernel, exportLedger, importLedger, openStore, verifyAll } from "hookledger";
import { fiveHooks, folder, handlers, toolCall } from "./fixtures.mjs";
import { heading, row } from "./measure.mjs";

const DISPATCHES = 30_000;
const ROUNDS = 3;

export async function transferring() {
  heading(
    `Export and import ${DISPATCHES.toLocaleString("en")} dispatches of 12 events, SQLite to bundle to SQLite`,
    "reading, checking every seal and carried payload on import, writing, and the syncs that make it durable; the median of three",
    "a cold page cache, ledgers larger than memory, payloads over 4 KiB, a server at either end",
  );
  const path = folder();
  const from = `sqlite:${join(path, "ledger.db")}`;
  const store = await openStore(from, { mode: "write" });
  const kernel = await createKernel({ config: fiveHooks(path, "host"), store, host: { five: handlers } });
  for (let i = 0; i < DISPATCHES; i += 100) {
    await Promise.all(Array.from({ length: 100 }, () => kernel.dispatch(toolCall, { session: "session-1" })));
  }
  await kernel.close();
  const file = join(path, "evidence.hlb");
  const options = { selection: {}, now: Date.now() };
  const exported = await rates(async () => {
    rmSync(file, { force: true });
    expectAll("added", await exportLedger(store, file, options));
  });
  row("export", perSecond(exported), "target ≥ 10,000/s");
  row(
    "export again, nothing new",
    perSecond(await rates(async () => expectAll("kept", await exportLedger(store, file, options)))),
  );
  await store.close();
  row(
    "size of the bundle",
    `${Math.round(statSync(file).size / 2 ** 20)} MiB`,
    `of the ledger: ${Math.round(statSync(join(path, "ledger.db")).size / 2 ** 20)} MiB`,
  );
  const bundle = await openStore(`bundle:${file}`, { mode: "read" });
  const target = join(path, "other.db");
  const imported = await rates(async () => {
    for (const end of ["", "-wal", "-shm"]) rmSync(target + end, { force: true });
    await into(target, (other) => importLedger(bundle, other), "added");
  });
  row("import", perSecond(imported), "target ≥ 10,000/s");
  row(
    "import again, nothing new",
    perSecond(await rates(() => into(target, (other) => importLedger(bundle, other), "kept"))),
  );
  row("verify the bundle, one thread", perSecond(await rates(() => verify(bundle))));
  await bundle.close();
}

async function into(path, run, kind) {
  const store = await openStore(`sqlite:${path}`, { mode: "write" });
  expectAll(kind, await run(store));
  await store.close();
}

async function verify(store) {
  for await (const { diverged } of verifyAll(store, undefined, 1))
    if (diverged.length > 0) throw new Error("it diverges");
}

function expectAll(kind, counts) {
  if (counts[kind] !== DISPATCHES) throw new Error(`${counts[kind]} dispatches ${kind}, not ${DISPATCHES}`);
}

/** Dispatches a second of each round. */
async function rates(run) {
  const found = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    await run();
    found.push((DISPATCHES / (performance.now() - start)) * 1000);
  }
  return found.sort((a, b) => a - b);
}

function perSecond(found) {
  return `${Math.round(found[Math.floor(found.length / 2)]).toLocaleString("en")}/s`;
}
