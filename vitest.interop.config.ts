import { defineConfig } from "vitest/config";

const json: [string, { outputFile: string }] = ["json", { outputFile: ".vitest/interop.json" }];

/** Tests against other people's programs, which must be installed: see test/interop/README.md. */
export default defineConfig({
  test: {
    include: ["test/interop/**/*.test.ts"],
    globalSetup: "test/interop/goplugin/setup.ts",
    reporters: process.env["CI"] ? ["default", json] : ["default"],
    testTimeout: 120_000,
    pool: "forks",
    maxWorkers: 2,
    // The product runs as Node runs it: through vite, its import() would not be Node's.
    server: { deps: { external: [/\/dist\//] } },
  },
});
