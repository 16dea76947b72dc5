/** Threads that verify end when they like: whoever waits for them is told. */
import { join } from "node:path";
import process from "node:process";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type VerifyPart, verifyAll } from "#src/replay/verify-all.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { opening, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let store: EventStore;
beforeEach(async () => {
  folder = temporaryFolder();
  store = await openSqliteStore(join(folder.path, "ledger.db"), { mode: "write" });
  await store.append(opening(1));
});
afterEach(async () => {
  await store.close();
  folder.remove();
});

async function verified(list: EventStore["list"], url: string): Promise<readonly VerifyPart[]> {
  const parts: VerifyPart[] = [];
  const readUnlisted: EventStore["readUnlisted"] = async function* () {};
  for await (const part of verifyAll({ ...store, url, list, readUnlisted }, undefined, 2)) parts.push(part);
  return parts;
}

describe("verification in threads", () => {
  it("should say why a thread cannot open the ledger", async () => {
    const missing = `sqlite:${join(folder.path, "none.db")}`;
    const refused = { code: "HL_STORE_MISSING" };
    await expect(verified((filter) => store.list(filter), missing)).rejects.toMatchObject(refused);
  });

  it("should notice that its threads have ended before they were asked for anything", async () => {
    const workers: Worker[] = [];
    const watch = (worker: Worker): void => void workers.push(worker);
    process.on("worker", watch);
    async function* late(filter: Parameters<EventStore["list"]>[0]) {
      await new Promise((resolve) => setImmediate(resolve));
      await Promise.all(workers.map((worker) => worker.terminate()));
      yield* store.list(filter);
    }
    await expect(verified(late, store.url)).rejects.toMatchObject({ code: "HL_INTERNAL" });
    expect(workers).toHaveLength(2);
    process.off("worker", watch);
  });
});
