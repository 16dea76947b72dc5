import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKernel, type Kernel } from "#src/dispatch/kernel.js";
import { openMemoryStore } from "#src/store/memory.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { GRPC, SLOW, WIRE } from "./grpc-rows.js";
import { agentHcl, dispatched, expectJudged, MODES } from "./judged.js";

/** ms */
const PATIENT = 60_000;
const HASTY = 150;
const MAX_BYTES = 1024 * 1024;
const PEER = fileURLToPath(new URL("../support/plugin-peer.mjs", import.meta.url));

const store = openMemoryStore();
const kernels: Kernel[] = [];
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hookledger-plugin-faults-"));
});
afterAll(async () => {
  await Promise.all(kernels.map((kernel) => kernel.close()));
  await rm(folder, { recursive: true });
});

/** `attributes`: more of the provider's. */
async function kernelOf(path: string, timeoutMs: number, attributes = ""): Promise<Kernel> {
  const text = agentHcl(path, timeoutMs, `max_message_bytes = ${MAX_BYTES}`);
  const config = join(folder, `${kernels.length}.hcl`);
  await writeFile(config, text.replace(`source = "${path}"`, `source = "${path}"\n${attributes}`));
  const kernel = await createKernel({ config, store });
  kernels.push(kernel);
  return kernel;
}

function peer(kind: string, timeoutMs: number): Promise<Kernel> {
  return kernelOf(PEER, timeoutMs, `args = [${JSON.stringify(JSON.stringify({ kind }))}]`);
}

/** A plugin that is a shell script. */
async function script(text: string): Promise<string> {
  const path = join(folder, `script-${kernels.length}`);
  await writeFile(path, `#!/bin/sh\n${text}\n`);
  await chmod(path, 0o755);
  return path;
}

describe.each([
  { kind: "grpc", rows: GRPC, timeoutMs: PATIENT },
  { kind: "grpc", rows: SLOW, timeoutMs: HASTY },
  { kind: "wire", rows: WIRE, timeoutMs: PATIENT },
] as const)("a plugin ($kind, $timeoutMs ms)", ({ kind, rows, timeoutMs }) => {
  let kernel: Kernel;
  beforeAll(async () => {
    kernel = await peer(kind, timeoutMs);
    await kernel.start();
  });

  for (const mode of MODES) {
    it.each(rows.map(([fault, is, except]) => [fault, except?.[mode] ?? is] as const))(
      `should be judged in ${mode}: %s is %s`,
      async (turn, judgement) => {
        await expectJudged(store, mode, await dispatched(kernel, mode, { turn }), judgement, timeoutMs);
      },
    );
  }
});

describe("a plugin that dies in the middle of a call", () => {
  it.each(
    MODES.flatMap((mode) =>
      [
        ["crash", "was killed by SIGKILL"],
        ["exit", "exited with code 0"],
      ].map(([turn, how]) => [turn!, mode, how!] as const),
    ),
  )("should be PROCESS_CRASHED at once, and say how: %s in %s", async (turn, mode, how) => {
    const kernel = await peer("grpc", PATIENT);
    const result = await dispatched(kernel, mode, { turn });
    await expectJudged(store, mode, result, "crashed", PATIENT);
    expect(result.hookErrors[0]!.message).toContain(how);
    expect(result.durationMs).toBeLessThan(5_000);
    await expectJudged(store, mode, await dispatched(kernel, mode, { turn: "auto" }), "answered", PATIENT);
  });
});

describe.each(MODES)("a plugin that does not come up, in %s", (mode) => {
  it.each([
    ["a stray line on its stdout", "echo 'starting up...'; sleep 60", "starting up..."],
    ["another protocol version", "echo '1|7|unix|/tmp/x.sock|grpc'; sleep 60", "7"],
    ["net/rpc", "echo '1|1|unix|/tmp/x.sock|netrpc'; sleep 60", "netrpc"],
    ["an exit", "echo 'no such table' >&2; exit 3", "exited with code 3"],
    ["plain TCP", "echo '1|1|tcp|127.0.0.1:1|grpc'; sleep 60", "TCP"],
    ["no line in time", "sleep 60", "300 ms"],
    ["a socket where nobody listens", 'echo "1|1|unix|$TMPDIR/nobody.sock|grpc"; sleep 60', "nobody.sock"],
  ])("should be PROCESS_CRASHED: %s", async (_, text, seen) => {
    const kernel = await kernelOf(await script(text), PATIENT, "start_timeout_ms = 300");
    const result = await dispatched(kernel, mode, {});
    await expectJudged(store, mode, result, "crashed", PATIENT);
    expect(result.hookErrors[0]!.message).toContain(seen);
  });
});

describe("a plugin that is not the one that is asked for", () => {
  const described = (version: string, point: number): string =>
    Buffer.concat([Buffer.from([0x12, version.length]), Buffer.from(version), Buffer.from([0x20, point])]).toString(
      "base64",
    );

  it.each(MODES)("should fail by mode in %s, and refuse to be started beforehand", async (mode) => {
    const args = JSON.stringify(JSON.stringify({ kind: "grpc", describe: described("2.0.0", 1) }));
    const kernel = await kernelOf(PEER, PATIENT, `args = [${args}]\nversion = "~> 1.2"`);
    await expect(kernel.start()).rejects.toMatchObject({ code: "HL_SUBSCRIBER_LOAD" });
    const result = await dispatched(kernel, mode, {});
    await expectJudged(store, mode, result, "failed", PATIENT);
  });
});

describe("a request that is over the bound", () => {
  it.each(MODES)("should not be sent, and fail by mode in %s", async (mode) => {
    const kernel = await peer("grpc", PATIENT);
    const padding = "x".repeat(MAX_BYTES);
    const inputs = {
      observe: { sessionStart: { ...INPUTS["session-start"].sessionStart, profile: padding } },
      transform: { preModelCall: { messages: [], model: { provider: padding, id: "" } } },
      veto: { preToolCall: { call: { id: padding } } },
    };
    const result = await kernel.dispatch(inputs[mode]);
    await expectJudged(store, mode, result, "failed", PATIENT);
    expect(result.hookErrors[0]!.message).toContain(String(MAX_BYTES));
  });
});

describe("a plugin whose file goes away", () => {
  it("should fail its calls once it has to be started again", async () => {
    const home = join(folder, "gone");
    await mkdir(home);
    const path = join(home, "plugin");
    await writeFile(path, `#!/bin/sh\nexec ${PEER} '{"kind":"grpc"}'\n`, { mode: 0o755 });
    const kernel = await kernelOf(path, PATIENT);
    await expectJudged(store, "veto", await dispatched(kernel, "veto", { turn: "crash" }), "crashed", PATIENT);
    await rm(path);
    const result = await dispatched(kernel, "veto", {});
    await expectJudged(store, "veto", result, "crashed", PATIENT);
    expect(result.hookErrors[0]!.message).toContain("there is no file");
  });
});
