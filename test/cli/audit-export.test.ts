import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditExport } from "#src/cli/audit-export.js";
import { fileTarget } from "#src/cli/audit-out.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { schemaFaults } from "../support/audit-schema.js";
import { chain, deny } from "../support/given.js";
import { at, kept, record } from "../support/ledger.js";
import { runCommand } from "../support/run-command.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { abandoned, deniedPlan, rewrittenCall, startedWith, timedOut } from "../support/stories.js";

const folder = temporaryFolder();
const ledger = join(folder.path, "ledger.db");
const GATE = "@gate\u0007";
const HOSTILE = '=cmd()\u001b[2J\u202e\r\nYTEu,forged"';

beforeAll(async () => {
  const store = await openSqliteStore(ledger, { mode: "write" });
  await deniedPlan(store, 1);
  await rewrittenCall(store, 2);
  await timedOut(store, 3);
  await abandoned(store, 5);
  const input = kept({ preToolCall: {} });
  await record(store, {
    n: 7,
    session: "=1+1",
    kept: [input],
    happenings: [
      at(
        0,
        startedWith(
          7,
          chain("veto").map((gate) => ({ ...gate, id: GATE })),
          input,
        ),
      ),
      at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
      at(2, deny(0, HOSTILE)),
      at(3, { type: "decided", decision: "deny", decidedBy: GATE, payload: input.ref.digest }),
    ],
  });
  await store.close();
});
afterAll(() => folder.remove());

function run(...argv: readonly string[]) {
  return runCommand(auditExport, ["--store", `sqlite:${ledger}`, "audit", "export", ...argv]);
}

describe("hookledger audit export", () => {
  it("should print one valid JSON object a line, and nothing else", async () => {
    const { code, stdout, stderr } = await run("--all");
    const records = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.flatMap(schemaFaults)).toStrictEqual([]);
    expect(records).toHaveLength(18);
    expect({ code, stderr }).toStrictEqual({ code: 0, stderr: "" });
  });

  it("should print CSV with a header, CRLF line ends and as many records as NDJSON", async () => {
    const { stdout } = await run("--timeouts", "--format", "csv");
    expect(stdout).toMatch(
      /^cursor,dispatchId,revision,type,at,session,point,subscriber,mode,category,message,decision,decidedBy,payloadDigest\r\n/,
    );
    expect(stdout.split("\r\n")).toHaveLength(4);
    expect(stdout.split("\r\n").join("")).not.toMatch(/[\r\n]/);
  });

  it("should print the header of an empty CSV, and nothing of an empty NDJSON", async () => {
    const csv = await run("--timeouts", "--since", "1ms", "--format", "csv");
    expect(csv.stdout.split("\r\n")).toHaveLength(2);
    const ndjson = await run("--timeouts", "--since", "1ms");
    expect(ndjson).toStrictEqual({ code: 0, stdout: "", stderr: "" });
  });

  it("should let no foreign text act on a terminal, forge a record or be a formula", async () => {
    const csv = await run("--denials", "--format", "csv");
    const line = csv.stdout.split("\r\n").find((text) => text.includes("cmd()"))!;
    expect(line).toContain(String.raw`'=cmd()\u{1b}[2J\u{202e}\u{d}\u{a}YTEu,forged""`);
    expect(line).toContain(",'=1+1,");
    expect(line).toContain(String.raw`,'@gate\u{7},`);
    const ndjson = await run("--denials");
    expect(ndjson.stdout.split("\n").join("")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
    expect(JSON.parse(ndjson.stdout.trimEnd().split("\n").at(-1)!).message).toBe(HOSTILE);
  });

  it("should go on behind a cursor as if it had never stopped", async () => {
    const whole = (await run("--all")).stdout.trimEnd().split("\n");
    const { cursor } = JSON.parse(whole[9]!);
    const rest = await run("--all", "--after", cursor);
    expect(rest.stdout.trimEnd().split("\n")).toStrictEqual(whole.slice(10));
    const last = await run("--all", "--after", JSON.parse(whole.at(-1)!).cursor);
    expect(last).toStrictEqual({ code: 0, stdout: "", stderr: "" });
  });

  it.each([
    [["--after", "nonsense", "--all"], "HL_CURSOR"],
    [["--after", "", "--all"], "HL_CURSOR"],
    [[], "HL_USAGE"],
    [["--format", "csv"], "HL_USAGE"],
    [["--all", "--format", "xml"], "HL_USAGE"],
    [["--all", "--since", "yesterday"], "HL_USAGE"],
    [["--all", "--follow"], "HL_USAGE"],
    [["--all", "--out", ""], "HL_USAGE"],
  ])("should refuse %j with exit code 2 (%s)", async (argv, code) => {
    const ran = await run(...argv);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toContain(`(${code})`);
  });

  it("should exit 6 without a ledger, and create none", async () => {
    const missing = join(folder.path, "missing.db");
    const { code } = await runCommand(auditExport, ["--store", `sqlite:${missing}`, "audit", "export", "--all"]);
    expect(code).toBe(6);
    expect(existsSync(missing)).toBe(false);
  });

  it("should say which option is wrong before it looks for the ledger", async () => {
    const argv = ["--store", `sqlite:${join(folder.path, "missing.db")}`, "audit", "export", "--all", "--out", ""];
    expect(await runCommand(auditExport, argv)).toMatchObject({ code: 2 });
  });
});

