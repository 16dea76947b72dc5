/** Plugins that are killed at moments that nobody chose, under load. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadWithKills } from "../support/plugin-load.js";
import { temporaryFolder } from "../support/store-fixtures.js";

const PEER = fileURLToPath(new URL("../support/plugin-peer.mjs", import.meta.url));

let folder: ReturnType<typeof temporaryFolder>;
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(() => folder.remove());

describe("64 dispatches at once, with random cancels, through plugins that are killed at random", () => {
  it("should have every decision in the ledger, and allow nothing that a gate did not allow", async () => {
    const mark = `load-${process.pid}`;
    const args = JSON.stringify(JSON.stringify({ kind: "grpc", mark }));
    const plugin = `{ source = "${PEER}", args = [${args}] }`;
    const config = join(folder.path, "agent.hcl");
    const hook = (point: string, provider: string, mode: string): string =>
      `hook "${point}" {\n  provider = "${provider}"\n  mode = "${mode}"\n  timeout_ms = 2000\n}\n`;
    writeFileSync(
      config,
      `required_providers {\n  gate = ${plugin}\n  second = ${plugin}\n  rewrite = ${plugin}\n}\n` +
        hook("pre-tool-call", "gate", "veto") +
        hook("pre-tool-call", "second", "veto") +
        hook("pre-model-call", "rewrite", "transform"),
    );
    const outcome = await loadWithKills({
      config,
      url: `sqlite:${join(folder.path, "ledger.db")}`,
      seed: 4,
      dispatches: 1500,
      atOnce: 64,
      mark,
      turns: [
        ...Array.from({ length: 12 }, () => ({ turn: "auto", denies: false })),
        { turn: "deny", denies: true },
        { turn: "garbage", denies: true },
        { turn: "crash", denies: true },
        { turn: "late-15", denies: false },
      ],
    });
    for (const count of [outcome.allowed, outcome.denied, outcome.aborted, outcome.killed, outcome.crashedAnswers]) {
      expect(count).toBeGreaterThan(0);
    }
  }, 120_000);
});
