import { describe, expect, it } from "vitest";
import { parseConfig } from "#src/config/load.js";
import { everything } from "./marked.js";

async function canonicalOf(files: readonly { readonly name: string; readonly text: string }[]): Promise<string> {
  const result = await parseConfig(files, { probe: everything });
  if (!result.ok) throw new Error(JSON.stringify(result.errors));
  return result.config.canonical;
}

const TEXT = `required_providers {
  a = { source = "module:./a.mjs" }
}
provider "a" {
  token = env("TOKEN")
  fake  = "$\${env(\\"TOKEN\\")}"
  route "x" {
    n = 1.50
  }
}
agent_profile "p" {
  tools = [fs.read]
}
`;

describe("the canonical text", () => {
  it("should hold every block as written, with its place by base name", async () => {
    expect(await canonicalOf([{ name: "/home/me/agent.hcl", text: TEXT }])).toBe(
      JSON.stringify({
        blocks: [
          {
            at: "agent.hcl:1:1",
            attributes: { a: { source: "module:./a.mjs" } },
            blocks: [],
            labels: [],
            type: "required_providers",
          },
          {
            at: "agent.hcl:4:1",
            attributes: { fake: `$\${env("TOKEN")}`, token: `\${env("TOKEN")}` },
            blocks: [{ attributes: { n: 1.5 }, blocks: [], labels: ["x"], type: "route" }],
            labels: ["a"],
            type: "provider",
          },
          {
            at: "agent.hcl:11:1",
            attributes: { tools: [`\${fs.read}`] },
            blocks: [],
            labels: ["p"],
            type: "agent_profile",
          },
        ],
      }),
    );
  });

  it("should be the same on another machine, and whatever the order of reading", async () => {
    const here = await canonicalOf([
      { name: "/a/x.hcl", text: TEXT },
      { name: "/a/y.hcl", text: "settings {\n}\n" },
    ]);
    const there = await canonicalOf([
      { name: "C/y.hcl", text: "settings {\n}\n" },
      { name: "C/x.hcl", text: TEXT },
    ]);
    expect(there).toBe(here);
    expect(here).not.toContain("/a/");
  });

  it("should change with what is written, also where it is kept only", async () => {
    const base = await canonicalOf([{ name: "a.hcl", text: TEXT }]);
    for (const [from, to] of [
      ['TOKEN")\n', 'TOKEN2")\n'],
      ["1.50", "1.51"],
      ["fs.read", "fs.write"],
      ["fs.read", '"fs.read"'],
    ] as const) {
      expect(await canonicalOf([{ name: "a.hcl", text: TEXT.replace(from, to) }])).not.toBe(base);
    }
    expect(await canonicalOf([{ name: "a.hcl", text: TEXT.replace("1.50", "1.5 # one and a half") }])).toBe(base);
  });
});
