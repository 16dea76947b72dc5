/** Against the double, which is no EventStoreDB. */
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openStore } from "#src/store/open.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { temporaryFolder } from "../support/store-fixtures.js";
import {
  contentsOf,
  cutRows,
  exportTo,
  growTo,
  importFrom,
  memoryOf,
  randomRows,
  verified,
} from "../support/transfers.js";

let folder: ReturnType<typeof temporaryFolder>;
let double: Double;
beforeEach(async () => {
  folder = temporaryFolder();
  double = await startDouble();
});
afterEach(async () => {
  await double.stop();
  folder.remove();
});

it("should move a ledger to a server and back, and what has happened since", async () => {
  const rows = await randomRows(40, 31);
  const ledger = await memoryOf(cutRows(rows, [1, 2, 3]));
  const [there, back] = [join(folder.path, "there.hlb"), join(folder.path, "back.hlb")];
  await exportTo(there, ledger);
  const server = await openStore(double.url, { mode: "write" });
  expect(await importFrom(there, server)).toMatchObject({ added: 40, refused: [], missing: 0, damaged: 0 });
  await growTo(ledger, rows);
  const { bundle, grown } = await exportTo(there, ledger);
  expect(grown).toBeGreaterThan(0);
  expect(await importFrom(there, server)).toMatchObject({ added: 0, grown, kept: 40 - grown, refused: [] });
  expect(await importFrom(there, server)).toMatchObject({ added: 0, grown: 0, kept: 40, refused: [] });
  expect(await verified(server)).toEqual({ checked: 40, diverged: [] });
  expect(await contentsOf(server)).toEqual(await contentsOf(ledger));
  const returned = await exportTo(back, server);
  expect(returned.bundle).toMatchObject({ digest: bundle.digest, streams: 40 });
  await server.close();
});
