import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKernel, type Kernel, type KernelOptions } from "#src/dispatch/kernel.js";
import { openMemoryStore } from "#src/store/memory.js";
import { recordedIn } from "../support/kernels.js";
import { pidsOf } from "../support/plugin-load.js";
import { temporaryFolder } from "../support/store-fixtures.js";
import { INPUTS } from "../support/subscriber-calls.js";

const PEER = fileURLToPath(new URL("../support/plugin-peer.mjs", import.meta.url));
const MARK = `kernel-plugins-${process.pid}`;

const store = openMemoryStore();
let folder: ReturnType<typeof temporaryFolder>;
const kernels: Kernel[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await Promise.all(kernels.splice(0).map((kernel) => kernel.close()));
  folder.remove();
  expect(pidsOf(MARK)).toEqual([]);
});

/** PluginInfo: name, version and the points by number. */
function described(version: string, ...points: readonly number[]): string {
  const text = Buffer.from(version);
  return Buffer.concat([Buffer.from([0x12, text.length]), text, ...points.map((n) => Buffer.from([0x20, n]))]).toString(
    "base64",
  );
}

function executable(name: string, text: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  chmodSync(path, 0o755);
  return path;
}

/** A shell script that becomes the peer. */
function peer(name: string, options: object = {}): string {
  const json = JSON.stringify({ kind: "grpc", mark: MARK, ...options });
  return executable(name, `#!/bin/sh\nexec ${PEER} '${json}'\n`);
}

async function kernelWith(
  providers: Readonly<Record<string, string>>,
  hooks: readonly (readonly [point: string, provider: string, mode: string])[],
  options: Partial<KernelOptions> & { readonly more?: string } = {},
): Promise<Kernel> {
  const entries = Object.entries(providers).map(([name, value]) => `  ${name} = ${value}\n`);
  const blocks = hooks.map(
    ([point, provider, mode]) => `hook "${point}" {\n  provider = "${provider}"\n  mode = "${mode}"\n}\n`,
  );
  const { more = "", ...kernelOptions } = options;
  const config = executable("agent.hcl", `required_providers {\n${entries.join("")}}\n${blocks.join("")}${more}`);
  const kernel = await createKernel({ config, store, ...kernelOptions });
  kernels.push(kernel);
  return kernel;
}

const ASK = INPUTS["pre-tool-call"];
const GATE = [["pre-tool-call", "gate", "veto"]] as const;

async function producerIn(dispatchId: string): Promise<object | undefined> {
  const [started] = (await recordedIn(store, dispatchId)).events;
  return started?.type === "started" ? started.subscribers[0]?.producer : undefined;
}

