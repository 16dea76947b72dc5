import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { folderWith, installHookledger, run } from "../support/cli.js";

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
      const [npx, program, ...args] = command.split(" ");
      expect([npx, program]).toEqual(["npx", "hookledger"]);
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
    expect(stdout).toContain("\n  npx hookledger validate --load\n");
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

describe("init --plugin", () => {
  it("should write a plugin that tests itself, loads and dispatches, by the very commands that it prints", async () => {
    const cwd = folderWith({});
    const { code, stdout } = await run(["--json", "init", "--plugin", "guard"], { cwd });
    expect(code).toBe(0);
    const { created, next } = JSON.parse(stdout);
    const folder = join(cwd, "guard");
    expect(created.filter((path: string) => !existsSync(join(folder, path)))).toEqual([]);
    expect(next.slice(0, 2)).toEqual(["cd guard", "npm install"]);
    installHookledger(folder);
    for (const command of next.slice(2)) {
      const ran = await typed(command, folder);
      expect([command, ran.code, ran.output]).toEqual([command, 0, expect.anything()]);
    }
  });

  it("should write a program that can be started, and whose types hold", async () => {
    const cwd = folderWith({});
    await run(["init", "--plugin"], { cwd });
    expect(statSync(join(cwd, "plugin.mjs")).mode & 0o100).toBe(0o100);
    installHookledger(cwd);
    const options = "--noEmit --allowJs --checkJs --strict --skipLibCheck --target es2022 --module nodenext";
    const checked = await ended(process.execPath, [TSC, ...options.split(" "), "--types", "", "plugin.mjs"], cwd);
    expect(checked).toEqual({ code: 0, output: "" });
  });

  it("should depend on the clone that wrote it, of which a registry may know nothing", async () => {
    const cwd = folderWith({});
    await run(["init", "--plugin"], { cwd });
    const { dependencies } = JSON.parse(readFileSync(join(cwd, "package.json"), "utf8"));
    const [, folder = ""] = /^file:(.+)$/.exec(dependencies.hookledger) ?? [];
    expect(realpathSync(resolve(cwd, folder))).toBe(realpathSync(join(import.meta.dirname, "../..")));
  });

  it("should write nothing at all into a package that is there already", async () => {
    const cwd = folderWith({ "package.json": "{}" });
    const { code, stderr } = await run(["init", "--plugin"], { cwd });
    expect([code, stderr]).toEqual([2, expect.stringContaining("package.json exists already")]);
    expect([readFileSync(join(cwd, "package.json"), "utf8"), existsSync(join(cwd, "plugin.mjs"))]).toEqual([
      "{}",
      false,
    ]);
  });
});

const TSC = join(import.meta.dirname, "../../node_modules/typescript/bin/tsc");

/** `npx hookledger` is the command line of this build; a few payloads of each kind are enough of conformance. */
async function typed(command: string, cwd: string): Promise<{ readonly code: number | null; readonly output: string }> {
  const [program = "", ...args] = command.split(" ");
  if (program !== "npx") return ended(program, args, cwd);
  const fewer = args.includes("conformance") ? ["--runs", "5"] : [];
  const { code, stdout, stderr } = await run([...args.slice(1), ...fewer], { cwd });
  return { code, output: stdout + stderr };
}

async function ended(program: string, args: readonly string[], cwd: string) {
  const child = spawn(program, args, { cwd });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code]: readonly (number | null)[] = await once(child, "close");
  return { code: code ?? null, output };
}
