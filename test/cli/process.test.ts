import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Running, run } from "../support/cli.js";
import { type Hook, projectWith } from "../support/cli-project.js";

const WAITS = 'ctx.log.info("waiting"); return new Promise((resolve) => setTimeout(resolve, 60_000))';

function hook(handler: string, extra: Partial<Hook> = {}): Hook {
  return { point: "plan-ready", mode: "veto", handler, timeoutMs: 60_000, ...extra };
}

function start(cwd: string, ...args: readonly string[]): Running {
  return new Running(["--json", "dispatch", "--payload", "plan.json", ...args], { cwd });
}

describe("a signal", () => {
  it.each(["SIGINT", "SIGTERM"] as const)(
    "should cancel a running dispatch when it is the first %s",
    async (signal) => {
      const cwd = projectWith({ hooks: [hook(WAITS)] });
      const running = start(cwd);
      await running.sees("stderr", "waiting");
      running.kill(signal);
      const { code, stdout } = await running.ended;
      expect(code).toBe(4);
      expect(JSON.parse(stdout)).toMatchObject({ status: "aborted", abortCause: "cancelled", allowed: false });
      const listed = await run(["--json", "list"], { cwd });
      expect(JSON.parse(listed.stdout)).toMatchObject({ status: "aborted" });
    },
  );

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("should end the process when it is the second %s, with the result printed", async (signal, expected) => {
    const hooks = [hook(WAITS, { point: "post-tool-call", mode: "observe" })];
    const cwd = projectWith({ hooks, settings: 'observe_concurrency = "detached"' });
    const running = start(cwd, "--payload", "tool-result.json");
    await running.sees("stdout", "\n");
    running.kill(signal);
    await running.sees("stderr", "once more ends the process");
    running.kill(signal);
    const { code, stdout } = await running.ended;
    expect(code).toBe(expected);
    expect(JSON.parse(stdout)).toMatchObject({ decision: "allow" });
  });
});

describe("a module that meddles with the process", () => {
  it.each([
    ["exits", "process.exit(0)"],
    ["really exits", "process.reallyExit(0)"],
    ["aborts", "process.abort()"],
    ["kills itself", "process.kill(process.pid, 'SIGKILL')"],
    ["exits from a timer", "setTimeout(() => process.exit(0)); return new Promise(() => {})"],
  ])("should count as crashed when it %s", async (_, handler) => {
    const { code, stdout } = await start(projectWith({ hooks: [hook(handler)] })).ended;
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({ decision: "deny", hookErrors: [{ category: "PROCESS_CRASHED" }] });
  });

  it("should come to no exit code of its own", async () => {
    const module = 'process.exitCode = 0; process.on("exit", () => { process.exitCode = 0; });';
    const handler = 'process.exitCode = 0; return "deny"';
    const { code } = await start(projectWith({ hooks: [hook(handler, { module })] })).ended;
    expect(code).toBe(3);
  });

  it("should reach stderr, by name and on one line, where it prints", async () => {
    const handler = 'console.log("\\u001b[2Jone\\ntwo"); process.stderr.write("three"); return "allow"';
    const { code, stdout, stderr } = await start(projectWith({ hooks: [hook(handler)] })).ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ allowed: true });
    expect(stderr).toBe("s0 info: \\u{1b}[2Jone\ns0 info: two\ns0 info: three\n");
  });

  it("should not end the dispatch by what it leaves behind", async () => {
    const handler = `setTimeout(() => { throw new Error("stray") }); Promise.reject(new Error("lost"));
      return new Promise((resolve) => setTimeout(resolve, 20, "allow"))`;
    const { code, stderr } = await start(projectWith({ hooks: [hook(handler)] })).ended;
    expect(code).toBe(0);
    expect(stderr).toContain("s0 warn: left an exception behind: stray");
    expect(stderr).toContain("s0 warn: left a rejection behind: lost");
  });
});

describe("detached observers", () => {
  it("should be waited for, and their failure be told", async () => {
    const handler = `await new Promise((resolve) => setTimeout(resolve, 50));
      (await import("node:fs")).writeFileSync("observed", ""); throw new Error("too late")`;
    const hooks = [hook(handler, { point: "post-tool-call", mode: "observe" })];
    const cwd = projectWith({ hooks, settings: 'observe_concurrency = "detached"' });
    const { code, stdout, stderr } = await start(cwd, "--payload", "tool-result.json").ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ allowed: true, hookErrors: [] });
    expect(existsSync(join(cwd, "observed"))).toBe(true);
    expect(stderr).toContain("s0 (observe) UNKNOWN: too late");
    const replayed = await run(["--json", "replay", "--all"], { cwd });
    expect(JSON.parse(replayed.stdout).hookErrors).toMatchObject([{ message: "too late" }]);
  });
});

describe("a reader that goes away", () => {
  it("should end a dispatch quietly, and never as allowed", async () => {
    const handler = `ctx.log.info("asked");
      const { existsSync } = await import("node:fs");
      while (!existsSync("go")) await new Promise((resolve) => setTimeout(resolve, 5));
      return "allow"`;
    const cwd = projectWith({ hooks: [hook(handler)] });
    const running = start(cwd);
    await running.sees("stderr", "asked");
    await running.closeStdout();
    writeFileSync(join(cwd, "go"), "");
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 4, stderr: "s0 info: asked\n" });
  });
});
