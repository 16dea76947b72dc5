import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parseConfig } from "#src/config/load.js";
import { brief, everything } from "./marked.js";

const DOCUMENT = readFileSync(new URL("../../docs/agent-hcl.md", import.meta.url), "utf8");

/** Every fenced block of HCL, with the line of its fence. */
const EXAMPLES = Array.from(DOCUMENT.matchAll(/^```hcl\n([\s\S]*?)^```$/gm), ({ index, 1: text = "" }) => ({
  line: DOCUMENT.slice(0, index).split("\n").length,
  text,
}));

describe("docs/agent-hcl.md", () => {
  it("should have examples", () => {
    expect(EXAMPLES.length).toBeGreaterThanOrEqual(8);
  });

  it.each(EXAMPLES)("should hold a valid configuration in line $line", async ({ text }) => {
    const result = await parseConfig([{ name: "agent.hcl", text }], { probe: everything });
    expect(result.ok ? [] : brief(result.errors)).toEqual([]);
  });

  it("should name every attribute that settings has", async () => {
    const result = await parseConfig([{ name: "agent.hcl", text: "settings {\n  x = 1\n}\n" }]);
    const known = /^known here: (.*)$/.exec((!result.ok && result.errors[0]?.hint) || "")?.[1]?.split(", ") ?? [];
    expect(known.length).toBeGreaterThan(10);
    for (const name of known) expect(DOCUMENT).toContain(`\`${name}\``);
  });
});
