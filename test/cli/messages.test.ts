/** Commands that read, on a ledger that message hooks have written. */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "#src/cli/commands.js";
import { folderWith } from "../support/cli.js";
import { tamper } from "../support/cli-ledger.js";
import { RUNS, writeMessages } from "../support/cli-messages.js";
import { type Ran, runCommand } from "../support/run-command.js";

let ledger: string;

beforeAll(async () => {
  ledger = mkdtempSync(join(tmpdir(), "hookledger-messages-"));
  await writeMessages(ledger);
});
afterAll(() => rmSync(ledger, { recursive: true, force: true }));

function on(folder: string, store: string, name: string, ...args: readonly string[]): Promise<Ran> {
  const command = COMMANDS.find((known) => known.name === name);
  if (command === undefined) throw new Error(`no command ${name}`);
  const url = store.replace(":", `:${folder}/`);
  return runCommand(command, ["--store", url, ...name.split(" "), ...args]);
}

function here(name: string, ...args: readonly string[]): Promise<Ran> {
  return on(ledger, "sqlite:.hookledger/ledger.db", name, ...args);
}

async function rows(name: string, ...args: readonly string[]) {
  const { code, stdout, stderr } = await here(name, "--json", ...args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}

/** A copy that a test may spoil. */
function copied(): string {
  const cwd = folderWith({});
  cpSync(join(ledger, ".hookledger"), join(cwd, ".hookledger"), { recursive: true });
  return cwd;
}

describe("list", () => {
  it("should list runs of message hooks by their hook", async () => {
    expect((await rows("list", "--point", "message_sending")).map(({ dispatchId }) => dispatchId)).toEqual([
      RUNS.cancelled,
      RUNS.rewritten,
    ]);
    expect(await rows("list", "--point", "message_sending", "--decision", "deny")).toEqual([
      {
        dispatchId: RUNS.cancelled,
        point: "message_sending",
        status: "decided",
        decision: "deny",
        decidedBy: "guard",
        session: "s-2",
        turn: "run-1",
        startedAt: "2026-02-28T09:32:00.000Z",
        events: 4,
      },
    ]);
    expect(await here("list", "--json", "--point", "pre-tool-call")).toMatchObject({ code: 0, stdout: "" });
  });

  it("should say in a word what each came to", async () => {
    const { stdout } = await here("list");
    const words = stdout.match(/\b(?:claimed|passed|cancelled|notified)\b/g);
    expect(words).toEqual(["notified", "passed", "cancelled", "passed", "claimed"]);
  });

  it("should know what was meant by a hook that there is not", async () => {
    const { code, stderr } = await here("list", "--point", "mesage_sending");
    expect(code).toBe(2);
    expect(stderr).toContain("--point takes session-start, ");
    expect(stderr).toContain("Did you mean message_sending?");
    expect((await here("list", "--point", "pre-toolcall")).stderr).toContain("Did you mean pre-tool-call?");
    expect((await here("list", "--point", "zzz")).stderr).not.toContain("Did you mean");
  });
});

describe("replay", () => {
  it("should print what each run goes on with, as JSON", async () => {
    const replayed = await rows("replay", "--all");
    const told = new Map(replayed.map(({ dispatchId, payload }) => [dispatchId, payload]));
    expect(told.get(RUNS.claimed)).toEqual({ handled: true, text: "Hello yourself." });
    expect(told.get(RUNS.rewritten)).toBe("[gone] and [redacted]");
    expect(told.get(RUNS.shortened)).toMatchObject({ event: { kind: "final", payload: { text: "one" } } });
    expect(told.get(RUNS.notified)).toMatchObject({
      event: { content: "one", success: true },
      context: { channelId: "chat" },
    });
  });

  it("should tell why a delivery was cancelled, also where the reason is a payload", async () => {
    const [cancelled] = await rows("replay", RUNS.cancelled);
    expect(cancelled).toMatchObject({
      status: "decided",
      decision: "deny",
      decidedBy: "guard",
      allowed: false,
      reason: "it names a secret",
      payload: { event: { content: "a secret" } },
    });
  });

  it("should tell people in the words of the hook", async () => {
    const { stdout } = await here("replay", RUNS.rewritten);
    expect(stdout).toContain(`passed  message_sending  ${RUNS.rewritten}`);
    expect(stdout).toContain('│ "[gone] and [redacted]"');
    expect((await here("replay", RUNS.cancelled)).stdout).toMatch(
      /^cancelled .*\n {2}decided by {2}guard\n {2}reason {6}it names/,
    );
  });

  it("should replay to a revision, and go on with the input there", async () => {
    const [begun] = await rows("replay", RUNS.cancelled, "--at", "1");
    expect(begun).toMatchObject({ status: "open", reason: null, payload: { event: { content: "a secret" } } });
  });
});

describe("show", () => {
  it("should tell the whole story for programs", async () => {
    const [story] = await rows("show", RUNS.cancelled);
    expect(story).toMatchObject({
      point: "message_sending",
      composition: "rewrite",
      end: "cancelled",
      blocksOnFailure: false,
      reason: "it names a secret",
      verified: true,
      config: { status: "found" },
    });
    expect(story.chain[0]).toMatchObject({
      subscriber: "guard",
      mode: "handler",
      producer: { name: "guard", version: "1.2.3", source: "plugin" },
      said: {
        kind: "cancelled",
        reason: "it names a secret",
        defines: [
          { field: "cancelReason", version: 2 },
          { field: "metadata", version: 3 },
        ],
      },
    });
    expect(story.payloads.map(({ role, payload }: { role: string; payload: unknown }) => [role, payload])).toEqual([
      ["input", { context: expect.anything(), event: { content: "a secret", to: "ada" } }],
      ["cancelReason", "it names a secret"],
      ["metadata", { rule: "secrets" }],
    ]);
  });

  it("should show redacted copies, and say so", async () => {
    const [story] = await rows("show", RUNS.rewritten);
    expect(story).toMatchObject({ redacted: true, end: "passed" });
    expect(JSON.stringify(story)).not.toContain("sk-1234");
    expect(story.chain[0].changed.changes).toEqual([
      { kind: "changed", path: "content", before: "hunter2 and [redacted]", after: "[gone] and [redacted]" },
    ]);
  });
});

describe("verify", () => {
  it("should prove them", async () => {
    expect(await rows("verify", "--all")).toEqual([{ checked: 5, ok: 5, open: 0, erased: 0, diverged: [] }]);
  });

  it("should find what was altered", async () => {
    const cwd = copied();
    tamper(
      cwd,
      "UPDATE events SET data = replace(data, 'deny', 'allow') WHERE stream LIKE '%CCCC' AND type = 'decided'",
    );
    const { code, stdout } = await on(cwd, "sqlite:.hookledger/ledger.db", "verify", "--json", "--all");
    expect(code).toBe(5);
    expect(JSON.parse(stdout).diverged).toMatchObject([{ dispatchId: RUNS.cancelled, revision: 3, kind: "decision" }]);
  });

  it("should find payloads that were altered", async () => {
    const cwd = copied();
    const sql = `UPDATE events SET metadata = replace(metadata, '"${base64("it names a secret")}"', '"${base64("it names nothing!")}"')`;
    tamper(cwd, sql);
    const { stdout } = await on(cwd, "sqlite:.hookledger/ledger.db", "verify", "--json", RUNS.cancelled);
    expect(JSON.parse(stdout).diverged).toMatchObject([{ revision: 2, kind: "payload" }]);
  });

  function base64(text: string): string {
    return Buffer.from(JSON.stringify(text)).toString("base64");
  }
});

describe("audit export", () => {
  it("should tell failures of handlers, and deliveries that were kept back", async () => {
    expect(await rows("audit export", "--observe-errors")).toMatchObject([
      { point: "message_sent", subscriber: "guard", mode: "handler", message: "the log is full" },
    ]);
    expect(await rows("audit export", "--denials")).toMatchObject([
      { point: "message_sending", subscriber: "guard", decision: "deny", message: "it names a secret" },
    ]);
  });
});

describe("export and import", () => {
  it("should move runs with all that they refer to, and prove them by themselves", async () => {
    const cwd = copied();
    const bundle = join(cwd, "e.hlb");
    expect(await on(cwd, "sqlite:.hookledger/ledger.db", "export", bundle)).toMatchObject({ code: 0 });
    expect(await on(cwd, "sqlite:other.db", "verify", "--offline", bundle)).toMatchObject({ code: 0 });
    expect(await on(cwd, "sqlite:other.db", "import", bundle)).toMatchObject({ code: 0 });
    const { code, stdout } = await on(cwd, "sqlite:other.db", "verify", "--json", "--all");
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, checked: 5, ok: 5 });
    const shown = await on(cwd, `bundle:e.hlb`, "show", "--json", RUNS.claimed);
    expect(JSON.parse(shown.stdout)).toMatchObject({ end: "claimed", verified: true });
  });
});

describe("recover", () => {
  it("should close a run that a crash left open, and let nothing pass", async () => {
    const cwd = copied();
    tamper(cwd, "DELETE FROM events WHERE stream LIKE '%BBBB' AND type = 'decided'");
    tamper(cwd, "UPDATE heads SET revision = 2 WHERE stream LIKE '%BBBB'");
    tamper(
      cwd,
      "UPDATE heads SET chain = (SELECT json_extract(metadata, '$.chain') FROM events WHERE stream LIKE '%BBBB' AND revision = 2) WHERE stream LIKE '%BBBB'",
    );
    const { code, stdout } = await on(cwd, "sqlite:.hookledger/ledger.db", "recover", "--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      closed: [{ dispatchId: RUNS.rewritten, status: "aborted", cause: "recovered" }],
      skipped: [],
    });
    expect((await on(cwd, "sqlite:.hookledger/ledger.db", "verify", "--all")).code).toBe(0);
  });
});
