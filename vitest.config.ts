import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/interop/**", "test/soak/**"],
    testTimeout: 30_000,
    pool: "forks",
    // The product runs as Node runs it, and not as a transformer would have it.
    server: { deps: { external: [/\/dist\//] } },
  },
});
