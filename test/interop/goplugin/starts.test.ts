import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { buildGoPrograms } from "./build.js";
import { AUTO_MTLS, type LifeOptions, mark, running, start, temporaryFolder } from "./lives.js";

const { plugin } = buildGoPrograms();

/** Nothing of what was started is left, and what is said fits on one line. */
async function refused(path: string, args: readonly string[], options: LifeOptions = {}): Promise<string> {
  const { started } = await start(path, args, options);
  if (started.ok) throw new Error("it came up");
  expect(started.message).not.toMatch(/\p{Cc}/u);
  expect(started.message.length).toBeLessThanOrEqual(2_048);
  return started.message;
}

describe.each(AUTO_MTLS)("a Go plugin that does not come up, AutoMTLS %s", (autoMtls) => {
  it.each([
    ["a stray line before the handshake", ["stray"], {}, /loading the \\u\{1b\}\[31mmodel/],
    ["another core protocol", ["core-2"], {}, /2\|1\|unix/],
    ["another version of its own", ["app-7"], {}, /7/],
    ["net/rpc", ["netrpc"], {}, /netrpc/],
    ["another cookie", [], { cookie: { key: "SOME_PLUGIN", value: "x" } }, /code 1/],
    ["an end before the handshake", ["exit-early"], {}, /code 3/],
    ["silence", ["silent"], { startTimeoutMs: 300 }, /300 ms/],
    ["a timeout, with a grandchild", ["silent", "grandchild"], { startTimeoutMs: 300 }, /300 ms/],
  ] as const)("should say so: %s", async (_, args, options, expected) => {
    const marked = mark();
    expect(await refused(plugin, [...args, marked], { autoMtls, ...options })).toMatch(expected);
    expect(running(marked)).toEqual([]);
  });
});

describe("a plugin that cannot be started", () => {
  it("should be told apart: a missing file, one that may not be run, a folder, no program", async () => {
    const folder = temporaryFolder();
    const text = join(folder, "text");
    writeFileSync(text, "hello\n");
    mkdirSync(join(folder, "folder"));
    expect(await refused(join(folder, "missing"), [])).not.toBe("");
    expect(await refused(text, [])).not.toBe("");
    expect(await refused(join(folder, "folder"), [])).not.toBe("");
    chmodSync(text, 0o755);
    expect(await refused(text, [])).not.toBe("");
  });

  it("should be refused on TCP without certificates", async () => {
    expect(await refused(plugin, ["tcp"], { autoMtls: "off" })).toMatch(/tcp/i);
  });
});
