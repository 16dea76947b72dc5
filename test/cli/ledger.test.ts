import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "#src/cli/commands.js";
import { folderWith, Running, run } from "../support/cli.js";
import { IDS, tamper, writeLedger } from "../support/cli-ledger.js";
import { type Ran, runCommand } from "../support/run-command.js";

let ledger: string;

beforeAll(async () => {
  ledger = mkdtempSync(join(tmpdir(), "hookledger-cli-"));
  await writeLedger(ledger);
});

afterAll(() => rmSync(ledger, { recursive: true, force: true }));

/** A copy that a test may spoil. */
function copied(): string {
  const cwd = folderWith({});
  cpSync(join(ledger, ".hookledger"), join(cwd, ".hookledger"), { recursive: true });
  return cwd;
}

function ndjson(stdout: string) {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** In this process, on the ledger that nobody spoils. */
function here(name: string, ...args: readonly string[]): Promise<Ran> {
  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) throw new Error(`no command ${name}`);
  return runCommand(command, ["--json", "--store", `sqlite:${ledger}/.hookledger/ledger.db`, name, ...args]);
}

function idsIn({ stdout }: Ran): readonly string[] {
  return ndjson(stdout).map(({ dispatchId }) => dispatchId);
}

describe("list", () => {
  it("should print one JSON line a dispatch, newest first", async () => {
    const { code, stdout, stderr } = await run(["--json", "list"], { cwd: ledger });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const rows = ndjson(stdout);
    expect(rows.map(({ dispatchId }) => dispatchId)).toEqual(Object.values(IDS).reverse());
    expect(rows[4]).toEqual({
      dispatchId: IDS.allowed,
      point: "pre-tool-call",
      status: "decided",
      decision: "allow",
      decidedBy: "kernel:default",
      session: "s-1",
      turn: "t-1",
      startedAt: "2026-02-28T09:30:00.000Z",
      events: 4,
    });
    expect(stdout).toContain("evil\\u202e");
  });

  it("should line up for people, and show what is foreign as what it is", async () => {
    const { stdout } = await run(["list"], { cwd: ledger });
    const [heading = "", ...rows] = stdout.trimEnd().split("\n");
    expect(rows).toHaveLength(5);
    const column = heading.indexOf("VERDICT");
    expect(rows.map((row) => row.slice(column).split("  ")[0])).toEqual([
      "allowed",
      "allowed",
      "aborted: cancelled",
      "denied",
      "allowed",
    ]);
    expect(stdout).toContain("evil\\u{202e}");
  });

  it.each([
    [
      ["--session", "s-1"],
      ["denied", "allowed"],
    ],
    [
      ["--session", ""],
      ["plain", "rewritten"],
    ],
    [["--point", "pre-model-call"], ["rewritten"]],
    [["--decision", "deny"], ["denied"]],
    [["--status", "aborted"], ["aborted"]],
    [["--status", "open"], []],
    [
      ["--subscriber", "gate"],
      ["aborted", "denied", "allowed"],
    ],
    [["--subscriber", "gate", "--decision", "allow"], ["allowed"]],
    [
      ["--since", "2026-02-28T11:30:00Z"],
      ["plain", "rewritten", "aborted"],
    ],
    [["--since", "2026-02-28T10:00:00Z", "--until", "2026-02-28T11:30:00Z"], ["denied"]],
    [["--since", "1h", "--until", "2100-01-01"], []],
    [
      ["--limit", "2"],
      ["plain", "rewritten"],
    ],
    [["--session", "s-1", "--limit", "1"], ["denied"]],
  ] as const)("should list what %j selects", async (args, expected) => {
    expect(idsIn(await here("list", ...args))).toEqual(expected.map((name) => IDS[name]));
  });

  it.each([
    ["--point", "plan_ready"],
    ["--decision", "maybe"],
    ["--status", "lost"],
    ["--since", "yesterday"],
    ["--until", "2026-02-31"],
    ["--limit", "0"],
    ["--limit", "ten"],
  ])("should exit 2 on %s %s", async (option, value) => {
    const { code, stdout } = await here("list", option, value);
    expect([code, JSON.parse(stdout).error.code]).toEqual([2, "HL_USAGE"]);
  });

  it.each([
    ["--session", "nobody"],
    ["--subscriber", "nobody"],
  ])("should exit 7 where %s names nothing", async (option, value) => {
    const { code, stdout } = await here("list", option, value);
    expect([code, JSON.parse(stdout).error.code]).toEqual([7, "HL_NOT_FOUND"]);
  });

  it("should say so where nothing matches", async () => {
    const { code, stdout, stderr } = await run(["list", "--status", "open"], { cwd: ledger });
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "", stderr: "No dispatch matches.\n" });
  });

  it("should list the rest where one record does not decode", async () => {
    const cwd = copied();
    tamper(cwd, "UPDATE events SET data = 'nonsense' WHERE stream = ? AND revision = 0", `hookdispatch-${IDS.denied}`);
    const { code, stdout, stderr } = await run(["--json", "list"], { cwd });
    expect(code).toBe(0);
    const rows = ndjson(stdout);
    expect(rows).toHaveLength(5);
    expect(rows[3]).toMatchObject({ dispatchId: IDS.denied, status: "unreadable", point: null, session: "s-1" });
    expect(stderr).toContain("hookledger verify");
  });
});

