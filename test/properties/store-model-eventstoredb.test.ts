/** Against the double, which is no EventStoreDB; against a real server, too, where HOOKLEDGER_TEST_ESDB names one. */
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { afterAll, describe, it } from "vitest";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import { spawnThread } from "#src/store/eventstoredb/thread.js";
import type { EventStore } from "#src/store/port.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { FaultyStore } from "../support/faulty-store.js";
import { Scopes } from "../support/scoped-store.js";
import { emptyModel, expectAsModelled, type StoreFault, type StoreUnderTest, storeCommands } from "./store-model.js";

describe("a ledger on the double of EventStoreDB, whatever is done to it", () => {
  it("should be as the model says", async () => {
    await fc.assert(
      fc.asyncProperty(storeCommands(30), async (commands) => {
        const under = new ServerUnderTest(await startDouble());
        try {
          await under.reopen();
          const model = emptyModel();
          await fc.asyncModelRun(() => ({ model, real: under }), commands);
          await expectAsModelled(model, under);
        } finally {
          await under.end();
        }
      }),
      { numRuns: 6 },
    );
  }, 120_000);
});

const url = process.env["HOOKLEDGER_TEST_ESDB"];
if (url !== undefined) {
  describe("a ledger on the server that HOOKLEDGER_TEST_ESDB names, whatever is done to it", () => {
    const scopes = new Scopes();
    afterAll(() => scopes.removeAll(url));

    it("should be as the model says", async () => {
      await fc.assert(
        fc.asyncProperty(storeCommands(30), async (commands) => {
          const under = await realServer(url, scopes);
          try {
            const model = emptyModel();
            await fc.asyncModelRun(() => ({ model, real: under }), commands);
            await expectAsModelled(model, under);
          } finally {
            await under.store.close();
          }
        }),
        { numRuns: 20 },
      );
    }, 300_000);
  });
}

/** Opened again it would be another ledger, and its faults are those that a test can make: in front of it. */
async function realServer(url: string, scopes: Scopes): Promise<StoreUnderTest> {
  let appending: Worker | undefined;
  const inner = await openEventStoreDb(url, {
    mode: "write",
    spawnThread(data) {
      const worker = spawnThread(data);
      if (data.role === "append") appending = worker;
      return worker;
    },
  });
  const store = new FaultyStore(await scopes.open(inner));
  return {
    store,
    failNext: (fault) => store.failNext(fault),
    async crash() {
      await new Promise((resolve) => setImmediate(resolve));
      await appending?.terminate();
    },
    reopen: async () => {},
  };
}

/** Appends to dispatches; the indexes are left alone. */
const DISPATCHES = { method: ["append", "batchAppend"], stream: /^hookdispatch-/ } as const;

class ServerUnderTest implements StoreUnderTest {
  readonly #double: Double;
  #store: EventStore | undefined;
  #appending: Worker | undefined;

  constructor(double: Double) {
    this.#double = double;
  }

  get store(): EventStore {
    if (this.#store === undefined) throw new Error("not open");
    return this.#store;
  }

  failNext(fault: StoreFault): void {
    const { faults } = this.#double;
    faults.clear();
    if (fault === "lose the reply") faults.loseReply(DISPATCHES, "cut");
    else if (fault === "lose the request") faults.cut(DISPATCHES);
    else faults.refuse(DISPATCHES);
  }

  /** The thread with the client dies; the store starts another, which finds out what became of what it was doing. */
  async crash(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await this.#appending?.terminate();
  }

  async reopen(): Promise<void> {
    await this.#store?.close();
    this.#store = await openEventStoreDb(this.#double.url, {
      mode: "write",
      spawnThread: (data) => {
        const worker = spawnThread(data);
        if (data.role === "append") this.#appending = worker;
        return worker;
      },
    });
  }

  async end(): Promise<void> {
    await this.#store?.close();
    await this.#double.stop();
  }
}
