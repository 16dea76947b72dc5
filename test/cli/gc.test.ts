import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { run } from "../support/cli.js";
import { IDS, tamper, writeLedger } from "../support/cli-ledger.js";

let cwd: string;

beforeEach(async () => {
  cwd = mkdtempSync(join(tmpdir(), "hookledger-gc-"));
  await writeLedger(cwd);
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

async function gc(...args: readonly string[]) {
  const { code, stdout, stderr } = await run(["--json", "gc", ...args], { cwd });
  expect(stderr).toBe("");
  return { code, ...JSON.parse(stdout) };
}

describe("gc", () => {
  it("should remove nothing that a dispatch refers to", async () => {
    expect(await gc()).toEqual({ code: 0, kept: 1, removed: 0, removedBytes: 0, marked: 0 });
    expect((await run(["verify", "--all"], { cwd })).code).toBe(0);
    const people = await run(["gc"], { cwd });
    expect([people.code, people.stdout]).toEqual([0, "nothing to remove, 1 kept\n"]);
  });

  it("should tell what it would remove, and then remove it, once", async () => {
    tamper(
      cwd,
      "INSERT INTO payloads (digest, size, bytes) VALUES (?, 1300, zeroblob(1300))",
      `sha256:${"ab".repeat(32)}`,
    );
    tamper(cwd, "INSERT INTO chunks (digest, size, bytes) VALUES (CAST(? AS BLOB), 4, 'abcd')", "ab".repeat(16));
    const found = { code: 0, kept: 1, removed: 2, removedBytes: 1304, marked: 0 };
    expect(await gc("--dry-run")).toEqual(found);
    const people = await run(["gc", "--dry-run"], { cwd });
    expect(people.stdout).toBe("2 would be removed (1.3 kB), 1 kept\n");
    expect(await gc("--grace", "1h")).toEqual(found);
    expect(await gc()).toMatchObject({ kept: 1, removed: 0 });
  });

  it("should remove the configuration that only removed dispatches named", async () => {
    for (const id of Object.values(IDS)) {
      tamper(cwd, "DELETE FROM events WHERE stream = ?", `hookdispatch-${id}`);
      tamper(cwd, "DELETE FROM heads WHERE stream = ?", `hookdispatch-${id}`);
    }
    expect(await gc()).toMatchObject({ code: 0, kept: 0, removed: 1 });
  });

  it("should make no ledger, and refuse a grace that is no duration", async () => {
    const elsewhere = await run(["--json", "--store", "sqlite:other/ledger.db", "gc"], { cwd });
    expect([elsewhere.code, JSON.parse(elsewhere.stdout).error.code]).toEqual([6, "HL_STORE_MISSING"]);
    expect(existsSync(join(cwd, "other"))).toBe(false);
    const soon = await run(["--json", "gc", "--grace", "soon"], { cwd });
    expect([soon.code, JSON.parse(soon.stdout).error.code]).toEqual([2, "HL_USAGE"]);
  });
});
