import { copyFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { run } from "../../support/cli.js";
import { buildGoPrograms } from "./build.js";
import { temporaryFolder } from "./lives.js";

const EXAMPLE = fileURLToPath(new URL("../../../examples/approval-gate/", import.meta.url));

/** The example as its README leaves it, in a folder of its own. */
function example(edit: (config: string) => string = (config) => config): string {
  const folder = temporaryFolder();
  for (const file of ["agent.hcl", "plan.json", "call.json"]) cpSync(join(EXAMPLE, file), join(folder, file));
  const config = join(folder, "agent.hcl");
  writeFileSync(config, edit(readFileSync(config, "utf8")));
  copyFileSync(buildGoPrograms().gate, join(folder, "approval-gate"));
  return folder;
}

async function dispatch(cwd: string, payload: string) {
  const { code, stdout, stderr } = await run(["dispatch", "--payload", payload, "--json"], { cwd });
  return { code, result: stdout === "" ? null : JSON.parse(stdout), stderr };
}

describe("the example of an approval gate in Go", () => {
  it("should deny the plan that publishes, and say why", async () => {
    const { code, result } = await dispatch(example(), "plan.json");
    expect({ code, allowed: result.allowed, reason: result.reason }).toEqual({
      code: 3,
      allowed: false,
      reason: "push_branch: publishing is for people",
    });
  });

  it("should let the harmless call through", async () => {
    const { code, result } = await dispatch(example(), "call.json");
    expect({ code, allowed: result.allowed }).toEqual({ code: 0, allowed: true });
  });

  it("should look into a call's arguments", async () => {
    const folder = example();
    const call = readFileSync(join(folder, "call.json"), "utf8").replaceAll("npm test", "cd / && rm -rf .");
    writeFileSync(join(folder, "call.json"), call);
    const { code, result } = await dispatch(folder, "call.json");
    expect({ code, reason: result.reason }).toEqual({ code: 3, reason: "run_command: it removes without asking" });
  });

  it.each([
    ["an unknown field", (config: string) => config.replace('risk = "critical"', 'riks = "critical"'), "riks"],
    ["an unknown risk", (config: string) => config.replace('risk = "critical"', 'risk = "huge"'), "huge"],
  ])("should deny everything when a rule is misspelt: %s", async (_, edit, said) => {
    const { code, result, stderr } = await dispatch(example(edit), "call.json");
    expect(code).toBe(3);
    expect(result.allowed).toBe(false);
    expect(JSON.stringify(result) + stderr).toContain(said);
  });
});