describe("replay", () => {
  it("should print what was recorded, under a unique prefix", async () => {
    const { code, stdout } = await here("replay", "01d", "01bbb");
    expect(code).toBe(0);
    const [rewritten, denied] = ndjson(stdout);
    expect(rewritten).toMatchObject({ dispatchId: IDS.rewritten, decision: "allow", payload: { preModelCall: {} } });
    expect(denied).toMatchObject({
      dispatchId: IDS.denied,
      decision: "deny",
      decidedBy: "gate",
      reason: "rm is never run",
      payload: { preToolCall: { call: { toolName: "rm" } } },
    });
    expect(Object.keys(denied)).toEqual([
      ..."dispatchId point status decision decidedBy allowed abortCause reason payload hookErrors".split(" "),
      ..."planDecisions session turn events durationMs".split(" "),
    ]);
  });

  it("should stop at a revision, with the payload of that moment", async () => {
    const { stdout } = await here("replay", IDS.rewritten, "--at", "1");
    expect(JSON.parse(stdout)).toMatchObject({
      status: "open",
      decision: null,
      events: 2,
      payload: { preModelCall: { messages: [{ role: "ROLE_USER" }] } },
    });
  });

  it("should print a session, those without one, and all", async () => {
    const ids = async (...args: readonly string[]) => idsIn(await here("replay", ...args));
    expect(await ids("--session", "s-1")).toEqual([IDS.denied, IDS.allowed]);
    expect(await ids("--session", "")).toEqual([IDS.plain, IDS.rewritten]);
    expect(await ids("--all")).toHaveLength(5);
  });

  it("should show people the payload behind a bar", async () => {
    const { stdout } = await run(["replay", IDS.denied], { cwd: ledger });
    expect(stdout).toMatch(/^denied {2}pre-tool-call {2}01BBBB/);
    expect(stdout).toContain('  │       "toolName": "rm"');
  });

  it.each([
    [["replay"], 2, "HL_USAGE"],
    [["replay", "01A", "--all"], 2, "HL_USAGE"],
    [["replay", "01A", "--at", "-1"], 2, "HL_USAGE"],
    [["replay", ""], 2, "HL_USAGE"],
    [["replay", "01B"], 2, "HL_AMBIGUOUS_ID"],
    [["replay", "01A", "01Z"], 7, "HL_NOT_FOUND"],
    [["replay", "__proto__"], 7, "HL_NOT_FOUND"],
    [["replay", "--session", "nobody"], 7, "HL_NOT_FOUND"],
    [["verify"], 2, "HL_USAGE"],
    [["verify", "--all", "--jobs", "0"], 2, "HL_USAGE"],
    [["verify", "01B"], 2, "HL_AMBIGUOUS_ID"],
    [["verify", "--session", "nobody"], 7, "HL_NOT_FOUND"],
    [["recover", "--older-than", "soon"], 2, "HL_USAGE"],
  ] as const)("should fail on %j", async ([name, ...args], expected, code) => {
    const ran = await here(name, ...args);
    expect([ran.code, JSON.parse(ran.stdout).error.code]).toEqual([expected, code]);
  });

  it("should print the rest where one record does not replay, and exit 5", async () => {
    const cwd = copied();
    tamper(cwd, "UPDATE events SET data = '{}' WHERE stream = ? AND revision = 2", `hookdispatch-${IDS.denied}`);
    const { code, stdout, stderr } = await run(["--json", "replay", "--all"], { cwd });
    expect(code).toBe(5);
    const lines = ndjson(stdout);
    expect(lines).toHaveLength(5);
    expect(lines[3].error).toMatchObject({ code: "HL_DIVERGENCE", message: expect.stringContaining(IDS.denied) });
    expect(stderr).toMatch(/^hookledger: dispatch 01B.* \(HL_DIVERGENCE\)\n/);
  });
});

