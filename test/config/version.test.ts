import { describe, expect, it } from "vitest";
import { parseConstraint, satisfies } from "#src/config/version.js";

describe("version constraints", () => {
  it.each([
    ["~> 1.2", "1.2.0", true],
    ["~> 1.2", "1.9.4", true],
    ["~> 1.2", "2.0.0", false],
    ["~> 1.2", "1.1.9", false],
    ["~> 1.2.3", "1.2.9", true],
    ["~> 1.2.3", "1.3.0", false],
    ["~> 1", "1.7.0", true],
    [">= 1.0, < 2.0", "1.9.9", true],
    [">= 1.0, < 2.0", "2.0.0", false],
    ["1.4.0", "v1.4.0", true],
    ["= 1.4", "1.4.0", true],
    ["= 1.4", "1.4.0+build.7", true],
    ["!= 1.4.0", "1.4.1", true],
    ["> 1.10.0", "1.9.0", false],
    [">=1.2.0", "1.2.0-beta.1", false],
    [">= 1.2.0-beta.1", "1.2.0-beta.2", true],
    [">= 1.2.0-beta.2", "1.2.0-beta.10", true],
    [">= 1.2.0-beta", "1.3.0-beta", false],
    ["< 1.2.0-rc.1", "1.2.0-beta", true],
  ])("should read %s against %s as %s", (constraint, version, expected) => {
    const parsed = parseConstraint(constraint);
    expect(parsed).not.toBeNull();
    expect(parsed && satisfies(version, parsed)).toBe(expected);
  });

  it.each(["", "one", "~>", "^1.2", "1.2.3.4", "1..2", ">= 1.0 < 2.0", "1,", "1".repeat(300)])(
    "should refuse %j as a constraint",
    (text) => expect(parseConstraint(text)).toBeNull(),
  );

  it("should say so when the version is none", () => {
    const constraint = parseConstraint("~> 1.2");
    expect(constraint && satisfies("latest", constraint)).toBeNull();
  });
});
