import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { folderWith, run } from "../support/cli.js";

const CREATED = ["agent.hcl", "hooks/guard.mjs", "payloads/plan-ready.json"];

describe("init", () => {
  it("should write what validates, loads and dispatches as it is, by the very commands that it prints", async () => {
    const cwd = folderWith({});
    const { code, stdout } = await run(["--json", "init", "my agent"], { cwd });
    expect(code).toBe(0);
    const { created, next } = JSON.parse(stdout);
    expect(created).toEqual(CREATED);
    expect(next[0]).toBe("cd 'my agent'");
    for (const command of next.slice(1)) {
      const [program, ...args] = command.split(" ");
      expect(program).toBe("hookledger");
      const ran = await run(args, { cwd: join(cwd, "my agent") });
      expect([command, ran.code, ran.stderr]).toEqual([command, 0, ""]);
    }
  });

  it("should write a guard that works at every point at which it is hooked", async () => {
    const cwd = folderWith({});
    await run(["init"], { cwd });
    const message = { role: "ROLE_USER", content: [{ text: { text: "mail ada@example.org" } }, { image: {} }] };
    const rewritten = await run(["--json", "dispatch", "--payload", "-"], {
      cwd,
      stdin: JSON.stringify({ preModelCall: { messages: [message] } }),
    });
    expect(rewritten.code).toBe(0);
    expect(JSON.parse(rewritten.stdout).payload.preModelCall.messages[0].content).toEqual([
      { text: { text: "mail [email]" } },
      { image: {} },
    ]);
    const observed = await run(["--json", "dispatch", "--payload", "-"], {
      cwd,
      stdin: '{"postToolCall":{"call":{"toolName":"read_file"},"result":{}}}',
    });
    expect(JSON.parse(observed.stdout).hookErrors).toEqual([]);
    expect(observed.stderr).toContain("read_file succeeded");
  });

  it("should tell people what it wrote and what to type next", async () => {
    const { stdout } = await run(["init"], { cwd: folderWith({}) });
    for (const path of CREATED) expect(stdout).toContain(`created  ${path}`);
    expect(stdout).toContain("\n  hookledger validate --load\n");
  });

  it("should write nothing at all where one of the files is there already", async () => {
    const cwd = folderWith({});
    mkdirSync(join(cwd, "hooks"));
    writeFileSync(join(cwd, "hooks/guard.mjs"), "mine");
    const { code, stderr } = await run(["init"], { cwd });
    expect(code).toBe(2);
    expect(stderr).toContain("hooks/guard.mjs exists already");
    expect(readFileSync(join(cwd, "hooks/guard.mjs"), "utf8")).toBe("mine");
    expect(existsSync(join(cwd, "agent.hcl"))).toBe(false);
  });

  it("should not write through a symbolic link", async () => {
    const cwd = folderWith({});
    symlinkSync(join(cwd, "elsewhere"), join(cwd, "agent.hcl"));
    expect((await run(["init"], { cwd })).code).toBe(2);
    expect(existsSync(join(cwd, "elsewhere"))).toBe(false);
  });

  it("should say that it cannot write", async () => {
    const cwd = folderWith({ file: "" });
    const { code, stderr } = await run(["init", "file/inside"], { cwd });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^hookledger: .*cannot be written/);
  });
});
