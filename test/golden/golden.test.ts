/** What was recorded under a release replays and verifies under this one, exactly as it did then. */
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recover } from "#src/replay/recover.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { ENGINE_VERSION } from "#src/version.js";
import { goldensOf, releases, sqliteOf, told } from "../support/golden.js";
import { ledgerOfScenario, SCENARIOS } from "../support/golden-scenarios.js";
import { intoMemory, intoSqlite, printLedger, rowsOf } from "../support/ledgers.js";
import { temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

type Told = { readonly dispatches: readonly { readonly verdict: { readonly status: string } }[] };

describe.each(releases())("the ledgers of %s", (release) => {
  const goldens = goldensOf(release);

  it.each(goldens)(
    "should be sealed again by a store in memory, and tell the same: $name",
    async ({ rows, expected }) => {
      const store = await intoMemory(rows);
      expect(printLedger(await rowsOf(store))).toBe(printLedger(rows));
      expect(await told(store)).toEqual(expected);
    },
  );

  it.each(goldens)(
    "should tell the same from an SQLite file that holds their rows: $name",
    async ({ rows, expected }) => {
      await intoSqlite(path, rows);
      const store = await openSqliteStore(path, { mode: "read" });
      expect(printLedger(await rowsOf(store))).toBe(printLedger(rows));
      expect(await told(store)).toEqual(expected);
      await store.close();
    },
  );

  it.each(goldens)("should leave recovery nothing to do where nothing was open: $name", async ({ name, rows }) => {
    const store = await intoMemory(rows);
    const recovered = [];
    for await (const one of recover(store, { dryRun: false, now: 0 })) recovered.push(one);
    expect(recovered).toHaveLength(name === "open" || name === "messages-open" ? 1 : 0);
  });

  it("should all be in one SQLite file of that release, and tell the same from it", async () => {
    copyFileSync(sqliteOf(release), path);
    const store = await openSqliteStore(path, { mode: "read" });
    const { dispatches } = (await told(store)) as Told;
    const expected = goldens.flatMap(({ expected }) => (expected as Told).dispatches);
    expect(dispatches).toHaveLength(expected.length);
    expect(dispatches).toEqual(expect.arrayContaining([...expected]));
    await store.close();
  });
});

describe("this release", () => {
  it("should have a golden ledger of every scenario (npm run golden:write adds one)", () => {
    expect(releases()).toContain(ENGINE_VERSION);
    const names = goldensOf(ENGINE_VERSION).map(({ name }) => name);
    expect(names.sort()).toEqual(Object.keys(SCENARIOS).sort());
  });

  it.each(Object.keys(SCENARIOS))("should write what it has released, letter for letter: %s", async (name) => {
    const golden = goldensOf(ENGINE_VERSION).find((golden) => golden.name === name);
    expect(printLedger(await ledgerOfScenario(name))).toBe(golden?.text);
  });
});
