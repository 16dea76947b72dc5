/** SIGKILL of whoever delivers, at moments that nobody chose: nothing that was kept is lost, nothing is sent twice, no hook is asked twice. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { deliveryRounds } from "../support/delivery-rounds.js";
import { temporaryFolder } from "../support/store-fixtures.js";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

/** ms; on a quiet machine it takes a few seconds. */
const PATIENCE = 120_000;

describe("a process that is killed while it delivers", () => {
  it(
    "should lose nothing that it kept and send nothing twice, twenty times over, and leave visible what nobody knows",
    async () => {
      const url = `sqlite:${join(folder.path, "ledger.db")}`;
      const { kept, unknown } = await deliveryRounds({ url, seed: 1, rounds: 20 });
      expect(kept).toBeGreaterThan(500);
      expect(unknown.length).toBeGreaterThan(0);
      const listed = execFileSync(process.execPath, [
        ...[CLI, "queue", "list", "--state", "unknown", "--limit", "100000", "--json", "--store", url],
      ]);
      for (const id of unknown) expect(listed.toString()).toContain(id);
    },
    PATIENCE,
  );
});
