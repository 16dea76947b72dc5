import { describe, expect, it } from "vitest";
import type { CommandFile } from "#src/cli/command.js";
import { COMMANDS } from "#src/cli/commands.js";
import { EXIT, exitCodeOf } from "#src/cli/exit.js";
import { ERROR_CODES, HookledgerError } from "#src/errors.js";
import { ENGINE_VERSION } from "#src/version.js";
import { folderWith, run } from "../support/cli.js";
import { runCommand } from "../support/run-command.js";

function commandThat(act: CommandFile["run"]): CommandFile {
  return { name: "probe", summary: "does what a test says", args: "[word...]", options: [], examples: [], run: act };
}

describe("the command line", () => {
  it("should print its version and its help", async () => {
    const cwd = folderWith({});
    const version = await run(["--version"], { cwd });
    expect(version).toEqual({ code: 0, stdout: `${ENGINE_VERSION}\n`, stderr: "" });
    const help = await run(["--help"], { cwd });
    expect([help.code, help.stderr]).toEqual([0, ""]);
    const shown = help.stdout.replace(/\s+/g, " ");
    for (const { name, summary } of COMMANDS.filter((command) => !command.name.includes(" "))) {
      expect(shown).toContain(` ${name} `);
      expect(shown).toContain(summary);
    }
  });

  it.each([[[]], [["list"]], [["audit"]]])("should help with %j as with --help", async (words) => {
    const cwd = folderWith({});
    const help = await run(["help", ...words], { cwd });
    expect(help).toEqual({ code: 0, stdout: expect.stringContaining("Usage: hookledger"), stderr: "" });
    expect(help).toEqual(await run([...words, "--help"], { cwd }));
  });

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    "should explain %s, with examples",
    async (name, command) => {
      const { code, stdout } = await runCommand(command, [...name.split(" "), "--help"]);
      expect(code).toBe(0);
      expect(stdout).toContain("\nExamples:\n  # ");
      expect(stdout).toContain("--store <url>");
      for (const example of command.examples) expect(stdout).toContain(`  $ ${example.command}`);
    },
  );

  it.each([
    [[], "no command given", "hookledger --help"],
    [["lits"], "unknown command 'lits'", "Did you mean list?"],
    [["list", "--limt", "3"], "unknown option '--limt'", "Did you mean --limit?"],
    [["list", "--limit"], "option '--limit <n>' argument missing", "--help"],
    [["list", "extra"], "too many arguments", "--help"],
    [["--nonsense"], "unknown option '--nonsense'", "--help"],
    [["audit"], "no command given", "hookledger audit --help"],
    [["audit", "exprot"], "unknown command 'exprot'", "Did you mean export?"],
    [["audit", "export", "--nonsense"], "unknown option '--nonsense'", "hookledger audit export --help"],
    [["show"], "missing required argument 'id'", "hookledger show --help"],
    [["help", "nonsense"], "unknown command 'nonsense'", "hookledger --help"],
    [["validate", "--config", ""], "the path of the configuration is empty", "agent.hcl"],
    [["validate", ""], "the path of the configuration is empty", "agent.hcl"],
    [["constructor"], "unknown command 'constructor'", "--help"],
  ])("should exit 2 on %j", async (args, message, hint) => {
    const { code, stdout, stderr } = await run(["--json", ...args], { cwd: folderWith({}) });
    expect(code).toBe(2);
    const { error } = JSON.parse(stdout);
    expect(error.code).toBe("HL_USAGE");
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
    expect(stderr).toBe(`hookledger: ${error.message} (HL_USAGE)\n  ${error.hint}\n`);
  });

  it("should take global options before and after the command", async () => {
    const probe = commandThat(async ({ out, store, config, args }) => {
      await out.document({ store, config, args, quiet: out.quiet });
      return EXIT.done;
    });
    const before = await runCommand(probe, ["--json", "--quiet", "--store", "memory:", "--config", "c", "probe", "a"]);
    const after = await runCommand(probe, ["probe", "a", "--json", "--quiet", "--store", "memory:", "--config", "c"]);
    expect(JSON.parse(before.stdout)).toEqual({ store: "memory:", config: "c", args: ["a"], quiet: true });
    expect(after).toEqual(before);
    const neither = await runCommand(probe, ["probe"]);
    expect(JSON.parse(neither.stdout)).toEqual({
      store: "sqlite:.hookledger/ledger.db",
      config: "agent.hcl",
      args: [],
      quiet: false,
    });
  });
});

describe("a failure", () => {
  it("should be told on stderr first, with its place and what to do, and on stdout as JSON", async () => {
    const probe = commandThat(async () => {
      throw new HookledgerError("HL_CONFIG", "broken\nhookledger: forged", {
        place: { file: "agent.hcl", line: 3, col: 5 },
        hint: "mend it",
      });
    });
    const { code, stdout, stderr } = await runCommand(probe, ["--json", "probe"]);
    expect(code).toBe(2);
    expect(stderr).toBe("hookledger: broken\\u{a}hookledger: forged (HL_CONFIG)\n  at agent.hcl:3:5\n  mend it\n");
    expect(JSON.parse(stdout)).toEqual({
      error: {
        code: "HL_CONFIG",
        message: "broken\nhookledger: forged",
        file: "agent.hcl",
        line: 3,
        col: 5,
        hint: "mend it",
      },
    });
  });

  it("should leave stdout alone without --json", async () => {
    const probe = commandThat(async () => {
      throw new HookledgerError("HL_NOT_FOUND", "nothing");
    });
    const { code, stdout, stderr } = await runCommand(probe, ["probe"]);
    expect({ code, stdout, stderr }).toEqual({ code: 7, stdout: "", stderr: "hookledger: nothing (HL_NOT_FOUND)\n" });
  });

  it("should be a bug with an id to search for where it is none of ours, and show its stack only with --verbose", async () => {
    const probe = commandThat(async () => {
      throw new TypeError("x is undefined");
    });
    const brief = await runCommand(probe, ["probe"]);
    expect(brief.code).toBe(1);
    expect(brief.stderr).toMatch(/^hookledger: internal error [0-9a-f]{8}: x is undefined \(HL_INTERNAL\)\n/);
    expect(brief.stderr).not.toContain("    at ");
    const verbose = await runCommand(probe, ["--verbose", "probe"]);
    expect(verbose.stderr).toContain("caused by TypeError: x is undefined");
    expect(verbose.stderr).toMatch(/\n {2}│ {5}at /);
  });

  it("should have an exit code whatever its code is", () => {
    for (const code of Object.keys(ERROR_CODES)) {
      expect(exitCodeOf(code as keyof typeof ERROR_CODES)).toBeGreaterThan(0);
    }
  });
});
