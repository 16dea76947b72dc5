/** Programs that embed the kernel, as processes of their own; EventStoreDB is a double. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { temporaryFolder } from "../support/store-fixtures.js";

const INDEX = new URL("../../dist/index.js", import.meta.url).href;

const PROGRAM = `
  const { createKernel } = await import(${JSON.stringify(INDEX)});
  const kernel = await createKernel({ config: process.argv[1], store: process.argv[2] });
  const call = { id: "c-1", toolName: "read", arguments: { path: "a.txt" } };
  const { allowed, recorded } = await kernel.dispatch({ preToolCall: { call } });
  console.log({ allowed, recorded });
`;

describe("a program that embeds the kernel", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let double: Double;
  beforeAll(async () => {
    folder = temporaryFolder();
    writeFileSync(join(folder.path, "agent.hcl"), "settings {\n}\n");
    double = await startDouble();
  });
  afterAll(async () => {
    await double.stop();
    folder.remove();
  });

  it.each(["memory", "sqlite", "esdb"])(
    "should end, also one without a file that forgets to close: %s",
    async (kind) => {
      const stores: Record<string, string> = {
        memory: "memory:",
        sqlite: `sqlite:${join(folder.path, "ledger.db")}`,
        esdb: double.url,
      };
      const args = ["--input-type=module", "-e", PROGRAM, join(folder.path, "agent.hcl"), stores[kind] ?? ""];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 20_000 });
      expect({ stdout, stderr }).toEqual({ stdout: "{ allowed: true, recorded: true }\n", stderr: "" });
    },
  );
});
