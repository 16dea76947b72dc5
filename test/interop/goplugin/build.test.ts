import { accessSync, constants } from "node:fs";
import { describe, expect, it } from "vitest";
import { buildGoPrograms, misformatted } from "./build.js";

describe("the Go programs", () => {
  it("should be built from the project's own files and Debian's packages", () => {
    for (const program of Object.values(buildGoPrograms())) accessSync(program, constants.X_OK);
  });

  it("should be written as gofmt would write them", () => {
    expect(misformatted()).toBe("");
  });
});
