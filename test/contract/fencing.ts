/** Two writers of one ledger, and one of them is behind: run against every ledger that two can write. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DispatchEvent } from "#src/core/events.js";
import { recover } from "#src/replay/recover.js";
import type { EventStore } from "#src/store/port.js";
import { appendLate } from "#src/store/record/late-append.js";
import { chain, invoked, started } from "../support/given.js";
import { allow, Later, Rig, recordedIn } from "../support/kernels.js";
import { ulidOf } from "../support/ledger.js";
import { appendInto } from "../support/ledgers.js";
import { ledgerOf } from "../support/ledgers-random.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { VirtualClock } from "../support/virtual-clock.js";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const MOMENT = { engineVersion: "0", at: "2026-01-01T00:00:00.000Z" };

/** `connect` opens the ledger in `folder` once more. */
export function fencing(name: string, connect: (folder: string) => Promise<EventStore>): void {
  describe(`two writers of ${name}`, () => {
    let folder: ReturnType<typeof temporaryFolder>;
    let one: EventStore;
    let other: EventStore;
    beforeEach(async () => {
      folder = temporaryFolder();
      one = await connect(folder.path);
      other = await connect(folder.path);
    });
    afterEach(async () => {
      await one.close();
      await other.close();
      folder.remove();
    });

    /** A first guard that answers when the test says so, and a second with effects. */
    function waiting(store: EventStore) {
      const gate = new Later<typeof allow>();
      const called = new Later<void>();
      const clock = new VirtualClock();
      const rig = new Rig({
        store,
        clock,
        settings: { onStoreFailure: "continue" },
        chain: [
          {
            mode: "veto",
            id: "first",
            recording: "write-ahead",
            does: () => {
              called.resolve();
              return gate.promise;
            },
          },
          { mode: "veto", id: "effect", recording: "write-ahead", does: allow },
        ],
      });
      return { rig, gate, called: called.promise };
    }

    async function append(store: EventStore, event: DispatchEvent): Promise<void> {
      await appendLate(store, (await store.readStream(`hookdispatch-${ID}`))!, ID, [event], MOMENT);
    }

    it("should have the stale one not act when its dispatch was closed, nor touch it", async () => {
      const { rig, gate, called } = waiting(one);
      const result = rig.begin({ id: ID });
      await called;
      await append(other, { type: "aborted", cause: "recovered", inFlight: [0] });
      gate.resolve(allow);
      expect(await result).toMatchObject({
        status: "aborted",
        abortCause: "recovered",
        allowed: false,
        storeError: "HL_STORE_CONFLICT",
      });
      expect(rig.calls.map(({ id }) => id)).toEqual(["first"]);
      const { told, diverged } = await recordedIn(other, ID);
      expect(told).toEqual(["started", "invoked 0", "aborted recovered with 0"]);
      expect(diverged).toBeNull();
    });

    it("should have the stale one not act when another went on with its dispatch", async () => {
      const { rig, gate, called } = waiting(one);
      const result = rig.begin({ id: ID });
      await called;
      await append(other, { type: "outcome", index: 0, class: "deny", reason: "I am the other" });
      gate.resolve(allow);
      expect(await result).toMatchObject({ status: "aborted", allowed: false, recorded: false });
      expect(rig.calls.map(({ id }) => id)).toEqual(["first"]);
      expect((await recordedIn(other, ID)).told).toEqual(["started", "invoked 0", "deny 0"]);
    });

    it("should have each dispatch that a third left open closed by one of them", async () => {
      const third = await connect(folder.path);
      const ids = Array.from({ length: 12 }, (_, n) => ulidOf(n + 1));
      const log = [started(chain("veto:guard@200")), invoked(0)];
      await appendInto(third, await ledgerOf(...ids.map((_, n) => ({ n: n + 1, log }))));
      await third.close();
      const recovering = async (store: EventStore): Promise<readonly string[]> => {
        const closed: string[] = [];
        for await (const recovered of recover(store, { dryRun: false, now: Date.now() + 3_600_000 })) {
          if (recovered.kind === "closed") closed.push(recovered.dispatchId);
        }
        return closed;
      };
      const [first, second] = await Promise.all([recovering(one), recovering(other)]);
      expect([...first, ...second].toSorted()).toEqual(ids);
      for (const id of ids) {
        const { told, diverged } = await recordedIn(one, id);
        expect(told).toEqual(["started", "invoked 0", "aborted recovered with 0"]);
        expect(diverged).toBeNull();
      }
    });

    it("should have one act where both begin the same dispatch", async () => {
      const rigs = [waiting(one), waiting(other)];
      for (const { gate } of rigs) gate.resolve(allow);
      const results = await Promise.allSettled(rigs.map(({ rig }) => rig.begin({ id: ID })));
      for (const result of results) {
        if (result.status === "fulfilled") expect(result.value).toMatchObject({ allowed: true, recorded: true });
        else expect(result.reason).toMatchObject({ code: "HL_DISPATCH_OPEN" });
      }
      const effects = rigs.map(({ rig }) => rig.calls.filter(({ id }) => id === "effect").length);
      expect(effects.toSorted()).toEqual([0, 1]);
      const { told, diverged } = await recordedIn(one, ID);
      expect(told.at(-1)).toBe("decided allow by kernel:default");
      expect(diverged).toBeNull();
    });
  });
}