describe("hookledger audit export --out", () => {
  it("should write the same to a file for its owner alone, and say so on stderr", async () => {
    const out = join(folder.path, "audit.ndjson");
    const printed = await run("--all");
    const written = await run("--all", "--out", out);
    expect(written).toStrictEqual({ code: 0, stdout: "", stderr: `18 records written to ${out}\n` });
    expect(readFileSync(out, "utf8")).toBe(printed.stdout);
    expect(statSync(out).mode & 0o777).toBe(0o600);
  });

  it("should replace what stood there, also behind a link, and leave nothing else behind", async () => {
    const inner = join(folder.path, "exports");
    mkdirSync(inner);
    writeFileSync(join(inner, "old.csv"), "old");
    symlinkSync("old.csv", join(inner, "link.csv"));
    await run("--denials", "--format", "csv", "--out", join(inner, "link.csv"));
    expect(readFileSync(join(inner, "old.csv"), "utf8")).toMatch(/^cursor,.*\r\n$/s);
    expect(readdirSync(inner).sort()).toStrictEqual(["link.csv", "old.csv"]);
  });

  it("should leave what stood there as it was when an export is given up", async () => {
    const out = join(folder.path, "given-up.csv");
    writeFileSync(out, "kept");
    const target = await fileTarget(out);
    await target.write("half");
    await target.discard();
    expect(readFileSync(out, "utf8")).toBe("kept");
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toStrictEqual([]);
  });

  it("should refuse a ledger, a folder, a device or a place that is not there, and keep an old file when it fails", async () => {
    for (const out of [ledger, folder.path, "/dev/null", join(folder.path, "no", "where.csv")]) {
      expect(await run("--all", "--out", out)).toMatchObject({ code: 2 });
    }
    expect(statSync("/dev/null").isCharacterDevice()).toBe(true);
    expect((await run("--all", "--out", join(folder.path, "no", "where.csv"))).stderr).toContain("its folder does not");
    const old = join(folder.path, "kept.csv");
    writeFileSync(old, "kept");
    const broken = join(folder.path, "broken.db");
    writeFileSync(broken, "no ledger");
    const ran = await runCommand(auditExport, [
      "--store",
      `sqlite:${broken}`,
      "audit",
      "export",
      "--all",
      "--out",
      old,
    ]);
    expect(ran.code).toBe(6);
    expect(readFileSync(old, "utf8")).toBe("kept");
    expect(readdirSync(folder.path).filter((name) => name.endsWith(".tmp"))).toStrictEqual([]);
  });
});
