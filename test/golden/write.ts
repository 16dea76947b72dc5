/** `npm run golden:write`: golden ledgers of this release for the scenarios that have none. */
import { expect, it } from "vitest";
import { writeMissing } from "../support/golden.js";

it("should write the golden ledgers that are missing", async () => {
  const written = await writeMissing();
  console.log(written.length === 0 ? "nothing is missing" : `written: ${written.join(", ")}`);
  expect(await writeMissing()).toEqual([]);
});
