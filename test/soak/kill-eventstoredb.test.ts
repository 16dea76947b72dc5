/** Against the double, which is no EventStoreDB. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { disturbedRounds, killRounds } from "../support/kill-rounds.js";
import { noConnections } from "../support/kill-server.js";

/** Another seed every day; the day of a failure is in its message. */
const SEED = Math.floor(Date.now() / 86_400_000);

let double: Double;
beforeEach(async () => {
  double = await startDouble();
});
afterEach(() => double.stop());

describe("processes that are killed while they dispatch to the double of EventStoreDB", () => {
  it.each([0, 1, 2, 3, 4])(
    "should have written what they were handed out, 40 times over: series %i",
    async (series) => {
      const rounds = { rounds: 40, writers: 1 + (series % 2), readers: series === 4 ? 1 : 0, judgeEvery: 5 };
      const quiet = series === 4 ? async () => {} : () => noConnections(double);
      const { url } = double;
      expect(await killRounds({ url, seed: SEED * 10 + series, ...rounds, quiet })).toBeGreaterThan(200);
    },
  );
});

describe("a server that goes away while a process dispatches", () => {
  it.each([0, 1])("should cost no acknowledged decision, 100 times over: series %i", async (series) => {
    const methods = { method: ["append", "batchAppend"] } as const;
    const disturb = async (random: number): Promise<void> => {
      if (random % 4 === 0) await double.restart();
      else if (random % 4 === 1) double.cutAll();
      else if (random % 4 === 2) double.faults.loseReply(methods, "cut");
      else double.faults.refuse(methods);
    };
    const seed = SEED * 10 + series;
    expect(await disturbedRounds({ url: double.url, seed, rounds: 100, disturb })).toBeGreaterThan(200);
  });
});
