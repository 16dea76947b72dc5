/** The same in SQLite files, whose columns may hold anything: many dispatches at once, each with something else wrong. */
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Divergence } from "#src/replay/verify.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { allLogs, logs } from "../properties/logs.js";
import { ulidOf } from "../support/ledger.js";
import { alterSqlite, intoSqlite, type LedgerRows, storeOf } from "../support/ledgers.js";
import { Choices, CORRUPTIONS } from "../support/ledgers-corrupt.js";
import { ledgerOf } from "../support/ledgers-random.js";
import { temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

type Totals = { readonly checked: number; readonly open: number; readonly diverged: readonly Divergence[] };

async function verified(jobs: number, session?: string | null): Promise<Totals> {
  const store = await openSqliteStore(path, { mode: "read" });
  try {
    return await totalsOf(verifyAll(store, session, jobs));
  } finally {
    await store.close();
  }
}

async function totalsOf(parts: ReturnType<typeof verifyAll>): Promise<Totals> {
  const diverged: Divergence[] = [];
  let checked = 0;
  let open = 0;
  for await (const part of parts) {
    checked += part.checked;
    open += part.open;
    diverged.push(...part.diverged);
  }
  const byName = (a: Divergence, b: Divergence) => Buffer.compare(Buffer.from(a.dispatchId), Buffer.from(b.dispatchId));
  return { checked, open, diverged: diverged.sort(byName) };
}

async function randomLedger(count: number, seed: number): Promise<LedgerRows> {
  const samples = fc.sample(allLogs, { numRuns: count, seed });
  return ledgerOf(
    ...samples.map((log, n) => ({ n: n + 1, log, ...(n % 3 === 0 ? { session: `session ${n % 2}` } : {}) })),
  );
}

describe("a ledger file with something wrong in most of its dispatches", () => {
  it("should be judged as its rows are, by one thread and by several", async () => {
    const legal = await randomLedger(400, 20_261_130);
    const rows = corrupted(legal);
    await intoSqlite(path, rows);
    const expected = await totalsOf(verifyAll(storeOf(rows), undefined, 1));
    expect(expected.diverged.length).toBeGreaterThan(200);
    expect(expected.checked).toBeGreaterThanOrEqual(400);
    for (const jobs of [1, 3]) expect(await verified(jobs)).toEqual(expected);
    for (const session of ["session 0", null]) {
      const some = await totalsOf(verifyAll(storeOf(rows), session, 1));
      for (const jobs of [1, 2]) expect(await verified(jobs, session)).toEqual(some);
    }
  });

  /** Leaves alone what two dispatches share, and what SQLite's keys make impossible. */
  function corrupted(legal: LedgerRows): LedgerRows {
    const names = Object.keys(CORRUPTIONS).filter((name) => !/twice|blob|elsewhere|moved/.test(name));
    const parts = legal.heads.map((head, n): LedgerRows => {
      const events = legal.events.filter(({ stream }) => stream === head.stream);
      const own = { events, heads: [head], blobs: legal.blobs };
      if (n % 4 === 0) return own;
      const choices = new Choices(Array.from({ length: 8 }, (_, i) => (n + 1) * 7919 + i * 104_729));
      return CORRUPTIONS[names[n % names.length]!]!(own, choices)?.rows ?? own;
    });
    const events = parts.flatMap(({ events }) => events).map((event, place) => ({ ...event, position: place + 1 }));
    const first = new Map(events.toReversed().map(({ stream, position }) => [stream, position]));
    const heads = parts
      .flatMap(({ heads }) => heads)
      .map((head) => ({ ...head, position: first.get(head.stream) ?? 0 }));
    return { events, heads, blobs: legal.blobs };
  }
});

describe("a ledger file of more pages than there are threads", () => {
  it("should be verified to its end", async () => {
    await intoSqlite(path, await randomLedger(700, 7));
    const alone = await verified(1);
    expect(alone).toMatchObject({ checked: 700, diverged: [] });
    expect(await verified(2)).toEqual(alone);
  });
});

describe("a column that holds what no store writes", () => {
  const cases: Readonly<Record<string, { readonly sql: string; readonly kinds: readonly string[] }>> = {
    "data as a BLOB of the same bytes": { sql: "UPDATE events SET data = CAST(data AS BLOB)", kinds: ["undecodable"] },
    "metadata as a BLOB": { sql: "UPDATE events SET metadata = CAST(metadata AS BLOB)", kinds: ["undecodable"] },
    "the id as a BLOB": { sql: "UPDATE events SET id = CAST(id AS BLOB)", kinds: ["illegal_event"] },
    "the type as a BLOB": { sql: "UPDATE events SET type = CAST(type AS BLOB)", kinds: ["unknown_type"] },
    "a number as data": { sql: "UPDATE events SET data = 5", kinds: ["unknown_version"] },
    "text as the revision": { sql: "UPDATE events SET revision = 'first'", kinds: ["illegal_event"] },
    "a fraction as the revision": { sql: "UPDATE events SET revision = revision + 0.5", kinds: ["illegal_event"] },
    "a BLOB as the revision": { sql: "UPDATE events SET revision = x'00'", kinds: ["illegal_event"] },
    "the largest integer as the revision": {
      sql: "UPDATE events SET revision = 9223372036854775807",
      kinds: ["illegal_event"],
    },
    "the smallest position": { sql: "UPDATE events SET position = -9223372036854775808", kinds: ["illegal_event"] },
    "a NUL in the data": { sql: "UPDATE events SET data = data || char(0)", kinds: ["undecodable"] },
    "a NUL in the type": { sql: "UPDATE events SET type = type || char(0) || 'x'", kinds: ["unknown_type"] },
    "bytes that are no UTF-8": {
      sql: "UPDATE events SET data = replace(data, 'plan-ready', CAST(x'ff' AS TEXT))",
      kinds: ["illegal_event"],
    },
    "the chain of the head as a BLOB": { sql: "UPDATE heads SET chain = CAST(chain AS BLOB)", kinds: ["truncated"] },
    "text as the head's revision": { sql: "UPDATE heads SET revision = 'last'", kinds: ["truncated"] },
    "a BLOB as the head's session": { sql: "UPDATE heads SET session = x'00'", kinds: ["chain"] },
    "text as the head's position": { sql: "UPDATE heads SET position = 'here'", kinds: ["chain"] },
    "a payload as text": { sql: "UPDATE payloads SET bytes = CAST(bytes AS TEXT)", kinds: ["payload"] },
  };

  for (const [what, { sql, kinds }] of Object.entries(cases)) {
    it(`should be refused without an exception: ${what}`, async () => {
      // One event each, so that every row may be altered alike.
      const [started] = fc.sample(logs, { numRuns: 1, seed: 7 })[0]!;
      await intoSqlite(
        path,
        await ledgerOf({ n: 1, log: [{ ...started!, point: "plan-ready" } as typeof started & {}] }),
      );
      expect(await verified(1)).toEqual({ checked: 1, open: 1, diverged: [] });
      alterSqlite(path, (db) => db.exec(sql));
      const { checked, diverged } = await verified(1);
      expect(checked).toBe(1);
      expect(diverged).toHaveLength(1);
      expect(diverged[0]).toMatchObject({ dispatchId: ulidOf(1) });
      expect(kinds).toContain(diverged[0]?.kind);
      expect(await verified(2)).toMatchObject({ checked, diverged });
    });
  }

  it("should not keep the rest from being checked", async () => {
    await intoSqlite(path, await randomLedger(30, 5));
    alterSqlite(path, (db) => {
      db.exec("UPDATE events SET data = CAST(data AS BLOB) WHERE position % 40 = 1");
      db.exec("UPDATE events SET data = printf('%.*c', 2000000, '[') WHERE position % 40 = 2");
    });
    const { checked, diverged } = await verified(1);
    expect(checked).toBe(30);
    expect(diverged.length).toBeGreaterThan(1);
    expect(diverged.length).toBeLessThan(30);
    expect(await verified(3)).toMatchObject({ checked, diverged });
  });
});

describe("a stream with a name that no dispatch has", () => {
  it.each([
    "hookdispatch-",
    "hookdispatch-x",
    "hookdispatch-\u{1F600}",
    "hookdispatch-\uFFFD",
    `hookdispatch-${"Z".repeat(200_000)}`,
  ])("should be refused, by every number of threads", async (name) => {
    await intoSqlite(path, await randomLedger(3, 9));
    alterSqlite(path, (db) => {
      db.prepare("UPDATE events SET stream = ? WHERE stream LIKE '%2'").run(name);
      db.prepare("UPDATE heads SET stream = ? WHERE stream LIKE '%2'").run(name);
    });
    const { checked, diverged } = await verified(1);
    expect(checked).toBe(3);
    expect(diverged).toMatchObject([{ dispatchId: name.slice("hookdispatch-".length), kind: "illegal_event" }]);
    expect(await verified(2)).toMatchObject({ checked, diverged });
  });

  it("should be found next to others whose order is another in bytes than in UTF-16", async () => {
    await intoSqlite(path, await randomLedger(3, 9));
    alterSqlite(path, (db) => {
      for (const [n, name] of ["hookdispatch-\uFFFD", "hookdispatch-\u{1F600}"].entries()) {
        db.prepare("UPDATE events SET stream = ? WHERE stream LIKE ?").run(name, `%${n + 1}`);
        db.prepare("UPDATE heads SET stream = ? WHERE stream LIKE ?").run(name, `%${n + 1}`);
      }
    });
    const one = await verified(1);
    expect(one).toMatchObject({ checked: 3, diverged: [{}, {}] });
    expect(await verified(2)).toEqual(one);
  });
});
