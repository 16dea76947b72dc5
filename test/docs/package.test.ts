import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { ROOT } from "./documents.js";

const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));

describe("the package", () => {
  it("should hold what a user needs, and nothing else", async () => {
    const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: ROOT,
    });
    const [{ files }] = JSON.parse(stdout);
    const paths: readonly string[] = files.map(({ path }: { readonly path: string }) => path);
    const tops = new Set(paths.map((path) => path.split("/")[0]));
    expect([...tops].toSorted()).toEqual([
      "CHANGELOG.md",
      "LICENSE",
      "README.md",
      "dist",
      "docs",
      "package.json",
      "proto",
    ]);
    expect(paths).toEqual(
      expect.arrayContaining([
        "dist/cli/main.js",
        "dist/index.d.ts",
        "dist/index.js",
        "dist/store/sqlite/writer.js",
        "docs/audit-record.schema.json",
        "docs/concepts.md",
        "proto/hookledger/v1/plugin_info.proto",
        "proto/pluggableharness/hook/v1/service.proto",
      ]),
    );
  });

  it("should have what it exports and runs", () => {
    const { types, default: main } = manifest.exports["."];
    const named = [types, main, manifest.bin.hookledger, "proto/hookledger/v1/kernel.proto"];
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
    expect(readFileSync(join(ROOT, manifest.bin.hookledger), "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
  });

  it("should export under its own name what the documentation uses", async () => {
    const {
      createKernel,
      HookledgerError,
      loadConfig,
      openStore,
      recover,
      replayStream,
      systemClock,
      Verifier,
      verifyAll,
    } = await import("hookledger");
    const used = [
      createKernel,
      HookledgerError,
      loadConfig,
      openStore,
      recover,
      replayStream,
      systemClock,
      Verifier,
      verifyAll,
    ];
    expect(used).not.toContain(undefined);
  });
});
