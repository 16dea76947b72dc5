import { describe, expect, it } from "vitest";
import { chainBudget, chainOrder, resolveChain } from "#src/config/resolve.js";
import { parse } from "./marked.js";

async function configOf(text: string) {
  const result = await parse(`required_providers {\n  a = { source = "host" }\n  b = { source = "host" }\n}\n${text}`);
  if (!result.ok) throw new Error(JSON.stringify(result.errors));
  return result.config;
}

const HOOKS = `
hook "plan-ready" {
  provider = "b"
  mode = "veto"
  timeout_ms = 800
}
hook "session-end" {
  provider = "a"
  mode = "observe"
}
hook "plan-ready" {
  provider = "a"
  mode = "observe"
  id = "first"
  recording = "barrier"
  shadow = true
}
hook "plan-ready" {
  provider = "a"
  mode = "observe"
}
settings {
  default_hook_timeout_ms = 1500
  recording = "write-ahead"
}
`;

describe("resolveChain", () => {
  it("should keep textual order and give each hook its name, timeout and recording", async () => {
    const chain = resolveChain(await configOf(HOOKS), "plan-ready");
    expect(
      chain.map(({ subscriberId, id, timeoutMs, recording, shadow, mode, provider }) => [
        subscriberId,
        id,
        timeoutMs,
        recording,
        shadow,
        mode,
        provider,
      ]),
    ).toEqual([
      ["b", undefined, 800, "write-ahead", false, "veto", "b"],
      ["a:first", "first", 1500, "barrier", true, "observe", "a"],
      ["a", undefined, 1500, "write-ahead", false, "observe", "a"],
    ]);
  });

  it("should be empty where nobody subscribes", async () => {
    expect(resolveChain(await configOf(HOOKS), "post-apply")).toEqual([]);
  });

  it("should fall back to 5 000 ms", async () => {
    const config = await configOf('hook "session-end" {\n  provider = "a"\n  mode = "observe"\n}');
    expect(resolveChain(config, "session-end")[0]).toMatchObject({ timeoutMs: 5000, recording: "barrier" });
  });
});

describe("chainOrder", () => {
  it("should put the kernel's policy first at plan-ready, and nowhere else", async () => {
    const config = await configOf(HOOKS);
    expect(
      chainOrder(config, "plan-ready").map(({ subscriber, mode, timeoutMs }) => [subscriber, mode, timeoutMs]),
    ).toEqual([
      ["kernel:policy", "policy", 1500],
      ["b", "veto", 800],
      ["a:first", "observe", 1500],
      ["a", "observe", 1500],
    ]);
    expect(chainOrder(config, "session-end").map(({ subscriber }) => subscriber)).toEqual(["a"]);
    expect(chainOrder(config, "pre-tool-call")).toEqual([]);
  });
});

describe("chainBudget", () => {
  it("should add up every effective timeout", async () => {
    const config = await configOf(HOOKS);
    expect(chainBudget(config, "plan-ready")).toBe(1500 + 800 + 1500 + 1500);
    expect(chainBudget(config, "session-end")).toBe(1500);
    expect(chainBudget(config, "pre-tool-call")).toBe(0);
  });
});
