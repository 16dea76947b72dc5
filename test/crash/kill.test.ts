/** SIGKILL at moments that nobody chose: what was handed out is in the ledger, and nothing is allowed that was not decided. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { killRounds } from "../support/kill-rounds.js";
import { temporaryFolder } from "../support/store-fixtures.js";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

/** ms; on a quiet machine each takes a few seconds. */
const PATIENCE = 120_000;

describe("a process that is killed while it dispatches", () => {
  it(
    "should have written every decision that it was handed out, twenty times over",
    async () => {
      expect(await killRounds({ url: `sqlite:${path}`, seed: 1, rounds: 20, writers: 1, readers: 0 })).toBeGreaterThan(
        100,
      );
      const verified = execFileSync(process.execPath, [CLI, "verify", "--all", "--json", "--store", `sqlite:${path}`]);
      expect(JSON.parse(verified.toString())).toMatchObject({ open: 0, diverged: [] });
    },
    PATIENCE,
  );

  it(
    "should not disturb another one that dies as well, nor those that read meanwhile",
    async () => {
      expect(await killRounds({ url: `sqlite:${path}`, seed: 2, rounds: 5, writers: 2, readers: 1 })).toBeGreaterThan(
        50,
      );
    },
    PATIENCE,
  );
});
