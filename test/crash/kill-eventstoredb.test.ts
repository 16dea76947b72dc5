/** Against the double, which is no EventStoreDB: the kernel dies, or the server goes away and comes back. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { disturbedRounds, killRounds } from "../support/kill-rounds.js";
import { noConnections } from "../support/kill-server.js";

const CLI = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

let double: Double;
beforeEach(async () => {
  double = await startDouble();
});
afterEach(() => double.stop());

/** ms; on a quiet machine each takes half a minute at most. */
const PATIENCE = 180_000;

/** The double runs in this process: it has to go on while the command reads it. */
async function verifyAll(): Promise<unknown> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    CLI,
    "verify",
    "--all",
    "--json",
    "--store",
    double.url,
  ]);
  return JSON.parse(stdout);
}

describe("a process that is killed while it dispatches to the double of EventStoreDB", () => {
  it(
    "should have written every decision that it was handed out, twenty times over",
    async () => {
      const { url } = double;
      const quiet = () => noConnections(double);
      const rounds = { rounds: 20, writers: 1, readers: 0, judgeEvery: 7 };
      expect(await killRounds({ url, seed: 3, ...rounds, quiet })).toBeGreaterThan(100);
      expect(await verifyAll()).toMatchObject({ open: 0, diverged: [] });
    },
    PATIENCE,
  );
});

describe("a server that goes away while a process dispatches", () => {
  it(
    "should cost no acknowledged decision, whether it restarts, cuts or loses replies",
    async () => {
      const disturb = async (random: number): Promise<void> => {
        if (random % 3 === 0) await double.restart();
        else if (random % 3 === 1) double.cutAll();
        else double.faults.loseReply({ method: ["append", "batchAppend"] }, "cut");
      };
      expect(await disturbedRounds({ url: double.url, seed: 4, rounds: 20, disturb })).toBeGreaterThan(50);
      expect(await verifyAll()).toMatchObject({ open: 0, diverged: [] });
    },
    PATIENCE,
  );
});
