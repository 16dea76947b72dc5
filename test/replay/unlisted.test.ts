/** What the store's own index does not name is verified and recovered all the same. On the double, which is no EventStoreDB. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { recover } from "#src/replay/recover.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import type { EventStore } from "#src/store/port.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { chain, invoked, started } from "../support/given.js";
import { appendInto } from "../support/ledgers.js";
import { ledgerOf } from "../support/ledgers-random.js";
import { collect } from "../support/store-fixtures.js";

let double: Double;
let store: EventStore;

beforeEach(async () => {
  double = await startDouble();
  store = await openEventStoreDb(double.url, { mode: "write" });
  await appendInto(store, await ledgerOf({ n: 1, log: [started(chain("veto:guard@200")), invoked(0)], session: "s" }));
  for (const index of double.log.streams.filter((name) => name.startsWith("hookindex-")))
    double.log.remove(index, "any");
});

afterEach(async () => {
  await store.close();
  await double.stop();
});

it("should verify a dispatch that no index names", async () => {
  expect(await collect(store.list({ order: "oldest" }))).toEqual([]);
  const parts = [];
  for await (const part of verifyAll(store, undefined, 1)) parts.push(part);
  expect(parts.filter(({ checked }) => checked > 0)).toEqual([{ checked: 1, open: 1, diverged: [] }]);
});

it("should close a dispatch that no index names", async () => {
  const closed = [];
  for await (const recovered of recover(store, { dryRun: false, now: Date.UTC(2100, 0, 1) })) closed.push(recovered);
  expect(closed).toMatchObject([{ kind: "closed", status: "aborted", cause: "recovered" }]);
});
