import { defineConfig } from "vitest/config";

const json: [string, { outputFile: string }] = ["json", { outputFile: ".vitest/interop.json" }];

/** Tests against other people's programs, which must be installed: see test/interop/README.md. */
export default defineConfig({
  test: {
    include: ["test/interop/**/*.test.ts"],
    reporters: process.env["CI"] ? ["default", json] : ["default"],
    testTimeout: 120_000,
    pool: "forks",
  },
});
