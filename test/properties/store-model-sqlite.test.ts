import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, it } from "vitest";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { spawnWriter } from "#src/store/sqlite/writer-client.js";
import { FaultyStore } from "../support/faulty-store.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { emptyModel, expectAsModelled, type StoreFault, type StoreUnderTest, storeCommands } from "./store-model.js";

describe("a ledger in a file, whatever is done to it", () => {
  it("should be as the model says", async () => {
    await fc.assert(
      fc.asyncProperty(storeCommands(20), async (commands) => {
        const folder = temporaryFolder();
        const under = new SqliteUnderTest(join(folder.path, "ledger.db"));
        try {
          await under.open();
          const model = emptyModel();
          await fc.asyncModelRun(() => ({ model, real: under }), commands);
          await expectAsModelled(model, under);
        } finally {
          await under.store.close();
          folder.remove();
        }
      }),
      { numRuns: 30 },
    );
  }, 60_000);
});

class SqliteUnderTest implements StoreUnderTest {
  readonly #path: string;
  #store: FaultyStore | undefined;
  #writer: Worker | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  get store(): FaultyStore {
    if (this.#store === undefined) throw new Error("not open");
    return this.#store;
  }

  async open(): Promise<void> {
    const store = await openSqliteStore(this.#path, {
      mode: "write",
      spawnWriter: (data) => {
        this.#writer = spawnWriter(data);
        return this.#writer;
      },
    });
    this.#store = new FaultyStore(store);
  }

  failNext(fault: StoreFault): void {
    this.store.failNext(fault);
  }

  /** The writer's thread dies; the store starts another. */
  async crash(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.#writer?.terminate();
  }

  async reopen(): Promise<void> {
    await this.store.close();
    await this.open();
  }
}
