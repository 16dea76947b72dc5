import { describe, expect, it } from "vitest";
import { resolveEnv } from "#src/config/env.js";
import { EnvReference, type Provider } from "#src/config/types.js";

const place = { file: "agent.hcl", line: 7, col: 11 };

function provider(body?: NonNullable<Provider["body"]>): Provider {
  return {
    name: "a",
    sourceText: "host",
    source: { kind: "host" },
    sensitive: [],
    ...(body && { body }),
    place: { ...place, line: 2 },
  };
}

describe("resolveEnv", () => {
  it("should put the variables into a body at any depth, and tell what is secret", () => {
    const body = {
      url: "x",
      token: new EnvReference("TOKEN"),
      list: [new EnvReference("SHORT"), { again: new EnvReference("TOKEN"), n: 1, none: null }],
    };
    const env = { TOKEN: "s3cret-value", SHORT: "five5", OTHER: "unrelated" };
    expect(resolveEnv(provider(body), env)).toEqual({
      body: { url: "x", token: "s3cret-value", list: ["five5", { again: "s3cret-value", n: 1, none: null }] },
      secrets: ["s3cret-value"],
    });
  });

  it("should give a provider without a body an empty one", () => {
    expect(resolveEnv(provider(), {})).toEqual({ body: {}, secrets: [] });
  });

  it("should take a variable that is set to nothing", () => {
    expect(resolveEnv(provider({ x: new EnvReference("EMPTY") }), { EMPTY: "" })).toEqual({
      body: { x: "" },
      secrets: [],
    });
  });

  it("should refuse a variable that is not set, with the place of the reference", () => {
    const read = () => resolveEnv(provider({ x: [new EnvReference("NONE", place)] }), { OTHER: "x" });
    expect(read).toThrow(
      expect.objectContaining({ code: "HL_ENV_UNSET", message: "the environment variable NONE is not set", place }),
    );
  });

  it("should fall back to the provider's place", () => {
    const read = () => resolveEnv(provider({ x: new EnvReference("NONE") }), {});
    expect(read).toThrow(expect.objectContaining({ code: "HL_ENV_UNSET", place: { ...place, line: 2 } }));
  });

  it.each(["__proto__", "constructor", "toString"])("should find no variable in what every object has: %s", (name) => {
    const read = () => resolveEnv(provider({ x: new EnvReference(name) }), {});
    expect(read).toThrow(expect.objectContaining({ code: "HL_ENV_UNSET" }));
  });

  it("should keep a member named __proto__ a member", () => {
    const body = JSON.parse('{"__proto__": {"x": 1}}');
    expect(Object.entries(resolveEnv(provider(body), {}).body)).toEqual([["__proto__", { x: 1 }]]);
  });
});
