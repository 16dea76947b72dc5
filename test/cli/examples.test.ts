import { cpSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { folderWith, run } from "../support/cli.js";

const EXAMPLES = fileURLToPath(new URL("../../examples/", import.meta.url));

function exampleIn(name: string): string {
  const cwd = folderWith({});
  cpSync(join(EXAMPLES, name), cwd, { recursive: true });
  return cwd;
}

describe("the examples", () => {
  it.each([
    ["approval", "plan.json", 8],
    ["approval", "drop.json", 3],
    ["redaction", "messages.json", 0],
    ["observers", "result.json", 0],
  ])("should do what %s says of %s", async (name, payload, expected) => {
    const cwd = exampleIn(name);
    const { code, stdout } = await run(["dispatch", "--payload", payload], { cwd });
    expect([code, stdout]).toEqual([expected, expect.stringContaining("hookledger show")]);
    expect((await run(["verify", "--all"], { cwd })).code).toBe(0);
  });

  it("should keep the key of the redaction example out of the ledger", async () => {
    const cwd = exampleIn("redaction");
    const live = await run(["--json", "dispatch", "--payload", "messages.json"], { cwd });
    expect(live.stdout).toContain("[email]. The key is sk-0123456789");
    const replayed = await run(["--json", "replay", JSON.parse(live.stdout).dispatchId], { cwd });
    expect(replayed.stdout).toContain("[email]. The key is [redacted]");
  });
});
