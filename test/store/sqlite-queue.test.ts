import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { join } from "node:path";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { queueOf } from "#src/store/queue-of.js";
import { delivery, deliveryId } from "../support/deliveries.js";
import { opening, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

describe("first", () => {
  it("should put, change, read", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    const queue = queueOf(store)!;
    void store.append(opening(1));
    await queue.put([delivery(1), delivery(2, { state: "attempting" })], true);
    expect(await queue.deliveries({})).toEqual([delivery(1), delivery(2, { state: "attempting" })]);
    expect(await queue.change(deliveryId(2), ["attempting"], { state: "sent" }, false)).toBe(true);
    expect(await queue.change(deliveryId(2), ["attempting"], { state: "sent" }, true)).toBe(false);
    expect(await queue.change(deliveryId(1), ["pending"], { state: "attempting" }, true)).toBe(true);
    await store.close();
    const next = await openSqliteStore(path, { mode: "write" });
    const q2 = queueOf(next)!;
    expect((await q2.deliveries({})).map(({ state }) => state)).toEqual(["unknown", "sent"]);
    expect(await q2.change(deliveryId(1), ["attempting"], { state: "sent" }, false)).toBe(false);
    expect(await q2.change(deliveryId(1), ["unknown"], { state: "pending" }, false)).toBe(true);
    await next.close();
  });
});
