import { describe, expect, it } from "vitest";
import { didYouMean, nearest } from "#src/config/spelling.js";

describe("nearest", () => {
  const known = ["provider", "mode", "id", "timeout_ms", "plan-ready"];

  it.each([
    ["provder", "provider"],
    ["porvider", "provider"],
    ["Provider", "provider"],
    ["mod", "mode"],
    ["timeout", "timeout_ms"],
    ["plan_ready", "plan-ready"],
    ["ide", "id"],
  ])("should take %s for %s", (written, meant) => {
    expect(nearest(written, known)).toBe(meant);
  });

  it.each(["shadow", "x", "", "supercalifragilistic".repeat(100)])("should take %j for nothing", (written) => {
    expect(nearest(written, known)).toBeUndefined();
  });

  it("should not take one letter for another", () => {
    expect(nearest("b", ["a"])).toBeUndefined();
  });
});

describe("didYouMean", () => {
  it("should name the nearest, or all", () => {
    expect(didYouMean("mod", ["mode", "id"])).toBe('did you mean "mode"?');
    expect(didYouMean("x", ["mode", "idea"])).toBe("known here: mode, idea");
  });
});
