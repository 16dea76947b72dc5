/** Secrets that a plugin is given, and says wherever it can: none reaches a store, a log line, a warning or an error. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKernel, type Kernel } from "#src/dispatch/kernel.js";
import { HookledgerError } from "#src/errors.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { filesBelow, leaks } from "./needles.js";

const TOKEN = "canary-7f3a9c51e2d84b06";
const COOKIE = "canary-cookie-5b1d";
const PARENT = "canary-of-the-parent-77";
const ENV = { PATH: process.env["PATH"], CANARY_TOKEN: TOKEN, CANARY_COOKIE: COOKIE, CANARY_PARENT: PARENT };
const SDK = pathToFileURL(fileURLToPath(new URL("../../dist/plugin/index.js", import.meta.url))).href;

let folder: ReturnType<typeof temporaryFolder>;
let kernel: Kernel | undefined;
let logged: string[];
beforeEach(() => {
  folder = temporaryFolder();
  logged = [];
});
afterEach(async () => {
  await kernel?.close();
  kernel = undefined;
  folder.remove();
});

async function kernelWith(plugin: string, more = ""): Promise<Kernel> {
  writeFileSync(join(folder.path, "leaky"), `#!/usr/bin/env node\n${plugin}`, { mode: 0o755 });
  const config = join(folder.path, "agent.hcl");
  writeFileSync(
    config,
    `required_providers {
  leaky = {
    source    = "./leaky"
    sensitive = ["token"]
    cookie    = { key = "LEAKY_COOKIE", value = env("CANARY_COOKIE") }
    ${more}
  }
}
provider "leaky" {
  token = env("CANARY_TOKEN")
}
hook "pre-tool-call" {
  provider = "leaky"
  mode     = "veto"
}
`,
  );
  kernel = await createKernel({
    config,
    store: `sqlite:${join(folder.path, "ledger", "ledger.db")}`,
    env: ENV,
    log: (line) => logged.push(JSON.stringify(line)),
  });
  return kernel;
}

/** Everything that may be shown or kept. */
async function expectNoLeak(said: object): Promise<void> {
  await kernel?.close();
  const files = filesBelow(join(folder.path, "ledger"));
  expect(Object.keys(files).length).toBeGreaterThan(0);
  const sources = { ...files, "the log": logged.join("\n"), "what is said": JSON.stringify(said) };
  expect(leaks([TOKEN, COOKIE, PARENT], sources)).toEqual([]);
}

describe("a plugin that tells all that it knows", () => {
  const all = "JSON.stringify(process.env) + process.argv.join()";

  it.each([
    ["as its reason", `() => ({ decision: "deny", reason: ${all} })`],
    ["in what it throws", `() => { throw new Error(${all}) }`],
    [
      "to its log, stdout and stderr",
      `(_, ctx) => { ctx.log.error(${all}); console.log(${all}); console.error(${all}); return "allow" }`,
    ],
    ["as it dies", `() => { console.error(${all}); process.exit(3) }`],
  ])("should not have it kept or shown: %s", async (_, veto) => {
    const leaky = await kernelWith(
      `import { servePlugin } from ${JSON.stringify(SDK)};
       await servePlugin({ name: "leaky", version: "1.0.0", cookie: { key: "LEAKY_COOKIE", value: process.env.LEAKY_COOKIE },
         hooks: { "pre-tool-call": { veto: ${veto} } } });`,
    );
    const { payload: __, ...result } = await leaky.dispatch(INPUTS["pre-tool-call"]);
    await expectNoLeak({ result, warnings: leaky.warnings });
    expect(logged.length + result.hookErrors.length + (result.reason === null ? 0 : 1)).toBeGreaterThan(0);
  });

  it("should not have it kept or shown: instead of a handshake", async () => {
    const leaky = await kernelWith(`console.error(${all}); console.log(${all}); process.exit(3);`);
    await leaky.start();
    const { payload: __, ...result } = await leaky.dispatch(INPUTS["pre-tool-call"]);
    expect(leaky.warnings).toHaveLength(1);
    expect(result).toMatchObject({ decision: "deny" });
    await expectNoLeak({ result, warnings: leaky.warnings });
  });

  it("should not have its beginning kept or shown, wherever what it said is cut", async () => {
    const leaky = await kernelWith("");
    const said: string[] = [];
    for (let at = 180; at < 205; at += 3) {
      writeFileSync(
        join(folder.path, "leaky"),
        `#!/bin/sh\nt=$LEAKY_COOKIE; x=$(printf %${at}s); echo "$x$t" >&2; echo "$x$t"\n`,
      );
      await leaky.start();
      said.push(...leaky.warnings);
    }
    expect(new Set(said).size).toBeGreaterThan(5);
    await expectNoLeak(said);
  });

  it("should not have its beginning kept or shown where a line of its log is too long", async () => {
    const leaky = await kernelWith(
      `import { writeSync } from "node:fs";
       const t = process.env.LEAKY_COOKIE;
       // Two bytes a character: the text of the line is shorter than the line, so that there is room to say that it was cut.
       for (let cut = 3; cut < t.length; cut += 3) {
         const before = 65536 - cut;
         writeSync(2, "é".repeat(before >> 1) + "x".repeat(before & 1) + t + "\\n");
       }
       process.exit(3);`,
    );
    await leaky.start();
    expect(logged.some((line) => line.includes("bytes more)"))).toBe(true);
    await expectNoLeak({ warnings: leaky.warnings });
  });

  it("should not have it kept or shown: as its version", async () => {
    const leaky = await kernelWith(
      `import { servePlugin } from ${JSON.stringify(SDK)};
       await servePlugin({ name: "leaky", version: "2.0.0-" + JSON.parse(process.env.HOOKLEDGER_PROVIDER_CONFIG).token,
         cookie: { key: "LEAKY_COOKIE", value: process.env.LEAKY_COOKIE },
         hooks: { "pre-tool-call": { veto: () => "allow" } } });`,
      'version = "~> 1.0"',
    );
    const refused: unknown = await leaky.start().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(HookledgerError);
    const { payload: __, ...result } = await leaky.dispatch(INPUTS["pre-tool-call"]);
    await expectNoLeak({ result, refused: (refused as HookledgerError).message });
  });
});
