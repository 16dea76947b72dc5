/** The archive and its collection through the client, against the double, which is no EventStoreDB. */
import { expect, it } from "vitest";
import type { Digest } from "#src/core/events.js";
import { digest } from "#src/payload/digest.js";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import { startDouble } from "../support/eventstoredb/double.mjs";
import { conversation } from "../support/shared-payloads.js";
import { blobOf, draft, opening } from "../support/store-fixtures.js";

const HOUR = 3_600_000;

function naming(n: number, named: Digest | null, ...writes: readonly Uint8Array[]) {
  return opening(n, 1, {
    events: [draft(0, { data: JSON.stringify({ index: 0, names: named }) })],
    blobs: writes.map((bytes) => ({ digest: digest("payload", bytes), bytes })),
  });
}

it("should mark, keep, remove and write again on a server as it does in memory", async () => {
  const used = conversation([1, 2, 3, 4]);
  const unused = conversation([2, 3, 4, 5]);
  const [usedDigest, unusedDigest] = [digest("payload", used), digest("payload", unused)];
  const double = await startDouble();
  try {
    const store = await openEventStoreDb(double.url, { mode: "write" });
    await store.append(naming(1, usedDigest, used));
    await store.append(naming(2, null, unused));
    const now = Date.now();
    const collect = (later: number) => store.collectGarbage({ dryRun: false, now: now + later, graceMs: HOUR });
    const marked = await collect(0);
    expect(marked).toMatchObject({ removed: 0, marked: 2 });
    expect(await collect(HOUR / 2)).toEqual(marked);
    expect(await blobOf(store, unusedDigest)).toEqual(new Uint8Array(unused));
    expect(await collect(2 * HOUR)).toMatchObject({ kept: marked.kept, removed: 2, marked: 0 });
    expect(await blobOf(store, unusedDigest)).toBeNull();
    expect(await blobOf(store, usedDigest)).toEqual(new Uint8Array(used));
    expect(await collect(3 * HOUR)).toMatchObject({ kept: marked.kept, removed: 0, marked: 0 });
    await store.close();

    // Another one: this one saw it there only minutes ago.
    const another = await openEventStoreDb(double.url, { mode: "write" });
    await another.append(naming(3, unusedDigest, unused));
    expect(await blobOf(another, unusedDigest)).toEqual(new Uint8Array(unused));
    await another.close();
  } finally {
    await double.stop();
  }
});
