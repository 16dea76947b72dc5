import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "#src/cli/commands.js";
import { folderWith, Running } from "../support/cli.js";
import { IDS, tamper, writeLedger } from "../support/cli-ledger.js";
import { type Ran, runCommand } from "../support/run-command.js";
import { alterBundle } from "../support/transfers.js";

let ledger: string;

beforeAll(async () => {
  ledger = mkdtempSync(join(tmpdir(), "hookledger-cli-"));
  await writeLedger(ledger);
});
afterAll(() => rmSync(ledger, { recursive: true, force: true }));

/** A copy that a test may spoil, with a bundle of it. */
async function exported(): Promise<string> {
  const cwd = copied();
  expect(await run(cwd, "export", "e.hlb")).toMatchObject({ code: 0, stderr: "" });
  return cwd;
}

function copied(): string {
  const cwd = folderWith({});
  cpSync(join(ledger, ".hookledger"), join(cwd, ".hookledger"), { recursive: true });
  return cwd;
}

/** In this process, as if it were in that folder. */
function run(cwd: string, ...args: readonly string[]): Promise<Ran> {
  const command = COMMANDS.find(({ name }) => ` ${args.join(" ")}`.includes(` ${name}`));
  if (command === undefined) throw new Error(`no command in ${args.join(" ")}`);
  const store = args.includes("--store") ? [] : ["--store", "sqlite:.hookledger/ledger.db"];
  return runCommand(
    command,
    [...store, ...args].map((arg) => placed(arg, cwd)),
  );
}

function placed(arg: string, cwd: string): string {
  const [, scheme = "", path = ""] = /^((?:sqlite|bundle):)?(.+\.(?:hlb|db|txt))$/.exec(arg) ?? [];
  return path === "" ? arg : `${scheme}${join(cwd, path)}`;
}

async function json(cwd: string, ...args: readonly string[]) {
  const { code, stdout, stderr } = await run(cwd, "--json", ...args);
  return { code, stderr, ...JSON.parse(stdout) };
}

describe("export, verify --offline and import", () => {
  it("should move a ledger, and say so in one document each", async () => {
    const cwd = await exported();
    const counts = { refused: [], missing: 0, damaged: 0 };
    const again = await json(cwd, "export", "e.hlb");
    expect(again).toEqual({
      code: 0,
      stderr: "",
      file: join(cwd, "e.hlb"),
      digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      added: 0,
      grown: 0,
      kept: 5,
      streams: 5,
      events: expect.any(Number),
      payloads: expect.any(Number),
      ...counts,
    });
    rmSync(join(cwd, ".hookledger"), { recursive: true });
    const bundle = { digest: again.digest, recorded: again.digest, ok: true, detail: null };
    for (const jobs of ["1", "2"]) {
      expect(await json(cwd, "verify", "--offline", "e.hlb", "--jobs", jobs)).toEqual({
        code: 0,
        stderr: "",
        checked: 5,
        ok: 5,
        open: 0,
        erased: 0,
        diverged: [],
        bundle,
      });
    }
    const store = ["--store", "sqlite:new/other.db"];
    expect(await json(cwd, ...store, "import", "e.hlb")).toEqual({
      ...{ code: 0, stderr: "", bundle, added: 5, grown: 0, kept: 0 },
      ...counts,
    });
    expect(await json(cwd, ...store, "import", "e.hlb")).toMatchObject({ code: 0, added: 0, kept: 5 });
    expect(await json(cwd, ...store, "verify", "--all")).toMatchObject({ code: 0, checked: 5 });
  });

  it("should read like the rest for people, and keep foreign text where it belongs", async () => {
    const cwd = await exported();
    const { stdout } = await run(cwd, "export", "e.hlb");
    expect(stdout).toMatch(
      /^exported {2}0 added, 0 grown, 5 there already; .*e\.hlb has 5\ndigest {4}sha256:[0-9a-f]{64}\n$/,
    );
    expect((await run(cwd, "verify", "--offline", "e.hlb")).stdout).toMatch(
      /^record = replay {2}5 checked\ndigest {2}sha256:.+\nsays {4}exported 20.+Z from sqlite:.+ledger\.db: the whole ledger\n$/,
    );
    alterBundle(join(cwd, "e.hlb"), (db) =>
      db.exec("UPDATE description SET text = json_set(text, '$.source', 'here' || char(10, 27) || '[31m')"),
    );
    expect((await run(cwd, "verify", "--offline", "e.hlb")).stdout).toContain(
      "from here\\u{a}\\u{1b}[31m: the whole ledger\n",
    );
    const { stdout: imported } = await run(cwd, "--store", "sqlite:o.db", "import", "e.hlb");
    expect(imported).toBe("imported  5 added, 0 grown, 0 there already\n");
  });

  it("should let every command that reads read a bundle", async () => {
    const cwd = await exported();
    const store = ["--store", "bundle:e.hlb"];
    for (const args of [
      ["list"],
      ["show", IDS.denied],
      ["replay", "--all"],
      ["verify", "--all"],
      ["audit", "export", "--all"],
    ]) {
      const [there, here] = [await run(cwd, ...store, ...args), await run(cwd, ...args)];
      expect(there.code).toBe(0);
      if (args[0] !== "audit" && args[0] !== "show") expect(there).toEqual(here);
    }
    expect(await run(cwd, ...store, "recover")).toMatchObject({ code: 6 });
    expect((await run(cwd, ...store, "import", "e.hlb")).stderr).toContain("HL_STORE_READONLY");
  });

  it.each([
    [["--session", "s-1"], 2],
    [["--session", ""], 2],
    [["--since", "2026-02-28T11:30:00Z"], 3],
    [["--since", "2026-02-28T10:00:00Z", "--until", "2026-02-28T11:30:00Z"], 1],
    [[IDS.denied, "01D", IDS.denied], 2],
  ])("should export what %j selects", async (args, streams) => {
    const cwd = copied();
    const out = "part.hlb";
    expect(await json(cwd, "export", out, ...args)).toMatchObject({ code: 0, streams, added: streams });
    expect(await json(cwd, "verify", "--offline", out)).toMatchObject({ code: 0, checked: streams });
  });

  it("should verify a part of a bundle, and the digest of the whole", async () => {
    const cwd = await exported();
    const offline = ["verify", "--offline", "e.hlb"];
    expect(await json(cwd, ...offline, IDS.denied)).toMatchObject({ code: 0, checked: 1, bundle: { ok: true } });
    expect(await json(cwd, ...offline, "--session", "s-1")).toMatchObject({ code: 0, checked: 2 });
    expect(await json(cwd, ...offline, "--session", "nobody")).toMatchObject({ code: 7 });
    expect(await json(cwd, ...offline, "--all", "--session", "s-1")).toMatchObject({ code: 2 });
  });

  it("should go on with a bundle that somebody else writes once they are done", async () => {
    const cwd = await exported();
    const holder = new Database(join(cwd, "e.hlb"));
    holder.exec("BEGIN EXCLUSIVE");
    const waiting = new Running(["--json", "export", "e.hlb"], { cwd });
    setTimeout(() => holder.close(), 400);
    expect(await waiting.ended).toMatchObject({ code: 0 });
  });
});

