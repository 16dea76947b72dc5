/** What garbage collection must do in every ledger, whatever it needs for it. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Digest } from "#src/core/events.js";
import type { EventStore, GarbageCollection } from "#src/store/port.js";
import { conversation, message } from "../payload/archive/fields.js";
import { blobOf, draft, numbered, opening, stream, temporaryFolder } from "../support/store-fixtures.js";

type Store = EventStore & GarbageCollection;

const GRACE = 60_000;

/** Collects until nothing is left to remove later. */
export async function collectAll(store: GarbageCollection): Promise<void> {
  for (const now of [1_000_000, 1_000_000 + 2 * GRACE]) {
    await store.collectGarbage({ dryRun: false, now, graceMs: GRACE });
  }
}

/** Stream n: its event names `names`, and `writes` come with it. */
export function naming(n: number, names: readonly Digest[], writes: readonly [Digest, Uint8Array][] = []) {
  const data = `{"index":0,"names":${JSON.stringify(names)}}`;
  return opening(n, 1, {
    events: [draft(0, { data })],
    blobs: writes.map(([digest, bytes]) => ({ digest, bytes })),
    barrier: false,
  });
}

/** `open` makes a new, empty store, which may keep its files in `folder`. */
export function garbageContract(name: string, open: (folder: string) => Promise<Store>): void {
  describe(`garbage collection in ${name}`, () => {
    const messages = Array.from({ length: 80 }, (_, i) => message(`m${i}`, 800));
    const all = conversation(messages);
    const [first, second] = [numbered(1), numbered(2)];
    let store: Store;
    let folder: ReturnType<typeof temporaryFolder>;

    beforeEach(async () => {
      folder = temporaryFolder();
      store = await open(folder.path);
    });

    afterEach(async () => {
      await store.close();
      folder.remove();
    });

    const counted = () => store.collectGarbage({ dryRun: true, now: 0, graceMs: 0 });

    it("should find nothing in an empty ledger", async () => {
      expect(await counted()).toEqual({ kept: 0, removed: 0, removedBytes: 0, marked: 0 });
      await collectAll(store);
    });

    it("should remove what no event names, with the chunks that nothing else needs", async () => {
      await store.append(naming(1, [first], [[first, conversation(messages.slice(0, 40))]]));
      const { kept } = await counted();
      await store.append(naming(2, [], [[second, all]]));
      await collectAll(store);
      expect(await blobOf(store, first)).toEqual(new Uint8Array(conversation(messages.slice(0, 40))));
      expect(await store.readBlob(second)).toEqual({ kind: "missing" });
      expect(await counted()).toMatchObject({ kept, removed: 0, removedBytes: 0, marked: 0 });
    });

    it("should remove nothing when it only counts", async () => {
      await store.append(naming(1, [], [[first, all]]));
      await counted();
      await store.collectGarbage({ dryRun: true, now: 10 * GRACE, graceMs: GRACE });
      expect(await blobOf(store, first)).not.toBeNull();
    });

    it("should show that what payloads have in common is kept once", async () => {
      await store.append(naming(1, [first], [[first, all]]));
      const { kept } = await counted();
      expect(kept).toBeGreaterThan(80);
      const grown = conversation([...messages, message("one more", 800)]);
      await store.append(naming(2, [second], [[second, grown]]));
      expect((await counted()).kept - kept).toBeLessThan(10);
    });

    it("should tell how far it has read", async () => {
      for (let n = 0; n < 5; n++) await store.append(naming(n, []));
      const told: number[] = [];
      await store.collectGarbage({ dryRun: true, now: 0, graceMs: 0 }, (events) => told.push(events));
      expect(told.at(-1)).toBe(5);
      expect(told).toEqual(told.toSorted((a, b) => a - b));
    });

    it("should let what was removed be written again", async () => {
      await store.append(naming(1, [], [[first, all]]));
      await collectAll(store);
      await store.append(naming(2, [first], [[first, all]]));
      await collectAll(store);
      expect(await blobOf(store, first)).toEqual(new Uint8Array(all));
    });

    it("should be refused by a closed store", async () => {
      await store.close();
      await expect(counted()).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    });

    it("should keep what an event names and nothing else, whenever it runs and whatever is appended meanwhile", async () => {
      const payloadOf = (n: number) => conversation(messages.slice(n % 7, 10 + ((n * 13) % 60)));
      const steps = fc.array(
        fc.record({
          payload: fc.nat(20),
          isNamed: fc.boolean(),
          behind: fc.constantFrom("append", "append", "collect", "collect at once"),
        }),
        { minLength: 1, maxLength: 15 },
      );
      let streams = 0;
      const named = new Set<number>();
      const written = new Set<number>();
      await fc.assert(
        fc.asyncProperty(steps, async (sequence) => {
          const running: Promise<unknown>[] = [];
          for (const { payload, isNamed, behind } of sequence) {
            const digest = numbered(payload);
            running.push(store.append(naming(++streams, isNamed ? [digest] : [], [[digest, payloadOf(payload)]])));
            written.add(payload);
            if (isNamed) named.add(payload);
            if (behind === "collect at once") running.push(collectAll(store));
            if (behind === "collect") {
              await Promise.all(running.splice(0));
              await collectAll(store);
            }
          }
          await Promise.all(running);
          await collectAll(store);
          for (const payload of written) {
            const read = await store.readBlob(numbered(payload));
            expect(read.kind).toBe(named.has(payload) ? "found" : "missing");
            if (read.kind === "found") expect(Buffer.compare(read.bytes, payloadOf(payload))).toBe(0);
          }
        }),
        { numRuns: 12 },
      );
      expect(await store.readStream(stream(streams))).not.toBeNull();
    });
  });
}
