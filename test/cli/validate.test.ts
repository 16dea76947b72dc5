import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { folderWith, run } from "../support/cli.js";
import { type Hook, projectWith } from "../support/cli-project.js";

const HOOKS: readonly Hook[] = [
  { point: "plan-ready", mode: "veto", handler: 'return "allow"', timeoutMs: 700 },
  { point: "pre-model-call", mode: "transform", handler: "return payload", timeoutMs: 300 },
];

describe("validate", () => {
  it("should print every point's chain as JSON", async () => {
    const { code, stdout, stderr } = await run(["--json", "validate"], { cwd: projectWith({ hooks: HOOKS }) });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual({
      ok: true,
      errors: [],
      warnings: [],
      chains: {
        "session-start": [],
        "pre-model-call": [{ subscriber: "s1", provider: "s1", mode: "transform", timeoutMs: 300 }],
        "post-model-response": [],
        "pre-tool-call": [],
        "plan-ready": [
          { subscriber: "kernel:policy", provider: "kernel", mode: "policy", timeoutMs: 5000 },
          { subscriber: "s0", provider: "s0", mode: "veto", timeoutMs: 700 },
        ],
        "post-tool-call": [],
        "post-apply": [],
        "session-end": [],
      },
    });
  });

  it("should tell people each chain with its budget", async () => {
    const cwd = projectWith({ hooks: HOOKS, settings: "chain_budget_ms = 1000" });
    const { code, stdout } = await run(["validate", "."], { cwd });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^valid {2}\., 1 file\n/);
    expect(stdout).toContain("plan-ready  at most 5700 ms, cut to 1000 ms by chain_budget_ms");
    expect(stdout).toContain("pre-model-call  at most 300 ms\n");
    expect(stdout).toContain("session-end  nobody subscribes");
  });

  it("should name every error by file, line and column", async () => {
    const files = {
      "agent.hcl": 'hook "plan-raedy" {\n  provider = "gate"\n  mode = "veto"\n}\n\nsettings {\n  observe = true\n}\n',
    };
    const cwd = folderWith(files);
    const json = await run(["--json", "validate"], { cwd });
    const people = await run(["validate"], { cwd });
    expect([json.code, people.code, people.stdout]).toEqual([2, 2, ""]);
    const { ok, errors, chains } = JSON.parse(json.stdout);
    expect({ ok, chains }).toEqual({ ok: false, chains: {} });
    expect(errors.length).toBeGreaterThanOrEqual(2);
    expect(errors[0]).toMatchObject({ code: "HL_CONFIG", file: "agent.hcl", line: 1, col: 6 });
    expect(errors[0].hint).toContain("plan-ready");
    const [first, ...rest] = people.stderr.split("\n");
    expect(first).toBe(`hookledger: ${errors.length} errors in agent.hcl (HL_CONFIG)`);
    const placed = rest.filter((line) => line !== "" && !line.startsWith(" "));
    expect(placed).toHaveLength(errors.length);
    for (const line of placed) expect(line).toMatch(/^agent\.hcl:\d+:\d+: /);
  });

  it("should refuse a dispatch under a configuration with errors, all of which it tells", async () => {
    const files = { "agent.hcl": 'hook "nowhere" {}\n\nhook "elsewhere" {}\n' };
    const { code, stdout, stderr } = await run(["--json", "dispatch", "--payload", "-"], {
      cwd: folderWith(files),
      stdin: "{}",
    });
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error).toMatchObject({ code: "HL_CONFIG", file: "agent.hcl", line: 1 });
    expect(stderr).toMatch(/^hookledger: \d+ errors in agent\.hcl \(HL_CONFIG\)\nagent\.hcl:1:/);
  });

  it.each([
    ["missing", "missing.hcl"],
    ["an empty folder", "empty"],
  ])("should exit 2 where the configuration is %s", async (_, path) => {
    const cwd = folderWith({});
    mkdirSync(join(cwd, "empty"));
    const { code, stdout } = await run(["--json", "validate", path], { cwd });
    expect(code).toBe(2);
    expect(JSON.parse(stdout).errors).toMatchObject([{ code: "HL_CONFIG_UNREADABLE" }]);
  });

  it("should run nothing without --load", async () => {
    const module = 'import { writeFileSync } from "node:fs"; writeFileSync("ran", "");';
    const cwd = projectWith({ hooks: [{ point: "plan-ready", mode: "veto", handler: "", module }] });
    await run(["validate"], { cwd });
    expect(existsSync(join(cwd, "ran"))).toBe(false);
    expect((await run(["validate", "--load"], { cwd })).code).toBe(0);
    expect(existsSync(join(cwd, "ran"))).toBe(true);
  });

  it("should list who was loaded, a plugin with the digest of its file", async () => {
    const cwd = projectWith({ hooks: HOOKS.slice(0, 1) });
    const peer = fileURLToPath(new URL("../support/plugin-peer.mjs", import.meta.url));
    writeFileSync(join(cwd, "gate"), `#!/bin/sh\nexec ${peer} '{"kind":"grpc"}'\n`, { mode: 0o755 });
    writeFileSync(
      join(cwd, "gate.hcl"),
      'required_providers {\n  gate = { source = "./gate" }\n}\nhook "plan-ready" {\n  provider = "gate"\n  mode = "veto"\n}\n',
    );
    const { code, stdout } = await run(["validate", "--load", "gate.hcl"], { cwd });
    const digest = createHash("sha256")
      .update(readFileSync(join(cwd, "gate")))
      .digest("hex");
    expect([code, stdout]).toEqual([0, expect.stringContaining(`  gate    ./gate  file ${digest.slice(0, 12)}…`)]);
    const { loaded } = JSON.parse((await run(["--json", "validate", "--load", "gate.hcl"], { cwd })).stdout);
    expect(loaded).toEqual([{ name: "gate", source: "./gate", digest: `sha256:${digest}` }]);
  });

  it.each([
    ["throws", 'throw new Error("no \\u001b[31mway")'],
    ["exits", "process.exit(0)"],
    ["has no default export", "export const a = 1"],
    ["does not parse", "export default {"],
    ["lacks the handler", 'export default { "plan-ready": { observe() {} } }'],
  ])("should exit 2 where a module %s, and say where it was asked for", async (_, module) => {
    const cwd = projectWith({ hooks: HOOKS.slice(0, 1) });
    writeFileSync(join(cwd, "s0.mjs"), module);
    const { code, stdout, stderr } = await run(["--json", "validate", "--load"], { cwd });
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      errors: [{ code: "HL_SUBSCRIBER_LOAD", file: "agent.hcl", line: expect.any(Number), col: expect.any(Number) }],
    });
    expect(stderr).toMatch(/^hookledger: 1 error in agent\.hcl \(HL_CONFIG\)\nagent\.hcl:\d+:\d+: /);
    expect(stderr).not.toContain("\u001b");
  });
});
