/** Against the double, which is no EventStoreDB. */
import { afterEach, describe } from "vitest";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { fencing } from "./fencing.js";

describe("with the double of EventStoreDB", () => {
  let double: Double | undefined;
  afterEach(async () => {
    await double?.stop();
    double = undefined;
  });

  fencing("eventstoredb", async () => {
    double ??= await startDouble();
    return openEventStoreDb(double.url, { mode: "write" });
  });
});
