/** Ledger files in whose archive something is missing or altered: told of each dispatch that it concerns, and of no other. */
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseConfig } from "#src/config/load.js";
import { createKernel } from "#src/dispatch/kernel.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { run } from "../support/cli.js";
import { ulidOf } from "../support/ledger.js";
import { temporaryFolder } from "../support/store-fixtures.js";

const CONFIG = `
required_providers {
  scrubber = { source = "host" }
}
hook "pre-model-call" {
  provider = "scrubber"
  mode     = "transform"
}
`;

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(async () => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  await writeSessions();
});
afterEach(() => folder.remove());

/** Dispatches 1 to 3 of a conversation that grows, whose second message is rewritten, and 4, of another one. */
async function writeSessions(): Promise<void> {
  const config = await parseConfig([{ name: "agent.hcl", text: CONFIG }]);
  if (!config.ok) throw new Error("the configuration is wrong");
  const scrubber = {
    "pre-model-call": {
      transform: (payload: { readonly messages?: readonly object[] }) => ({
        ...payload,
        messages: (payload.messages ?? []).with(1, said("rewritten ".repeat(100))),
      }),
    },
  };
  const kernel = await createKernel({ config: config.config, store: `sqlite:${path}`, host: { scrubber } });
  const conversation = (name: string, length: number) =>
    Array.from({ length }, (_, i) => said(`${name} ${i} `.repeat(100)));
  for (const n of [1, 2, 3]) {
    const messages = conversation("first", 20 * n);
    await kernel.dispatch({ preModelCall: { messages } }, { id: ulidOf(n), session: "first" });
  }
  await kernel.dispatch({ preModelCall: { messages: conversation("other", 30) } }, { id: ulidOf(4), session: "other" });
  await kernel.close();
}

function said(text: string) {
  return { role: "ROLE_USER", content: [{ text: { text } }] } as const;
}

function alter(sql: string, ...parameters: readonly unknown[]): void {
  const db = new Database(path);
  expect(db.prepare(sql).run(...parameters).changes).toBe(1);
  db.close();
}

/** The chunk that holds this text. */
const HOLDS = "instr(bytes, CAST(? AS BLOB)) > 0";

async function verified(jobs: number) {
  const store = await openSqliteStore(path, { mode: "read" });
  const diverged: { readonly dispatch: string; readonly kind: string; readonly found: string }[] = [];
  let checked = 0;
  for await (const part of verifyAll(store, undefined, jobs)) {
    checked += part.checked;
    for (const { dispatchId, kind, found } of part.diverged) diverged.push({ dispatch: dispatchId, kind, found });
  }
  await store.close();
  return { checked, diverged: diverged.toSorted((a, b) => a.dispatch.localeCompare(b.dispatch)) };
}

function divergence(n: number, found: RegExp) {
  return { dispatch: ulidOf(n), kind: "payload", found: expect.stringMatching(found) };
}

describe("a ledger file whose archive was touched", () => {
  it("should verify as long as it was not", async () => {
    expect(await verified(1)).toEqual({ checked: 4, diverged: [] });
  });

  it.each([1, 2])(
    "should tell of a chunk that was altered, in each dispatch that has it (%i threads)",
    async (jobs) => {
      alter(
        `UPDATE chunks SET bytes = CAST(replace(bytes, 'first 30 ', 'FIRST 30 ') AS BLOB) WHERE ${HOLDS}`,
        "first 30 ",
      );
      expect(await verified(jobs)).toEqual({
        checked: 4,
        diverged: [divergence(2, /chunk [0-9a-f]{64} is altered/), divergence(3, /chunk [0-9a-f]{64} is altered/)],
      });
    },
  );

  it("should tell of a chunk that is missing, and which", async () => {
    alter(`DELETE FROM chunks WHERE ${HOLDS}`, "other 7 ");
    expect(await verified(1)).toEqual({ checked: 4, diverged: [divergence(4, /chunk [0-9a-f]{64} is missing/)] });
  });

  it("should tell of a chunk of the rewritten payload alone", async () => {
    alter(`DELETE FROM chunks WHERE ${HOLDS}`, "rewritten ");
    expect((await verified(1)).diverged.map(({ dispatch }) => dispatch)).toEqual([1, 2, 3, 4].map(ulidOf));
  });

  it("should tell of a root that was altered, cut, emptied, exchanged or no bytes any more", async () => {
    const largest = "rowid = (SELECT rowid FROM payloads ORDER BY size DESC LIMIT 1)";
    const db = new Database(path);
    const root: Buffer | undefined = db
      .prepare<[], Buffer>(`SELECT bytes FROM payloads WHERE ${largest}`)
      .pluck()
      .get();
    const other = db.prepare("SELECT bytes FROM payloads ORDER BY size LIMIT 1 OFFSET 1").pluck().get();
    db.close();
    if (root === undefined) throw new Error("nothing is archived");
    const bytes: readonly unknown[] = [
      Buffer.from(root).fill(0xff, root.length - 1),
      root.subarray(0, -1),
      Buffer.from(root).fill(9, 1, 2),
      Buffer.alloc(0),
      Buffer.from([0]),
      other,
      "text",
    ];
    for (const spoiled of bytes) {
      alter(`UPDATE payloads SET bytes = ? WHERE ${largest}`, spoiled);
      const { checked, diverged } = await verified(1);
      expect({ checked, dispatches: diverged.map(({ dispatch, kind }) => [dispatch, kind]) }).toEqual({
        checked: 4,
        dispatches: [[ulidOf(3), "payload"]],
      });
    }
    alter(`UPDATE payloads SET bytes = ? WHERE ${largest}`, root);
    expect((await verified(1)).diverged).toEqual([]);
  });

  it("should still be shown, with a warning that names the chunk", async () => {
    alter(`DELETE FROM chunks WHERE ${HOLDS}`, "other 7 ");
    const show = await run(["--store", `sqlite:${path}`, "show", ulidOf(4)], { cwd: folder.path });
    expect(show.code).toBe(0);
    expect(show.stdout).toMatch(/^allowed {2}pre-model-call/);
    expect(show.stdout).toMatch(
      /WARNING +the record does not verify at event 0 \(payload\): .*chunk [0-9a-f]{64} is missing/s,
    );
    expect(show.stdout).toContain("the bytes are not those that were recorded: altered, or missing in part");
    const intact = await run(["--store", `sqlite:${path}`, "show", ulidOf(3)], { cwd: folder.path });
    expect(intact.stdout).not.toContain("WARNING");
  });

  it("should lose nothing to a collection", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    const { removed } = await store.collectGarbage({ dryRun: false, now: 0, graceMs: 0 });
    await store.close();
    expect(removed).toBe(0);
    expect(await verified(1)).toEqual({ checked: 4, diverged: [] });
  });
});
