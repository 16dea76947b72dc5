/** Somebody sets the wall clock back while dispatches are recorded. */
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { recover } from "#src/replay/recover.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { isUlid, ulid } from "#src/store/ulid.js";
import { chain, invoked, started } from "../support/given.js";
import { ack, allow, delayed, Rig } from "../support/kernels.js";
import { ulidOf } from "../support/ledger.js";
import { intoSqlite } from "../support/ledgers.js";
import { ledgerOf } from "../support/ledgers-random.js";
import { collect, temporaryFolder } from "../support/store-fixtures.js";
import { VirtualClock } from "../support/virtual-clock.js";

const DAY = 86_400_000;

class MovableClock extends VirtualClock {
  movedBy = 0;
  override wall(): number {
    return super.wall() + this.movedBy;
  }
}

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

describe("a wall clock that was moved back", () => {
  it("should move no deadline, and change no order but that of the ids", async () => {
    const clock = new MovableClock();
    const store = openMemoryStore();
    let ids = 0;
    const rig = new Rig({
      store,
      clock,
      chain: [
        { mode: "observe", does: delayed(clock, 3, ack) },
        { mode: "veto", does: delayed(clock, 5, allow), timeoutMs: 10 },
      ],
      parts: { newId: () => ulid(clock.wall(), Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, ids++)) },
    });
    const made: string[] = [];
    for (const moved of [0, -DAY, -DAY, DAY]) {
      const pending = rig.begin();
      clock.movedBy = moved;
      await clock.run();
      const { dispatchId, allowed } = await pending;
      expect(allowed).toBe(true);
      made.push(dispatchId);
    }
    expect(new Set(made).size).toBe(4);
    expect(made.every(isUlid)).toBe(true);
    const listed = (await collect(store.list({ order: "oldest" }))).map(({ stream }) => stream);
    expect(listed).toEqual(made.map((id) => `hookdispatch-${id}`).sort());
    const began = (await collect(store.readAll({ after: 0 }))).filter(({ type }) => type === "started");
    expect(began.map(({ stream }) => stream)).toEqual(made.map((id) => `hookdispatch-${id}`));
    for (const id of made) {
      const { metadata, diverged } = await rig.recorded(id);
      expect(diverged).toBeNull();
      const offsets = metadata.map(({ offsetNs }) => offsetNs);
      expect(offsets).toEqual(offsets.toSorted((a, b) => a - b));
    }
  });

  it("should keep recovery from taking for old what may be somebody's", async () => {
    const path = join(folder.path, "ledger.db");
    await intoSqlite(path, await ledgerOf({ n: 1, log: [started(chain("veto:guard@200")), invoked(0)] }));
    const lastAt = Date.UTC(2026, 1, 28, 9, 30) + 1;
    const open = await openSqliteStore(path, { mode: "write" });
    const unknowing: EventStore = Object.assign(open, { writerState: async () => "unknown" as const });
    for (const now of [0, lastAt - DAY, lastAt, lastAt + 30_200]) {
      const [recovered] = await recovering(unknowing, now);
      expect(recovered).toMatchObject({ kind: "skipped" });
    }
    await open.close();
    // Where it is known that nobody lives, no clock is asked.
    const knowing = await openSqliteStore(path, { mode: "write" });
    expect(await recovering(knowing, 0)).toMatchObject([{ kind: "closed", dispatchId: ulidOf(1) }]);
    await knowing.close();
  });
});

async function recovering(store: EventStore, now: number) {
  const all = [];
  for await (const recovered of recover(store, { dryRun: false, now })) all.push(recovered);
  return all;
}
