import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deliveryRounds } from "../support/delivery-rounds.js";
import { temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

/** Another seed every day; the day of a failure is in its message. */
const SEED = Math.floor(Date.now() / 86_400_000);

describe("processes that are killed while they deliver", () => {
  it.each([0, 1, 2, 3, 4])("should lose nothing and send nothing twice, 40 times over: series %i", async (series) => {
    const url = `sqlite:${join(folder.path, "ledger.db")}`;
    const { kept } = await deliveryRounds({ url, seed: SEED * 10 + series, rounds: 40 });
    expect(kept).toBeGreaterThan(1000);
  });
});
