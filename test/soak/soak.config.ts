import { defineConfig } from "vitest/config";

/** `npm run soak`: what takes minutes. */
export default defineConfig({
  test: { include: ["test/soak/**/*.test.ts"], testTimeout: 30 * 60_000, pool: "forks" },
});
