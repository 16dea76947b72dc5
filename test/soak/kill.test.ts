import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { killRounds } from "../support/kill-rounds.js";
import { temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

/** Another seed every day; the day of a failure is in its message. */
const SEED = Math.floor(Date.now() / 86_400_000);

describe("processes that are killed while they dispatch", () => {
  it.each([0, 1, 2, 3, 4])(
    "should have written what they were handed out, 40 times over: series %i",
    async (series) => {
      const url = `sqlite:${join(folder.path, "ledger.db")}`;
      const seed = SEED * 10 + series;
      expect(await killRounds({ url, seed, rounds: 40, writers: 1, readers: 0 })).toBeGreaterThan(200);
    },
  );

  it.each([0, 1])("should not disturb each other nor those that read, 20 times over: series %i", async (series) => {
    const url = `sqlite:${join(folder.path, "ledger.db")}`;
    const seed = SEED * 10 + 5 + series;
    expect(await killRounds({ url, seed, rounds: 20, writers: 2, readers: 2 })).toBeGreaterThan(200);
  });
});