describe("a bundle that was tampered with", () => {
  it("should be named by verify --offline and refused by import, and the rest imported: exit 5", async () => {
    const cwd = await exported();
    alterBundle(join(cwd, "e.hlb"), (db) =>
      db
        .prepare(
          "UPDATE streams SET events = replace(events, 'rm is never run', 'rm is ever run!') WHERE stream LIKE ?",
        )
        .run(`%${IDS.denied}`),
    );
    const verified = await json(cwd, "verify", "--offline", "e.hlb");
    expect(verified).toMatchObject({
      code: 5,
      checked: 5,
      ok: 4,
      diverged: [{ dispatchId: IDS.denied, revision: 2, kind: "chain" }],
      bundle: { ok: true },
    });
    const store = ["--store", "sqlite:o.db"];
    expect(await json(cwd, ...store, "import", "e.hlb")).toMatchObject({
      code: 5,
      added: 4,
      refused: [{ dispatchId: IDS.denied, code: "HL_BUNDLE", message: expect.stringContaining("revision 2") }],
    });
    const people = await run(cwd, ...store, "import", "e.hlb");
    expect(people).toMatchObject({ code: 5, stdout: expect.stringContaining(`${IDS.denied}  not copied`) });
    expect(await json(cwd, ...store, "verify", "--all")).toMatchObject({ code: 0, checked: 4 });
  });

  it("should be told by its digest where a dispatch was taken away", async () => {
    const cwd = await exported();
    alterBundle(join(cwd, "e.hlb"), (db) =>
      db.prepare("DELETE FROM streams WHERE stream LIKE ?").run(`%${IDS.denied}`),
    );
    expect(await json(cwd, "verify", "--offline", "e.hlb")).toMatchObject({
      code: 5,
      diverged: [],
      bundle: { ok: false },
    });
    const { code, stdout } = await run(cwd, "verify", "--offline", "e.hlb");
    expect({ code, stdout }).toMatchObject({
      code: 5,
      stdout: expect.stringContaining("not the bundle that it says it is"),
    });
    expect(await json(cwd, "--store", "sqlite:o.db", "import", "e.hlb")).toMatchObject({
      code: 5,
      added: 4,
      refused: [],
    });
  });

  it("should be told from one that is only unfinished", async () => {
    const cwd = await exported();
    alterBundle(join(cwd, "e.hlb"), (db) =>
      db.exec("UPDATE description SET text = json_set(text, '$.state', 'new', '$.digest', NULL)"),
    );
    const { code, stdout } = await run(cwd, "verify", "--offline", "e.hlb");
    expect({ code, stdout }).toEqual({ code: 5, stdout: expect.stringMatching(/^unfinished bundle {2}5 checked\n/) });
  });

  it("should be told where a large payload was altered", async () => {
    const cwd = await exported();
    alterBundle(join(cwd, "e.hlb"), (db) => db.exec("UPDATE payloads SET root = zeroblob(9)"));
    const { code, diverged } = await json(cwd, "verify", "--offline", "e.hlb");
    expect({ code, kind: diverged[0].kind }).toEqual({ code: 5, kind: "payload" });
    const imported = await json(cwd, "--store", "sqlite:o.db", "import", "e.hlb");
    expect(imported).toMatchObject({ code: 5, added: 5, damaged: 1 });
    const people = await run(cwd, "--store", "sqlite:p.db", "import", "e.hlb");
    expect(people).toMatchObject({ code: 5, stdout: expect.stringMatching(/^imported in part {2}5 added/) });
  });
});