describe("plugins of a kernel", () => {
  it("should be started by the first dispatch that needs them, and not before", async () => {
    peer("gate");
    peer("other");
    const kernel = await kernelWith({ gate: '{ source = "./gate" }', other: '{ source = "./other" }' }, [
      ...GATE,
      ["session-end", "other", "observe"],
    ]);
    expect(pidsOf(MARK)).toHaveLength(0);
    expect(await kernel.dispatch(ASK)).toMatchObject({ allowed: true });
    expect(pidsOf(MARK)).toHaveLength(1);
    expect(await kernel.dispatch(ASK)).toMatchObject({ allowed: true });
    expect(pidsOf(MARK)).toHaveLength(1);
  });

  it("should be one process a provider, however many dispatches and hooks need it at once", async () => {
    peer("gate");
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, [...GATE, ["session-start", "gate", "observe"]]);
    const results = await Promise.all(
      Array.from({ length: 64 }, (_, i) => kernel.dispatch(i % 2 === 0 ? ASK : INPUTS["session-start"])),
    );
    expect(results.every(({ allowed }) => allowed)).toBe(true);
    expect(pidsOf(MARK)).toHaveLength(1);
  });

  it("should be started beforehand by start(), those of the points that are asked for", async () => {
    peer("gate");
    peer("other");
    const kernel = await kernelWith({ gate: '{ source = "./gate" }', other: '{ source = "./other" }' }, [
      ...GATE,
      ["session-end", "other", "observe"],
    ]);
    await kernel.start({ points: ["pre-tool-call"] });
    expect(pidsOf(MARK)).toHaveLength(1);
    await kernel.start();
    expect(pidsOf(MARK)).toHaveLength(2);
    expect(kernel.warnings).toEqual([]);
  });

  it("should be named in the record with version and digest of the file", async () => {
    const path = peer("gate", { describe: described("1.4.2", 4) });
    const kernel = await kernelWith({ gate: '{ source = "./gate", version = "~> 1.2" }' }, GATE);
    const { dispatchId } = await kernel.dispatch(ASK);
    const sum = execFileSync("sha256sum", [path], { encoding: "utf8" }).slice(0, 64);
    expect(await producerIn(dispatchId)).toEqual({
      name: "gate",
      source: "./gate",
      version: "1.4.2",
      digest: `sha256:${sum}`,
    });
  });

  it("should be named anew when another file answers after a crash", async () => {
    const path = peer("gate", { describe: described("1.4.2", 4) });
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE);
    const first = await kernel.dispatch(ASK, { turn: "crash" });
    expect(first).toMatchObject({ decision: "deny", hookErrors: [{ category: "PROCESS_CRASHED" }] });
    renameSync(peer("newer", { describe: described("1.5.0", 4) }), path);
    const second = await kernel.dispatch(ASK);
    expect(second).toMatchObject({ allowed: true });
    const [before, after] = [await producerIn(first.dispatchId), await producerIn(second.dispatchId)];
    expect(before).toMatchObject({ version: "1.4.2" });
    expect(after).toMatchObject({ version: "1.5.0" });
    expect(after).not.toMatchObject({ digest: (before as { digest: string }).digest });
  });

  it("should be told in their environment who they are, with what they said of themselves the last time", async () => {
    const path = executable("gate", "");
    const seen = join(folder.path, "seen");
    const json = JSON.stringify({ kind: "grpc", mark: MARK, describe: described("1.4.2", 4) });
    writeFileSync(path, `#!/bin/sh\necho "$OTEL_RESOURCE_ATTRIBUTES" >> ${seen}\nexec ${PEER} '${json}'\n`);
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE);
    await kernel.dispatch(ASK, { turn: "crash" });
    await kernel.dispatch(ASK);
    expect(readFileSync(seen, "utf8").split("\n")).toEqual([
      "pluggableharness.producer.name=gate",
      "pluggableharness.producer.name=gate,pluggableharness.producer.version=1.4.2",
      "",
    ]);
  });

  it.each([
    ["another version", described("2.0.0"), 'the peer has version "2.0.0", and ~> 1.2 is required'],
    ["no version", described(""), "the peer has no version, and ~> 1.2 is required"],
    ["other points", described("1.2.3", 1), "the peer does not support pre-tool-call"],
  ])(
    "should be refused by start() when they have %s, and deny what is dispatched all the same",
    async (_, describe, why) => {
      peer("gate", { describe });
      const kernel = await kernelWith({ gate: '{ source = "./gate", version = "~> 1.2" }' }, GATE);
      await expect(kernel.start()).rejects.toMatchObject({
        code: "HL_SUBSCRIBER_LOAD",
        message: expect.stringContaining(why),
        place: { line: 2 },
      });
      expect(pidsOf(MARK)).toHaveLength(0);
      expect(await kernel.dispatch(ASK)).toMatchObject({
        decision: "deny",
        allowed: false,
        hookErrors: [{ category: "VETO_FAILED", message: expect.stringContaining(why) }],
      });
    },
  );

  it("should be taken as they are, with a warning, when they do not tell a version that is asked for", async () => {
    peer("gate");
    const kernel = await kernelWith({ gate: '{ source = "./gate", version = "~> 1.2" }' }, GATE);
    await kernel.start();
    expect(kernel.warnings).toEqual([expect.stringContaining("~> 1.2 is not checked")]);
    expect(await kernel.dispatch(ASK)).toMatchObject({ allowed: true });
  });

  it("should be a warning of start() when they do not come up, told once, and deny", async () => {
    executable("gate", "#!/bin/sh\necho no database >&2\nexit 3\n");
    const logged: string[] = [];
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE, {
      log: ({ level, message }) => logged.push(`${level}: ${message}`),
    });
    await kernel.start();
    expect(logged.filter((line) => line.startsWith("warn"))).toEqual([]);
    expect(kernel.warnings).toEqual([expect.stringMatching(/exited with code 3.*until it runs, its hooks fail/s)]);
    expect(await kernel.dispatch(ASK)).toMatchObject({
      decision: "deny",
      hookErrors: [{ category: "PROCESS_CRASHED", message: expect.stringContaining("exited with code 3") }],
    });
  });

  it("should be given up after the bound, until start() is called", async () => {
    const path = executable("gate", "#!/bin/sh\necho again >> tries\nexit 3\n");
    const tries = join(folder.path, "tries");
    writeFileSync(path, `#!/bin/sh\necho again >> ${tries}\nexit 3\n`);
    const restart = { firstWaitMs: 0, longestWaitMs: 0, bound: 3, goodRunMs: 1000 };
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE, { restart });
    for (let i = 0; i < 5; i++) expect(await kernel.dispatch(ASK)).toMatchObject({ decision: "deny" });
    expect(readFileSync(tries, "utf8").trim().split("\n")).toHaveLength(3);
    const { hookErrors } = await kernel.dispatch(ASK);
    expect(hookErrors[0]?.message).toContain("given up after 3 failures in a row");
    copyFileSync(peer("mended"), path);
    await kernel.start();
    expect(await kernel.dispatch(ASK)).toMatchObject({ allowed: true });
  });

  it("should not keep a caller waiting that gives up while they start", async () => {
    executable("gate", "#!/bin/sh\nsleep 60\n");
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE);
    const abort = new AbortController();
    const dispatched = kernel.dispatch(ASK, { signal: abort.signal });
    abort.abort();
    const result = await dispatched;
    expect(result).toMatchObject({ status: "aborted", abortCause: "cancelled", allowed: false });
    expect((await recordedIn(store, result.dispatchId)).told).toEqual(["started", "aborted cancelled"]);
  });

  it("should be reached where they listen when somebody else has started them, and outlive the kernel", async () => {
    const { Peer } = await import("../support/subscriber-peer.js");
    const running = await Peer.start({ listen: join(folder.path, "debug.sock"), describe: described("0.0.1", 4) });
    const HOOKLEDGER_REATTACH_PROVIDERS = JSON.stringify({
      gate: {
        Protocol: "grpc",
        ProtocolVersion: 1,
        Pid: 1,
        Test: true,
        Addr: { Network: "unix", String: running.target },
      },
    });
    const attached = { env: { HOOKLEDGER_REATTACH_PROVIDERS } };
    for (let i = 0; i < 2; i++) {
      const kernel = await kernelWith({ gate: '{ source = "./not-built-yet" }' }, GATE, attached);
      expect(kernel.warnings).toEqual([
        expect.stringContaining('"gate" is asked where HOOKLEDGER_REATTACH_PROVIDERS says'),
      ]);
      const result = await kernel.dispatch(ASK);
      expect(result).toMatchObject({ allowed: true });
      expect(await producerIn(result.dispatchId)).toEqual({
        name: "gate",
        source: `./not-built-yet, reattached to unix:${running.target}`,
        version: "0.0.1",
      });
      await kernel.close();
    }
    await running.stop();
  });

  it("should be all that the variable may replace: a gate of another kind stays as it is", async () => {
    executable("gate.mjs", 'export default { "pre-tool-call": { veto: () => "deny" } };');
    const entry = { Protocol: "grpc", Addr: { Network: "unix", String: "/run/nobody.sock" } };
    const env = { HOOKLEDGER_REATTACH_PROVIDERS: JSON.stringify({ gate: entry }) };
    const kernel = await kernelWith({ gate: '{ source = "module:./gate.mjs" }' }, GATE, { env });
    expect(kernel.warnings).toEqual([expect.stringContaining('names "gate", which is no plugin')]);
    expect(await kernel.dispatch(ASK)).toMatchObject({ decision: "deny", hookErrors: [] });
  });

  it("should be a warning when the variable of somebody else's names a provider that nobody asks", async () => {
    peer("gate");
    const entry = { Protocol: "grpc", Addr: { Network: "unix", String: "/run/nobody.sock" } };
    const env = { HOOKLEDGER_REATTACH_PROVIDERS: JSON.stringify({ gait: entry }) };
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE, { env });
    expect(kernel.warnings).toEqual([expect.stringContaining('names "gait"')]);
  });

  it("should be closed with the kernel, also while they are started", async () => {
    executable("gate", "#!/bin/sh\nsleep 60\n");
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE);
    const abort = new AbortController();
    const dispatched = kernel.dispatch(ASK, { signal: abort.signal });
    abort.abort();
    await dispatched;
    const begun = performance.now();
    await kernel.close();
    // Far less than the start would have had.
    expect(performance.now() - begun).toBeLessThan(5_000);
    await expect(kernel.start()).rejects.toMatchObject({ code: "HL_KERNEL_CLOSED" });
  });
});

