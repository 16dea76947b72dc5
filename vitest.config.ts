import { defineConfig } from "vitest/config";

const json: [string, { outputFile: string }] = ["json", { outputFile: ".vitest/unit.json" }];

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/interop/**", "test/soak/**"],
    reporters: process.env["CI"] ? ["default", json] : ["default"],
    // A hang is a failure; a busy machine is none.
    testTimeout: 120_000,
    hookTimeout: 60_000,
    pool: "forks",
    // The product runs as Node runs it: through vite, its import() would not be Node's.
    server: { deps: { external: [/\/dist\//] } },
  },
});
