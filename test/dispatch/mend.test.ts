import { describe, expect, it } from "vitest";
import type { DispatchEvent } from "#src/core/events.js";
import { mend } from "#src/dispatch/mend.js";
import { openMemoryStore } from "#src/store/memory.js";
import { chain, decided, invoked, started } from "../support/given.js";
import { ulidOf } from "../support/ledger.js";
import { appendInto, rowsOf } from "../support/ledgers.js";
import { ledgerOf } from "../support/ledgers-random.js";

const MOMENT = { engineVersion: "0", at: "2026-01-01T00:00:00.000Z" };
const OPEN = [started(chain("veto:guard")), invoked(0)];
const DECIDED = [started([]), decided("allow", "kernel:default")];

/** The ledger says that ULID 0 wrote it. */
async function mended(log: readonly DispatchEvent[], writer: string, stale = false) {
  const store = openMemoryStore({ writer });
  await appendInto(store, await ledgerOf({ n: 1, log }));
  const cause = await mend(store, `hookdispatch-${ulidOf(1)}`, ulidOf(1), MOMENT, stale);
  const added = (await rowsOf(store)).events.slice(log.length).map(({ data }): unknown => JSON.parse(data));
  return { cause, added };
}

describe("a dispatch whose record failed", () => {
  it("should be closed where it is open, and taken back where it is decided", async () => {
    expect(await mended(OPEN, ulidOf(0))).toEqual({
      cause: "store_unavailable",
      added: [{ cause: "store_unavailable", inFlight: [0] }],
    });
    expect(await mended(DECIDED, ulidOf(0))).toEqual({ cause: "unconfirmed", added: [{ cause: "unconfirmed" }] });
  });

  it("should be left as it is where another writer began it, or went on with it", async () => {
    for (const log of [OPEN, DECIDED]) {
      expect(await mended(log, ulidOf(7))).toEqual({ cause: null, added: [] });
      expect(await mended(log, ulidOf(0), true)).toEqual({ cause: null, added: [] });
    }
  });

  it("should not be invented where nothing was written", async () => {
    const store = openMemoryStore();
    expect(await mend(store, `hookdispatch-${ulidOf(1)}`, ulidOf(1), MOMENT, false)).toBeNull();
    expect((await rowsOf(store)).events).toEqual([]);
  });
});