describe("a plugin without a say that does not come up", () => {
  it("should be waited for once, and then be started beside the dispatches", async () => {
    executable("slow", "#!/bin/sh\nsleep 60\n");
    const kernel = await kernelWith({ slow: '{ source = "./slow", start_timeout_ms = 500 }' }, [
      ["pre-tool-call", "slow", "observe"],
    ]);
    const begun = performance.now();
    const first = await kernel.dispatch(ASK);
    expect(performance.now() - begun).toBeGreaterThan(450);
    expect(first).toMatchObject({ allowed: true, hookErrors: [{ category: "PROCESS_CRASHED" }] });
    const then = performance.now();
    for (let i = 0; i < 20; i++) expect(await kernel.dispatch(ASK)).toMatchObject({ allowed: true });
    expect(performance.now() - then).toBeLessThan(450);
  });

  it("should take part again as soon as it is up", async () => {
    const path = executable("late", "#!/bin/sh\nexit 1\n");
    const restart = { firstWaitMs: 0, longestWaitMs: 0, bound: 100, goodRunMs: 1000 };
    const kernel = await kernelWith({ late: '{ source = "./late" }' }, [["pre-tool-call", "late", "observe"]], {
      restart,
    });
    expect((await kernel.dispatch(ASK)).hookErrors).toHaveLength(1);
    renameSync(peer("mended"), path);
    let failed = 1;
    while (failed > 0) {
      // Dispatches in memory leave the event loop to nobody else.
      await new Promise((resolve) => setTimeout(resolve, 1));
      failed = (await kernel.dispatch(ASK)).hookErrors.length;
    }
    expect(pidsOf(MARK)).toHaveLength(1);
  });
});

describe("a plugin that hangs", () => {
  it("should be replaced once it answers neither calls nor its health check", async () => {
    peer("gate");
    const lines: string[] = [];
    const kernel = await kernelWith({ gate: '{ source = "./gate" }' }, GATE, {
      more: "settings {\n  default_hook_timeout_ms = 100\n}\n",
      log: ({ message }) => lines.push(message),
    });
    await kernel.start();
    const [pid = 0] = pidsOf(MARK);
    process.kill(pid, "SIGSTOP");
    let verdict = await kernel.dispatch(ASK);
    while (!verdict.allowed) verdict = await kernel.dispatch(ASK);
    expect(pidsOf(MARK)).not.toContain(pid);
    expect(lines).toContainEqual(expect.stringContaining("answers neither its calls nor its health check"));
  }, 30_000);
});
