import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { allDeliveries, delivery, deliveryId, queueIn } from "../support/deliveries.js";
import { StoreChild } from "../support/store-child.js";
import { collect, stream, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let children: StoreChild[];

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  children = [];
});
afterEach(async () => {
  await Promise.all(children.map((child) => child.kill()));
  folder.remove();
});

function child(...args: string[]): StoreChild {
  const started = new StoreChild(args);
  children.push(started);
  return started;
}

describe("two processes on one queue", () => {
  it("should never begin the same attempt, and each take the other for alive until it has ended", async () => {
    const ids = Array.from({ length: 200 }, (_, n) => deliveryId(n));
    const store = await openSqliteStore(path, { mode: "write" });
    const queue = queueIn(store);
    await queue.put(
      ids.map((_, n) => delivery(n)),
      true,
    );
    const racers = [child("race", path), child("race", path)];
    await Promise.all(racers.map((racer) => racer.said("raced")));
    const got = racers.flatMap((racer) => racer.all("got "));
    expect(got.toSorted()).toEqual(ids);
    expect(await queue.deliveries({ states: ["unknown"] })).toEqual([]);
    expect(await queue.change(ids[0] ?? "", ["unknown"], { state: "pending" }, false)).toBe(false);
    await racers[0]?.kill();
    const left = await queue.deliveries({ states: ["unknown"] });
    expect(left.map(({ id }) => id)).toEqual(racers[0]?.all("got ").toSorted());
    await racers[1]?.end();
    expect(await queue.deliveries({ states: ["unknown"] })).toHaveLength(200);
    expect(await queue.change(ids[0] ?? "", ["unknown"], { state: "pending" }, false)).toBe(true);
    await store.close();
  });
});

describe("a process that is killed between an attempt and its acknowledgement", () => {
  it("should leave everything that it waited for, and no delivery without its event, five times over", async () => {
    const waitedFor = new Set<string>();
    for (let round = 0; round < 5; round++) {
      const sender = child("deliver", path, String(round * 10_000), "10000");
      await sender.said("put ", 10 + round * 7);
      await sender.kill();
      for (const n of sender.all("put ")) waitedFor.add(deliveryId(Number(n)));
    }
    const store = await openSqliteStore(path, { mode: "read" });
    const found = await allDeliveries(queueIn(store));
    const streams = new Set((await collect(store.list({ order: "oldest" }))).map((head) => head.stream));
    for (const id of waitedFor) expect(found.map((one) => one.id)).toContain(id);
    for (const { id, state } of found) {
      expect(streams).toContain(stream(Number(id.slice(3))));
      expect(["sent", "unknown"]).toContain(state);
    }
    // The acknowledgements travel in the order of the calls: at most the last of each round are missing.
    const unknown = found.filter(({ state }) => state === "unknown");
    for (const { id } of unknown) {
      const later = found.filter((one) => one.id > id && one.id.slice(0, -4) === id.slice(0, -4));
      for (const { state } of later) expect(state).toBe("unknown");
    }
    await store.close();
  });
});
