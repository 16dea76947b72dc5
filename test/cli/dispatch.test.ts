import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createStyle } from "#src/cli/style.js";
import { verdictLines } from "#src/cli/verdict.js";
import { payloadFromJson } from "#src/payload/payload.js";
import { run } from "../support/cli.js";
import { type Hook, item, messagesJson, planJson, projectWith } from "../support/cli-project.js";

const ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

function veto(handler: string, extra: Partial<Hook> = {}): Hook {
  return { point: "plan-ready", mode: "veto", handler, ...extra };
}

function dispatch(cwd: string, ...args: readonly string[]) {
  return run(["--json", "dispatch", "--payload", "plan.json", ...args], { cwd });
}

describe("dispatch", () => {
  it("should print an allowed result as one document, and exit 0", async () => {
    const cwd = projectWith({ hooks: [veto('return "allow"')] });
    const { code, stdout, stderr } = await dispatch(cwd, "--session", "s-1", "--turn", "t-1");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const document: unknown = JSON.parse(stdout);
    expect(document).toEqual({
      dispatchId: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{26}$/),
      point: "plan-ready",
      status: "decided",
      decision: "allow",
      decidedBy: "kernel:default",
      allowed: true,
      abortCause: null,
      reason: null,
      payload: {
        planReady: {
          plan: {
            turnId: "t1",
            items: [
              { ...item("one", "TOOL_KIND_DATA_SOURCE"), decision: "PLAN_DECISION_ALLOW", decidedBy: "policy:default" },
            ],
          },
        },
      },
      hookErrors: [],
      planDecisions: [
        { itemId: "one", decision: "allow", decidedBy: "policy:default", policyDecision: "allow", reason: null },
      ],
      session: "s-1",
      turn: "t-1",
      events: 6,
      durationMs: expect.any(Number),
    });
    expect(Object.keys(document as object)).toEqual([
      ..."dispatchId point status decision decidedBy allowed abortCause reason payload hookErrors".split(" "),
      ..."planDecisions session turn events durationMs".split(" "),
    ]);
  });

  it("should exit 3 on a deny, and say who and why", async () => {
    const cwd = projectWith({ hooks: [veto('return { decision: "deny", reason: "too risky" }')] });
    const { code, stdout } = await dispatch(cwd);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      decision: "deny",
      decidedBy: "s0",
      reason: "too risky",
      allowed: false,
    });
  });

  it("should exit 8 where items are denied or to be asked about", async () => {
    const cwd = projectWith({
      files: { "plan.json": planJson(item("read", "TOOL_KIND_DATA_SOURCE"), item("write", "TOOL_KIND_RESOURCE")) },
    });
    const { code, stdout } = await dispatch(cwd);
    expect(code).toBe(8);
    expect(JSON.parse(stdout)).toMatchObject({
      decision: "allow",
      allowed: false,
      planDecisions: [{ decision: "allow" }, { decision: "ask" }],
    });
  });

  it("should exit 4 where a transform fails, without a payload", async () => {
    const hooks: Hook[] = [{ point: "pre-model-call", mode: "transform", handler: 'throw new Error("broken")' }];
    const { code, stdout } = await dispatch(projectWith({ hooks }), "--payload", "messages.json");
    expect(code).toBe(4);
    expect(JSON.parse(stdout)).toMatchObject({
      status: "aborted",
      abortCause: "hook_error",
      decision: null,
      decidedBy: null,
      payload: null,
      hookErrors: [{ subscriber: "s0", mode: "transform", category: "TRANSFORM_FAILED", message: "broken" }],
    });
  });

  it("should tell people once what failed where that is the reason", async () => {
    const hooks: Hook[] = [{ point: "pre-model-call", mode: "transform", handler: 'throw new Error("broken")' }];
    const { stdout } = await run(["dispatch", "--payload", "messages.json"], { cwd: projectWith({ hooks }) });
    expect(stdout).toMatch(/^ {2}reason +TRANSFORM_FAILED: broken$/m);
    expect(stdout).toMatch(/^ {2}hook errors +s0 \(transform\) {2}TRANSFORM_FAILED$/m);
  });

  it("should deny where the gate runs out of time", async () => {
    const cwd = projectWith({ hooks: [veto("return new Promise(() => {})", { timeoutMs: 50 })] });
    const { code, stdout } = await dispatch(cwd);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ hookErrors: [{ category: "TIMEOUT" }] });
  });

  it("should read the payload from standard input, and in its binary form", async () => {
    const cwd = projectWith();
    const text = messagesJson("hello");
    const json = await run(["--json", "dispatch", "--payload", "-"], { cwd, stdin: text });
    const { bytes } = payloadFromJson(text);
    const binary = await run(["--json", "dispatch", "--payload", "-", "--binary"], { cwd, stdin: bytes });
    expect([json.code, binary.code]).toEqual([0, 0]);
    expect(JSON.parse(binary.stdout).payload).toEqual(JSON.parse(text));
    expect(JSON.parse(json.stdout).payload).toEqual(JSON.parse(text));
  });

  it("should print the rewritten payload", async () => {
    const hooks: Hook[] = [
      { point: "pre-model-call", mode: "transform", handler: "return { ...payload, messages: [] }" },
    ];
    const { code, stdout } = await dispatch(projectWith({ hooks }), "--payload", "messages.json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout).payload).toEqual({ preModelCall: { model: { provider: "p", id: "m" } } });
  });

  it("should tell people the verdict, who decided, and where to look next", async () => {
    const cwd = projectWith({ hooks: [veto('return { decision: "deny", reason: "no\\n\\u001b[31mred" }')] });
    const { code, stdout } = await run(["dispatch", "--payload", "plan.json", "--session", "s"], { cwd });
    expect(code).toBe(3);
    const lines = stdout.split("\n");
    expect(lines[0]).toMatch(/^denied {2}plan-ready {2}[0-9A-Z]{26} {2}1 deny$/);
    expect(stdout).toContain("decided by  s0");
    expect(stdout).toContain("no\\u{a}\\u{1b}[31mred");
    expect(stdout).toContain("(policy: allow)");
    expect(stdout).toMatch(/hookledger show [0-9A-Z]{26}\n$/);
  });

  it.each([
    ["not named", [], "HL_USAGE", ""],
    ["a missing file", ["--payload", "missing.json"], "HL_PAYLOAD_UNREADABLE", ""],
    ["no payload", ["--payload", "-"], "HL_PAYLOAD", '{"nobody":{}}'],
    ["two items of one id", ["--payload", "-"], "HL_PAYLOAD", planJson({ id: "a" }, { id: "a" })],
  ])("should exit 2 when the payload is %s", async (_, args, expected, stdin) => {
    const { code, stdout, stderr } = await run(["--json", "dispatch", ...args], { cwd: projectWith(), stdin });
    const { error } = JSON.parse(stdout);
    expect(Object.keys(error)).toEqual(["code", "message", "file", "line", "col", "hint"]);
    expect([code, error.code]).toEqual([2, expected]);
    expect(stderr.split("\n")[0]).toBe(`hookledger: ${error.message} (${expected})`);
    expect(stderr).not.toContain("    at ");
  });

  it("should neither call recorded nor point to what is not", async () => {
    const cwd = projectWith({ hooks: [veto('return "allow"')] });
    const { code, stdout } = await run(["--store", "memory:", "dispatch", "--payload", "plan.json"], { cwd });
    expect(code).toBe(0);
    expect(stdout).not.toContain("hookledger show");
    const document = JSON.parse((await dispatch(cwd)).stdout);
    const [recorded, lost] = [true, false].map((known) =>
      verdictLines(document, createStyle(false), { recorded: known }).join("\n"),
    );
    expect(recorded).toMatch(/^ {2}recorded {4}6 events, /m);
    expect(lost).not.toContain("recorded");
    expect(lost).toMatch(/^ {2}took /m);
  });

  it("should give the recorded result again under the same id, and ask nobody", async () => {
    const cwd = projectWith({
      hooks: [veto('(await import("node:fs")).appendFileSync("asked", "x"); return "deny"')],
    });
    const first = await dispatch(cwd, "--id", ID);
    const again = await dispatch(cwd, "--id", ID.toLowerCase());
    expect([first.code, again.code]).toEqual([3, 3]);
    const { durationMs: _, ...told } = JSON.parse(first.stdout);
    expect(JSON.parse(again.stdout)).toMatchObject(told);
    expect(readFileSync(join(cwd, "asked"), "utf8")).toBe("x");
  });

  it("should refuse another payload under the same id", async () => {
    const cwd = projectWith();
    await dispatch(cwd, "--id", ID);
    const { code, stdout, stderr } = await dispatch(cwd, "--id", ID, "--payload", "messages.json");
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error.code).toBe("HL_DISPATCH_CONFLICT");
    expect(stderr).toMatch(/^hookledger: .* \(HL_DISPATCH_CONFLICT\)\n/);
  });

  it("should exit 2 on what is no id, and create no ledger for it", async () => {
    const cwd = projectWith();
    const id = await dispatch(cwd, "--id", "nonsense");
    const session = await dispatch(cwd, "--session", "x".repeat(257));
    expect(JSON.parse(id.stdout).error.code).toBe("HL_DISPATCH_ID");
    expect(JSON.parse(session.stdout).error.code).toBe("HL_LIMIT_ID");
    expect([id.code, session.code]).toEqual([2, 2]);
    expect(existsSync(join(cwd, ".hookledger"))).toBe(false);
  });

  it("should redact diagnostics and the record, and show the caller the true payload", async () => {
    const secret = "sk-0123456789abcdefghijklmn";
    const hooks: Hook[] = [
      {
        point: "pre-model-call",
        mode: "transform",
        handler: `ctx.log.info("saw ${secret}"); console.log("printed ${secret}"); return payload`,
      },
    ];
    const settings = 'redact = ["sk-[A-Za-z0-9]{20,}"]';
    const cwd = projectWith({ hooks, settings, files: { "messages.json": messagesJson(secret) } });
    const live = await dispatch(cwd, "--payload", "messages.json");
    expect(live.stdout).toContain(secret);
    expect(live.stderr).toContain("s0 info: saw [redacted]");
    expect(live.stderr).toContain("s0 info: printed [redacted]");
    expect(live.stderr).not.toContain(secret);
    const replayed = await run(["--json", "replay", "--all"], { cwd });
    expect(replayed.stdout).toContain("[redacted]");
    expect(replayed.stdout).not.toContain(secret);
  });

  it("should keep a secret out of the failure of a module that throws it on import", async () => {
    const files = {
      "agent.hcl": `required_providers { m = { source = "module:./m.mjs", sensitive = ["token"] } }
        provider "m" { token = env("TOKEN") }
        hook "plan-ready" {
          provider = "m"
          mode = "veto"
        }`,
      "m.mjs": 'throw new Error("cannot use " + process.env.TOKEN);',
    };
    const cwd = projectWith({ files });
    const env = { TOKEN: "s3cr3t-s3cr3t" };
    const { code, stdout, stderr } = await run(["--json", "--verbose", "dispatch", "--payload", "plan.json"], {
      cwd,
      env,
    });
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({ code: "HL_SUBSCRIBER_LOAD", line: 1 });
    expect(stdout + stderr).toContain("cannot use [redacted]");
    expect(stdout + stderr).not.toContain("s3cr3t");
  });

  it("should exit 2 where a variable is not set", async () => {
    const files = {
      "agent.hcl": `required_providers { m = { source = "module:./m.mjs", sensitive = ["token"] } }
        provider "m" { token = env("HOOKLEDGER_TEST_UNSET") }
        hook "plan-ready" {
          provider = "m"
          mode = "veto"
        }`,
    };
    const { code, stdout } = await dispatch(projectWith({ files }));
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error.code).toBe("HL_ENV_UNSET");
  });
});
