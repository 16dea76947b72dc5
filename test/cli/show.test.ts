import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { show } from "#src/cli/show.js";
import { createKernel } from "#src/dispatch/kernel.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { ulidOf } from "../support/ledger.js";
import { runCommand } from "../support/run-command.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { CONFIG, deniedPlan, open, PLAN, rewrittenCall, STAMPED, timedOut, withdrawn } from "../support/stories.js";

const folder = temporaryFolder();
const ledger = join(folder.path, "ledger.db");

beforeAll(async () => {
  const store = await openSqliteStore(ledger, { mode: "write" });
  await deniedPlan(store, 1);
  await rewrittenCall(store, 2);
  await timedOut(store, 3);
  await open(store, 4);
  await withdrawn(store, 16);
  await deniedPlan(store, 17);
  await store.close();
});
afterAll(() => folder.remove());

function run(argv: readonly string[], columns?: number, path = ledger) {
  return runCommand(show, ["--store", `sqlite:${path}`, "show", ...argv], columns);
}

describe("hookledger show", () => {
  it("should print the story and nothing else", async () => {
    const { code, stdout, stderr } = await run([ulidOf(1)]);
    expect({ code, stderr }).toStrictEqual({ code: 0, stderr: "" });
    expect(stdout.split("\n").slice(0, 4)).toStrictEqual([
      `denied  plan-ready  ${ulidOf(1)}`,
      "  Denied by gate (veto): too many items",
      "  when     2026-02-28T09:30:00.000Z, took 10 ms",
      "  record   10 events, written by hookledger 0.1.0; verified",
    ]);
  });

  it("should take the beginning of an id, in small letters too", async () => {
    expect((await run([ulidOf(3).toLowerCase()])).stdout).toContain("a timeout, not a refusal");
    expect((await run([ulidOf(4).slice(0, 26)])).code).toBe(0);
  });

  it("should refuse an ambiguous id with 2 and an unknown one with 7", async () => {
    expect(await run(["01K"])).toMatchObject({ code: 2, stdout: "" });
    expect(await run([ulidOf(99)])).toMatchObject({ code: 7, stdout: "" });
    expect(await run([])).toMatchObject({ code: 2 });
    expect(await run([ulidOf(1)], undefined, join(folder.path, "missing.db"))).toMatchObject({ code: 6, stdout: "" });
  });

  it("should draw its chart in the width of the terminal", async () => {
    const bar = async (columns?: number) => {
      const { stdout } = await run([ulidOf(1)], columns);
      return /^ {2}#1 .*?(█+)/m.exec(stdout)![1]!.length;
    };
    expect(await bar(80)).toBeLessThan(await bar());
    expect(await bar(140)).toBeGreaterThan(await bar());
    expect(await bar(100)).toBe(await bar());
  });

  it("should print one document with everything by --json", async () => {
    const { stdout } = await run([ulidOf(1), "--json"]);
    expect(stdout.endsWith("}\n")).toBe(true);
    const document = JSON.parse(stdout);
    expect(document).toMatchObject({
      dispatchId: ulidOf(1),
      point: "plan-ready",
      status: "decided",
      decision: "deny",
      decidedBy: "gate",
      allowed: false,
      reason: "too many items",
      session: "session-1",
      turn: "turn-2",
      durationMs: 10,
      concludedMs: 10,
      events: 10,
      verified: true,
      violation: null,
      diverged: null,
      config: { digest: CONFIG.digest, status: "found" },
      hookErrors: [{ subscriber: "metrics", mode: "observe", category: "UNKNOWN", message: "no such series" }],
    });
    expect(document.chain[3]).toStrictEqual({
      index: 3,
      subscriber: "gate",
      provider: "gate",
      mode: "veto",
      shadow: false,
      timeoutMs: 5000,
      producer: { name: "gate", source: "host" },
      calledMs: 6.1,
      settledMs: 9.9,
      tookMs: 3.8,
      lagMs: null,
      afterConclusion: false,
      saw: { version: 2, digest: STAMPED.ref.digest },
      said: { kind: "deny", reason: "too many items" },
      warnings: [],
      changed: null,
    });
    expect(document.chain[0].changed.changes).toHaveLength(6);
    expect(document.plan[1].origin.rule.place).toStrictEqual({ file: "agent.hcl", line: 12, col: 1 });
    expect(document.payloads[0]).toMatchObject({ version: 1, by: null, digest: PLAN.ref.digest, status: "found" });
    expect(document.payloads[0].payload.planReady.plan.items).toHaveLength(3);
  });

  it("should print no member that docs/show.md does not explain", async () => {
    const docs = readFileSync(new URL("../../docs/show.md", import.meta.url), "utf8");
    const explained = new Set([...docs.matchAll(/`(\w+)`/g)].map(([, word]) => word));
    const document = JSON.parse((await run([ulidOf(1), "--json"])).stdout);
    const parts = [document, document.chain[0], document.chain[0].changed, document.plan[0], document.payloads[0]];
    expect(parts.flatMap((part) => Object.keys(part)).filter((key) => !explained.has(key))).toStrictEqual([]);
  });

  it("should tell in JSON that a decision was taken back", async () => {
    const document = JSON.parse((await run([ulidOf(16), "--json"])).stdout);
    expect(document).toMatchObject({
      status: "aborted",
      abortCause: "unconfirmed",
      allowed: false,
      withdrawn: { decision: "allow", decidedBy: "kernel:default" },
    });
  });
});

