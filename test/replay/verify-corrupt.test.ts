/** A legal ledger verifies; with one thing changed behind its back, `verify` names the dispatch, the place and the kind. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Divergence } from "#src/replay/verify.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { allLogs } from "../properties/logs.js";
import { ulidOf } from "../support/ledger.js";
import { type LedgerRows, storeOf } from "../support/ledgers.js";
import { Choices, CORRUPTIONS } from "../support/ledgers-corrupt.js";
import { ledgerOf } from "../support/ledgers-random.js";

const choices = fc.noBias(fc.array(fc.nat(), { minLength: 8, maxLength: 8 })).map((numbers) => new Choices(numbers));

async function divergences(rows: LedgerRows): Promise<readonly Divergence[]> {
  const diverged: Divergence[] = [];
  for await (const part of verifyAll(storeOf(rows), undefined, 1)) diverged.push(...part.diverged);
  return diverged;
}

describe("a legal ledger", () => {
  it("should verify whatever happened to the dispatch", async () => {
    await fc.assert(
      fc.asyncProperty(allLogs, fc.boolean(), async (log, session) => {
        expect(await divergences(await ledgerOf({ n: 1, log, ...(session ? { session: "s" } : {}) }))).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a ledger that was changed behind its back", () => {
  for (const [what, corrupt] of Object.entries(CORRUPTIONS)) {
    it(`should be told when ${what}`, async () => {
      await fc.assert(
        fc.asyncProperty(allLogs, fc.boolean(), choices, async (log, session, picked) => {
          const legal = await ledgerOf({ n: 1, log, ...(session ? { session: "s" } : {}) });
          const corruption = corrupt(legal, picked);
          fc.pre(corruption !== null);
          if (corruption === null) return;
          const all = await divergences(corruption.rows);
          const found = all.find(({ dispatchId }) => dispatchId === ulidOf(1));
          expect(found).toMatchObject({ revision: corruption.revision });
          expect(corruption.kinds).toContain(found?.kind);
        }),
        { numRuns: 100 },
      );
    });
  }
});
