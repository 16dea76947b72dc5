import fc from "fast-check";
import { describe, it } from "vitest";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore } from "../support/faulty-store.js";
import { emptyModel, expectAsModelled, type StoreUnderTest, storeCommands } from "./store-model.js";

describe("a ledger in memory, whatever is done to it", () => {
  it("should be as the model says", async () => {
    await fc.assert(
      fc.asyncProperty(storeCommands(20), async (commands) => {
        const model = emptyModel();
        const under = memory();
        await fc.asyncModelRun(() => ({ model, real: under }), commands);
        await expectAsModelled(model, under);
      }),
      { numRuns: 1000 },
    );
  });
});

/** Its writer cannot die alone, nor can it be opened again. */
function memory(): StoreUnderTest {
  const store = new FaultyStore(openMemoryStore());
  return {
    store,
    failNext: (fault) => store.failNext(fault),
    crash: async () => {},
    reopen: async () => {},
  };
}