describe("verify", () => {
  it("should find nothing in a ledger that nobody touched", async () => {
    for (const args of [["--all"], ["--all", "--jobs", "2"]]) {
      const { code, stdout } = await run(["--json", "verify", ...args], { cwd: ledger });
      expect(code).toBe(0);
      expect(JSON.parse(stdout)).toEqual({ checked: 5, ok: 5, open: 0, erased: 0, diverged: [] });
    }
    const one = await run(["verify", "01A"], { cwd: ledger });
    expect([one.code, one.stdout]).toEqual([0, "record = replay  1 checked\n"]);
  });

  it("should name every divergence, check the rest, and exit 5", async () => {
    const cwd = copied();
    tamper(cwd, "UPDATE events SET data = 'nonsense' WHERE stream = ? AND revision = 1", `hookdispatch-${IDS.allowed}`);
    tamper(
      cwd,
      `UPDATE events SET data = replace(data, '"deny"', '"allow"') WHERE stream = ? AND type = 'decided'`,
      `hookdispatch-${IDS.denied}`,
    );
    for (const jobs of ["1", "2"]) {
      const { code, stdout } = await run(["--json", "verify", "--all", "--jobs", jobs], { cwd });
      expect(code).toBe(5);
      const { diverged, ...counts } = JSON.parse(stdout);
      expect(counts).toMatchObject({ checked: 5, ok: 3, erased: 0 });
      expect(diverged).toMatchObject([
        { dispatchId: IDS.allowed, revision: 1, kind: "undecodable" },
        { dispatchId: IDS.denied, revision: 3, kind: "decision" },
      ]);
      expect(Object.keys(diverged[0])).toEqual(["dispatchId", "revision", "kind", "expected", "found"]);
    }
    const people = await run(["verify", "--all"], { cwd });
    expect(people.stdout).toMatch(/^2 diverge {2}5 checked/);
  });
});

