import { createHash } from "node:crypto";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { createKernel } from "#src/index.js";
import { folderWith, installHookledger, run } from "../support/cli.js";

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

function exampleIn(name: string): string {
  const cwd = folderWith({});
  cpSync(join(EXAMPLES, name), cwd, { recursive: true });
  installHookledger(cwd);
  return cwd;
}

describe("the examples", () => {
  it.each([
    ["approval", "plan.json", 8],
    ["approval", "drop.json", 3],
    ["redaction", "messages.json", 0],
    ["observers", "result.json", 0],
    ["redactor", "messages.json", 0],
    ["audit-sink", "result.json", 0],
    ["audit-sink", "end.json", 0],
  ])("should do what %s says of %s", async (name, payload, expected) => {
    const cwd = exampleIn(name);
    const { code, stdout } = await run(["dispatch", "--payload", payload], { cwd });
    expect([code, stdout]).toEqual([expected, expect.stringContaining("hookledger show")]);
    expect((await run(["verify", "--all"], { cwd })).code).toBe(0);
  });

  it.each([
    ["redactor", "redactor"],
    ["audit-sink", "audit"],
  ])("should conform in %s, as it is configured", async (name, provider) => {
    const cwd = exampleIn(name);
    const { code, stdout } = await run(["conformance", "--provider", provider, "--runs", "5"], { cwd });
    expect([code, stdout]).toEqual([0, expect.stringContaining("conforms")]);
  });

  it("should keep the key of the redaction example out of the ledger", async () => {
    const cwd = exampleIn("redaction");
    const live = await run(["--json", "dispatch", "--payload", "messages.json"], { cwd });
    expect(live.stdout).toContain("[email]. The key is sk-0123456789");
    const replayed = await run(["--json", "replay", JSON.parse(live.stdout).dispatchId], { cwd });
    expect(replayed.stdout).toContain("[email]. The key is [redacted]");
  });
});

describe("the redactor", () => {
  it("should take out what its patterns match, wherever text goes to the model, and nothing else", async () => {
    const cwd = exampleIn("redactor");
    const { stdout, stderr } = await run(["--json", "dispatch", "--payload", "messages.json"], { cwd });
    const sent = readFileSync(join(cwd, "messages.json"), "utf8");
    const expected = sent.replaceAll("ada@example.org", "[e-mail]").replaceAll(/sk-\w+/g, "[api key]");
    expect(JSON.parse(stdout).payload).toEqual(JSON.parse(expected));
    expect(stderr).toContain("took out api key: 2, e-mail: 3");
  });

  it.each([
    ["are missing", "patterns = {", "paterns = {"],
    ["are none", '"\\\\bsk-[A-Za-z0-9]{20,}"', '"("'],
  ])("should let nothing through where its patterns %s", async (_, written, broken) => {
    const cwd = exampleIn("redactor");
    changeFile(join(cwd, "agent.hcl"), written, broken);
    const { code, stdout } = await run(["--json", "dispatch", "--payload", "messages.json"], { cwd });
    expect(code).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({ allowed: false, payload: null, abortCause: "hook_error" });
  });
});

describe("the audit sink", () => {
  it("should write down who and where, and digests of what", async () => {
    const cwd = exampleIn("audit-sink");
    for (const payload of ["result.json", "end.json"])
      await run(["dispatch", "--payload", payload, "--session", "s-1", "--turn", "t-1"], { cwd });
    const text = readFileSync(join(cwd, "audit.ndjson"), "utf8");
    expect(text).not.toMatch(/salaries|Ada/);
    const where = { at: expect.stringMatching(/^\d{4}-.*Z$/), session: "s-1", turn: "t-1" };
    expect(linesOf(text)).toEqual([
      {
        ...where,
        point: "post-tool-call",
        call: "call-1",
        tool: "read_file",
        arguments: digest('{"path":"salaries.csv"}'),
        result: digest('{"text":"Ada, 7"}'),
      },
      { ...where, point: "session-end", sessionId: "s-1", status: "SESSION_STATUS_COMPLETED" },
    ]);
  });

  it("should have every line in its file once the kernel is closed", async () => {
    const cwd = exampleIn("audit-sink");
    const trail = join(cwd, "audit.ndjson");
    changeFile(join(cwd, "agent.hcl"), '"audit.ndjson"', JSON.stringify(trail));
    const kernel = await createKernel({ config: join(cwd, "agent.hcl"), store: "memory:" });
    onTestFinished(() => kernel.close());
    const calls = Array.from({ length: 200 }, (_, place) => `call-${place}`);
    await Promise.all(calls.map((id) => kernel.dispatch({ postToolCall: { call: { id }, result: {} } })));
    await kernel.close();
    const written = linesOf(readFileSync(trail, "utf8")).map(({ call }) => String(call));
    expect(written.toSorted()).toEqual(calls.toSorted());
  });
});

function linesOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function digest(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

function changeFile(path: string, written: string, instead: string): void {
  const text = readFileSync(path, "utf8");
  if (!text.includes(written)) throw new Error(`${path} has no ${written}`);
  writeFileSync(
    path,
    text.replace(written, () => instead),
  );
}