describe("a ledger that was tampered with", () => {
  it("should be exported as it stands, and verify no better", async () => {
    const cwd = copied();
    tamper(cwd, "UPDATE events SET data = replace(data, 'rm is never run', 'rm is ever run!') WHERE type = 'outcome'");
    expect(await json(cwd, "export", "e.hlb")).toMatchObject({ code: 0, added: 5 });
    const [inLedger, inBundle] = [await json(cwd, "verify", "--all"), await json(cwd, "verify", "--offline", "e.hlb")];
    expect(inBundle.diverged).toEqual(inLedger.diverged);
  });

  it("should be exported in part where no bundle can hold it: exit 5", async () => {
    const cwd = copied();
    tamper(cwd, "DELETE FROM events WHERE stream LIKE ? AND revision = 1", `%${IDS.denied}`);
    expect(await json(cwd, "export", "e.hlb")).toMatchObject({
      code: 5,
      added: 4,
      refused: [{ dispatchId: IDS.denied, code: "HL_BUNDLE", message: "revision 1 is missing" }],
    });
    expect((await run(cwd, "export", "e.hlb")).stdout).toMatch(/^exported in part/);
  });
});

describe("a dispatch that is another one in the ledger", () => {
  it("should be refused: exit 5, and nothing of it changed", async () => {
    const cwd = await exported();
    tamper(cwd, "UPDATE events SET id = 'other' WHERE stream LIKE ? AND revision = 0", `%${IDS.denied}`);
    const before = await run(cwd, "replay", "--all");
    expect(await json(cwd, "import", "e.hlb")).toMatchObject({
      code: 5,
      added: 0,
      kept: 4,
      refused: [{ dispatchId: IDS.denied, code: "HL_IMPORT_CONFLICT" }],
    });
    expect(await run(cwd, "replay", "--all")).toEqual(before);
  });
});

describe("what cannot be done", () => {
  it.each([
    [["export"], 2],
    [["import"], 2],
    [["export", ""], 2],
    [["export", "-"], 2],
    [["import", "-"], 2],
    [["export", "x.hlb", "--since", "yesterday"], 2],
    [["export", "x.hlb", IDS.denied, "--session", "s-1"], 2],
    [["export", "no/where.hlb"], 2],
    [["export", "e.hlb", "--session", "s-1"], 2],
    [["export", "x.hlb", "--session", "nobody"], 7],
    [["export", "x.hlb", "01JUNK"], 7],
    [["export", "x.hlb", "01B"], 2],
    [["--store", "bundle:e.hlb", "export", "e.hlb"], 2],
    [["export", "text.txt"], 6],
    [["export", ".hookledger/ledger.db"], 6],
    [["import", "text.txt"], 6],
    [["import", "nowhere.hlb"], 6],
    [["verify", "--offline", ""], 2],
    [["verify", "--offline", "text.txt"], 6],
    [["verify", "--offline", "nowhere.hlb"], 6],
    [["--store", "sqlite:nowhere.db", "export", "x.hlb"], 6],
  ])("should be said, and leave no trace: %j exits %d", async (args, code) => {
    const cwd = await exported();
    writeFileSync(join(cwd, "text.txt"), "evidence");
    const before = readFileSync(join(cwd, ".hookledger/ledger.db"));
    const ran = await run(cwd, ...args);
    expect(ran).toMatchObject({ code, stdout: "", stderr: expect.stringMatching(/^hookledger: .+ \(HL_[A-Z_]+\)\n/) });
    expect(existsSync(join(cwd, "x.hlb"))).toBe(false);
    expect(readFileSync(join(cwd, "text.txt"), "utf8")).toBe("evidence");
    expect(readFileSync(join(cwd, ".hookledger/ledger.db")).equals(before)).toBe(true);
  });
});