describe("a ledger", () => {
  it.each([["list"], ["replay", "--all"], ["verify", "--all"], ["recover"], ["recover", "--dry-run"]])(
    "should not be created by %s, which exits 6",
    async (...args) => {
      const cwd = folderWith({});
      const { code, stdout, stderr } = await run(["--json", ...args], { cwd });
      expect([code, JSON.parse(stdout).error.code]).toEqual([6, "HL_STORE_MISSING"]);
      expect(stderr).toMatch(/^hookledger: .* \(HL_STORE_MISSING\)\n/);
      expect(existsSync(join(cwd, ".hookledger"))).toBe(false);
    },
  );

  it("should be left byte-identical where it is not ours", async () => {
    const cwd = folderWith({ "notes.txt": "not a ledger" });
    for (const args of [["list"], ["recover"], ["verify", "--all"]]) {
      const { code, stdout } = await run(["--json", "--store", "sqlite:notes.txt", ...args], { cwd });
      expect([code, JSON.parse(stdout).error.code]).toEqual([6, "HL_STORE_FOREIGN"]);
    }
    expect(readFileSync(join(cwd, "notes.txt"), "utf8")).toBe("not a ledger");
  });

  it("should be fine when it is empty", async () => {
    const cwd = copied();
    for (const table of ["events", "heads"]) tamper(cwd, `DELETE FROM ${table}`);
    const list = await run(["--json", "list"], { cwd });
    const replay = await run(["--json", "replay", "--all"], { cwd });
    const verify = await run(["--json", "verify", "--all"], { cwd });
    const recover = await run(["--json", "recover"], { cwd });
    expect([list.code, replay.code, verify.code, recover.code]).toEqual([0, 0, 0, 0]);
    expect([list.stdout, replay.stdout]).toEqual(["", ""]);
    expect(JSON.parse(verify.stdout)).toMatchObject({ checked: 0, diverged: [] });
    expect(JSON.parse(recover.stdout)).toEqual({ closed: [], skipped: [] });
  });

  it("should be named by --store, or by HOOKLEDGER_STORE, of which the former wins", async () => {
    const cwd = folderWith({});
    const store = `sqlite:${join(ledger, ".hookledger/ledger.db")}`;
    const byEnv = await run(["--json", "list"], { cwd, env: { HOOKLEDGER_STORE: store } });
    const byOption = await run(["list", "--json", "--store", store], { cwd, env: { HOOKLEDGER_STORE: "nonsense:" } });
    expect(ndjson(byEnv.stdout)).toHaveLength(5);
    expect(ndjson(byOption.stdout)).toHaveLength(5);
    const wrong = await run(["--json", "list", "--store", "redis://user:hunter2@host"], { cwd });
    expect([wrong.code, JSON.parse(wrong.stdout).error.code]).toEqual([2, "HL_STORE_URL"]);
    expect(wrong.stdout + wrong.stderr).not.toContain("hunter2");
  });
});

describe("recover", () => {
  it("should close what a killed process left open, once, and never as allowed", async () => {
    const cwd = folderWith({
      "agent.hcl": `required_providers { slow = { source = "module:./slow.mjs" } }
        hook "pre-tool-call" {
          provider = "slow"
          mode = "veto"
          timeout_ms = 60000
        }`,
      "slow.mjs": `export default { "pre-tool-call": { async veto() {
        setTimeout(() => {
          process.stderr.write("recorded");
        }, 0);
        return new Promise((resolve) => setTimeout(resolve, 60000));
      } } };`,
    });
    writeFileSync(join(cwd, "call.json"), '{"preToolCall":{"call":{"toolName":"ls"}}}');
    const running = new Running(["dispatch", "--payload", "call.json", "--id", IDS.plain], { cwd });
    await running.sees("stderr", "recorded");
    for (let open = ""; open === ""; open = (await run(["--json", "list", "--status", "open"], { cwd })).stdout);
    const alive = await run(["--json", "recover"], { cwd });
    expect(JSON.parse(alive.stdout)).toEqual({
      closed: [],
      skipped: [{ dispatchId: IDS.plain, reason: "its writer is alive" }],
    });
    running.kill("SIGKILL");
    await running.ended;
    const retried = await run(["--json", "dispatch", "--payload", "call.json", "--id", IDS.plain], { cwd });
    expect([retried.code, JSON.parse(retried.stdout).error.code]).toEqual([4, "HL_DISPATCH_OPEN"]);
    const dry = await run(["--json", "recover", "--dry-run"], { cwd });
    const wet = await run(["--json", "recover"], { cwd });
    expect(JSON.parse(dry.stdout)).toMatchObject({ closed: [{ status: "aborted", cause: "recovered" }], skipped: [] });
    expect(JSON.parse(wet.stdout)).toEqual(JSON.parse(dry.stdout));
    const again = await run(["recover"], { cwd });
    expect([again.code, again.stdout]).toEqual([0, "nothing is open\n"]);
    const replayed = await run(["--json", "replay", "--all"], { cwd });
    expect(JSON.parse(replayed.stdout)).toMatchObject({ allowed: false });
    expect((await run(["verify", "--all"], { cwd })).code).toBe(0);
  });
});
