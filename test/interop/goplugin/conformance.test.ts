import { copyFileSync, cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { run } from "../../support/cli.js";
import { buildGoPrograms } from "./build.js";
import { temporaryFolder } from "./lives.js";

const AGENT_HCL = fileURLToPath(new URL("../../../examples/approval-gate/agent.hcl", import.meta.url));
const { plugin, gate } = buildGoPrograms();

describe("conformance of genuine Go plugins", () => {
  it("should find nothing wrong with the peer", async () => {
    const cwd = temporaryFolder();
    copyFileSync(plugin, join(cwd, "peerplugin"));
    const { code, stdout } = await run(["conformance", "./peerplugin", "--runs", "30"], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("conforms") });
  });

  it("should find nothing wrong with the approval gate, as it is configured", async () => {
    const cwd = temporaryFolder();
    copyFileSync(gate, join(cwd, "approval-gate"));
    cpSync(AGENT_HCL, join(cwd, "agent.hcl"));
    const { code, stdout } = await run(["conformance", "--provider", "approval_gate", "--runs", "30"], { cwd });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("conforms") });
  });
});
