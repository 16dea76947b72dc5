import { defineConfig } from "vitest/config";

/** Tests against other people's programs, which must be installed: see test/interop/README.md. */
export default defineConfig({
  test: {
    include: ["test/interop/**/*.test.ts"],
    testTimeout: 120_000,
    pool: "forks",
  },
});
