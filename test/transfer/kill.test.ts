/** SIGKILL while a bundle is written, and while one is read into a ledger: the same command completes it. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseConfig } from "#src/config/load.js";
import { createKernel } from "#src/dispatch/kernel.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { folderWith, Running, run } from "../support/cli.js";
import { verified, withBundle } from "../support/transfers.js";

const DISPATCHES = 1000;
const TEXT = "what a session said ".repeat(400);

async function record(path: string): Promise<void> {
  const loaded = await parseConfig([{ name: "agent.hcl", text: "" }]);
  if (!loaded.ok) throw new Error("the empty configuration does not load");
  const kernel = await createKernel({ config: loaded.config, store: `sqlite:${path}` });
  const messages = (n: number) => [{ role: "ROLE_USER" as const, content: [{ text: { text: `${n} ${TEXT}` } }] }];
  for (let n = 0; n < DISPATCHES; n += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, i) => kernel.dispatch({ preModelCall: { messages: messages(n + i) } })),
    );
  }
  await kernel.close();
}

/** Resolves once the file has grown by so many bytes, or has had time enough for it. */
async function grows(path: string, bytes: number): Promise<void> {
  const size = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const before = size();
  for (let turn = 0; turn < 2000 && size() <= before + bytes; turn++) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

it.each([
  ["export", ["--store", "sqlite:l.db", "export", "e.hlb"], "e.hlb"],
  ["import", ["--store", "sqlite:o.db", "import", "e.hlb"], "o.db-wal"],
])("should be completed by the same command: %s", async (command, args, file) => {
  const cwd = folderWith({});
  await record(join(cwd, "l.db"));
  if (command === "import")
    expect(await run(["--store", "sqlite:l.db", "export", "e.hlb"], { cwd })).toMatchObject({ code: 0 });
  let killed = 0;
  for (let round = 0; round < 4; round++) {
    const process = new Running(args, { cwd });
    await Promise.race([process.ended, grows(join(cwd, file), round * 200_000)]);
    process.kill("SIGKILL");
    if ((await process.ended).code === null) killed++;
  }
  expect(killed).toBeGreaterThan(0);
  const last = await run(["--json", ...args], { cwd });
  expect(last).toMatchObject({ code: 0, stderr: "" });
  const { added, grown, kept } = JSON.parse(last.stdout);
  expect(added + grown + kept).toBe(DISPATCHES);
  await withBundle(join(cwd, "e.hlb"), async (bundle) => {
    expect(bundle.sum()).toMatchObject({ digest: bundle.description.digest, streams: DISPATCHES });
    expect(await verified(bundle)).toEqual({ checked: DISPATCHES, diverged: [] });
  });
  if (command === "export") return;
  const ledger = await openSqliteStore(join(cwd, "o.db"), { mode: "read" });
  expect(await verified(ledger)).toEqual({ checked: DISPATCHES, diverged: [] });
  await ledger.close();
});
