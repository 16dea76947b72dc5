import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["test/golden/write.ts"], pool: "forks" } });