describe("hookledger show of a ledger that was tampered with", () => {
  const path = join(folder.path, "tampered.db");

  beforeAll(async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    await deniedPlan(store, 1);
    await timedOut(store, 2);
    await rewrittenCall(store, 3);
    await store.close();
    const db = new Database(path);
    const change = (column: string, value: string, n: number, revision: number) =>
      db
        .prepare(`UPDATE events SET ${column} = ? WHERE stream = ? AND revision = ?`)
        .run(value, `hookdispatch-${ulidOf(n)}`, revision);
    change("data", '{"decidedBy":"kernel:default","decision":"allow","payload":"sha256:00"}', 1, 9);
    change("type", "begun", 2, 0);
    db.prepare("DELETE FROM payloads").run();
    db.close();
  });

  it("should show what can be told, name what is wrong, and end well", async () => {
    const { code, stdout } = await run([ulidOf(1)], undefined, path);
    expect(code).toBe(0);
    expect(stdout).toContain("The verdict cannot be told: the record breaks off before it.");
    expect(stdout).toContain("WARNING  the record breaks off at event 9 (undecodable)");
    expect(stdout).toContain(`hookledger verify ${ulidOf(1)}`);
    const document = JSON.parse((await run([ulidOf(1), "--json"], undefined, path)).stdout);
    expect(document).toMatchObject({
      status: "open",
      allowed: false,
      verified: false,
      violation: { revision: 9, kind: "undecodable" },
    });
  });

  it("should say that nothing can be told where the start is gone", async () => {
    const { code, stdout } = await run([ulidOf(2)], undefined, path);
    expect(code).toBe(0);
    expect(stdout.split("\n")[0]).toBe(`unreadable  ${ulidOf(2)}`);
    const document = JSON.parse((await run([ulidOf(2), "--json"], undefined, path)).stdout);
    expect(document).toMatchObject({
      dispatchId: ulidOf(2),
      status: "unreadable",
      events: 4,
      violation: { kind: "unknown_type" },
    });
  });

  it("should show the rest where the archived configuration is gone", async () => {
    const { stdout } = await run([ulidOf(3)], undefined, path);
    expect(stdout).toMatch(/^ {2}WARNING +the record does not verify at event 0 \(payload\): /m);
    expect(stdout).toContain("my key is [gone], keep it");
  });
});

describe("hookledger show of what the kernel recorded", () => {
  it("should print the rule that fired, with its place in the configuration of then", async () => {
    const path = join(folder.path, "live.db");
    const config = join(folder.path, "config");
    mkdirSync(config);
    writeFileSync(
      join(config, "agent.hcl"),
      [
        "required_providers {",
        '  gate = { source = "host" }',
        "}",
        "",
        'policy "no-root" {',
        '  match  = { tool_name = "bash" }',
        '  action = "deny"',
        '  reason = "not for $${you}"',
        "}",
        "",
        'hook "plan-ready" {',
        '  provider = "gate"',
        '  mode     = "veto"',
        "}",
        "",
      ].join("\n"),
    );
    const kernel = await createKernel({
      config: join(config, "agent.hcl"),
      store: `sqlite:${path}`,
      host: { gate: { "plan-ready": { veto: () => "allow" } } },
    });
    const item = (id: string, operationName: string) =>
      ({ id, callId: id, provider: "shell", operationName, kind: "TOOL_KIND_RESOURCE" }) as const;
    const { dispatchId } = await kernel.dispatch({
      planReady: { plan: { turnId: "t", items: [item("i1", "bash"), item("i2", "ls")] } },
    });
    await kernel.close();
    writeFileSync(join(config, "agent.hcl"), "");
    const { stdout } = await run([dispatchId], undefined, path);
    expect(stdout).toContain("; verified\n");
    expect(stdout).toContain("allowed in part  plan-ready");
    expect(stdout).toContain(
      `     rule "no-root" at agent.hcl:5:1: match tool_name = "bash", action deny, reason "not for \${you}"\n`,
    );
    expect(stdout).toContain("     no rule matched: resources are asked about\n");
  });
});
