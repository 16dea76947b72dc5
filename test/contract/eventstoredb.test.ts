/** Against the double, which is no EventStoreDB; against a real server, too, where HOOKLEDGER_TEST_ESDB names one. */
import type { Worker } from "node:worker_threads";
import { afterAll, afterEach, describe } from "vitest";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import { spawnThread } from "#src/store/eventstoredb/thread.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { Scopes } from "../support/scoped-store.js";
import { storeContract } from "./store-contract.js";

describe("with the double of EventStoreDB", () => {
  let double: Double;
  let reader: Worker | undefined;

  async function open() {
    double = await startDouble();
    return openEventStoreDb(double.url, {
      mode: "write",
      spawnThread(data) {
        const worker = spawnThread(data);
        if (data.role === "read") reader = worker;
        return worker;
      },
    });
  }

  afterEach(() => double.stop());

  storeContract("eventstoredb (a double)", open, {
    otherWriters: "unknown",
    async spoilChunks(how) {
      // What it has read and checked it remembers.
      await reader?.terminate();
      return spoilChunks(double, how);
    },
  });
});

const url = process.env["HOOKLEDGER_TEST_ESDB"];
if (url !== undefined) {
  describe("with the server that HOOKLEDGER_TEST_ESDB names", () => {
    const scopes = new Scopes();

    afterAll(() => scopes.removeAll(url));

    storeContract("eventstoredb", async () => scopes.open(await openEventStoreDb(url, { mode: "write" })), {
      otherWriters: "unknown",
      sessionSuffix: scopes.sessionSuffix,
    });
  });
}

function spoilChunks({ log }: Double, how: "alter" | "remove"): number {
  const chunks = log.streams.filter((name) => name.startsWith("hookchunk-"));
  for (const name of chunks) {
    if (how === "remove") log.remove(name, "any");
    else {
      const read = log.readStream(name, { direction: "forwards", from: "start", max: 1 });
      const bytes = read.kind === "events" ? read.events[0]?.data : undefined;
      if (bytes !== undefined) bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    }
  }
  return chunks.length;
}
