import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKernel, type Kernel } from "#src/dispatch/kernel.js";
import { openMemoryStore } from "#src/store/memory.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { Peer } from "../support/subscriber-peer.js";
import { GRPC, SLOW, WIRE } from "./grpc-rows.js";
import { agentHcl, dispatched, expectJudged, MODES } from "./judged.js";

/** ms */
const PATIENT = 60_000;
const HASTY = 150;
const MAX_BYTES = 1024 * 1024;

const store = openMemoryStore();
const kernels: Kernel[] = [];
const peers: Peer[] = [];
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hookledger-faults-"));
});
afterAll(async () => {
  await Promise.all(kernels.map((kernel) => kernel.close()));
  await Promise.all(peers.map((peer) => peer.stop()));
  await rm(folder, { recursive: true });
});

async function peerOf(kind: "grpc" | "wire" | "http1" | "raw" | "silent"): Promise<Peer> {
  const peer = await Peer.start({ kind, listen: join(folder, `${kind}-${peers.length}.sock`) });
  peers.push(peer);
  return peer;
}

async function kernelAt(path: string, timeoutMs: number): Promise<Kernel> {
  return kernelOf(await configFor(path, timeoutMs));
}

async function configFor(path: string, timeoutMs: number): Promise<string> {
  const config = join(folder, `${kernels.length}.hcl`);
  await writeFile(config, agentHcl(`grpc+unix://${path}`, timeoutMs, `max_message_bytes = ${MAX_BYTES}`));
  return config;
}

async function kernelOf(config: string): Promise<Kernel> {
  const kernel = await createKernel({ config, store });
  kernels.push(kernel);
  return kernel;
}

describe.each([
  { kind: "grpc", rows: GRPC, timeoutMs: PATIENT },
  { kind: "grpc", rows: SLOW, timeoutMs: HASTY },
  { kind: "wire", rows: WIRE, timeoutMs: PATIENT },
] as const)("a gRPC subscriber on a socket ($kind, $timeoutMs ms)", ({ kind, rows, timeoutMs }) => {
  let kernel: Kernel;
  beforeAll(async () => {
    kernel = await kernelAt((await peerOf(kind)).target, timeoutMs);
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

describe("a peer that dies in the middle of a call", () => {
  it.each(MODES.flatMap((mode) => ["crash", "exit"].map((turn) => [turn, mode] as const)))(
    "should be PROCESS_CRASHED: %s in %s",
    async (turn, mode) => {
      const kernel = await kernelAt((await peerOf("grpc")).target, PATIENT);
      await expectJudged(store, mode, await dispatched(kernel, mode, { turn }), "crashed", PATIENT);
    },
  );
});

describe.each(MODES)("a connection that is none, in %s", (mode) => {
  it("should be PROCESS_CRASHED where nothing listens", async () => {
    const kernel = await kernelAt(join(folder, "nobody.sock"), PATIENT);
    await expectJudged(store, mode, await dispatched(kernel, mode, {}), "crashed", PATIENT);
  });

  it("should be PROCESS_CRASHED where the file is no socket", async () => {
    const path = join(folder, "plain-file");
    await writeFile(path, "");
    await expectJudged(store, mode, await dispatched(await kernelAt(path, PATIENT), mode, {}), "crashed", PATIENT);
  });

  it("should be PROCESS_CRASHED where the socket may not be opened", async () => {
    const { path, close } = await forbidden();
    const config = await configFor(path, PATIENT);
    const result = await asNobody(async () => dispatched(await kernelOf(config), mode, {}));
    await close();
    await expectJudged(store, mode, result, "crashed", PATIENT);
    expect(result.hookErrors[0]!.message).toContain("EACCES");
  });

  it.each(["http1", "raw"] as const)(
    "should be PROCESS_CRASHED where the peer speaks something else: %s",
    async (kind) => {
      const kernel = await kernelAt((await peerOf(kind)).target, PATIENT);
      await expectJudged(store, mode, await dispatched(kernel, mode, {}), "crashed", PATIENT);
    },
  );
});

describe("a peer that accepts and says nothing", () => {
  it("should be a timeout in each mode", async () => {
    const kernel = await kernelAt((await peerOf("silent")).target, HASTY);
    for (const mode of MODES) {
      await expectJudged(store, mode, await dispatched(kernel, mode, {}), "timed out", HASTY);
    }
  });
});

describe("a request that is over the bound", () => {
  it.each(MODES)("should not be sent, and fail by mode in %s", async (mode) => {
    const peer = await peerOf("grpc");
    const kernel = await kernelAt(peer.target, PATIENT);
    const padding = "x".repeat(MAX_BYTES);
    const inputs = {
      observe: { sessionStart: { ...INPUTS["session-start"].sessionStart, profile: padding } },
      transform: { preModelCall: { messages: [], model: { provider: padding, id: "" } } },
      veto: { preToolCall: { call: { id: padding } } },
    };
    const result = await kernel.dispatch(inputs[mode]);
    await expectJudged(store, mode, result, "failed", PATIENT);
    expect(result.hookErrors[0]!.message).toContain(String(MAX_BYTES));
    expect(peer.calls).toHaveLength(0);
  });
});

describe("a late answer", () => {
  it("should find its call cancelled, and change nothing", async () => {
    const peer = await peerOf("grpc");
    const kernel = await kernelAt(peer.target, HASTY);
    const { dispatchId } = await dispatched(kernel, "veto", { turn: "hang" });
    await peer.until(() => peer.cancelled === 1);
    const stream = await store.readStream(`hookdispatch-${dispatchId}`);
    expect(stream?.events).toHaveLength(4);
  });
});

/** A socket in whose file nobody may write. */
async function forbidden(): Promise<{ path: string; close: () => Promise<void> }> {
  const path = join(folder, `forbidden-${kernels.length}.sock`);
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  await chmod(path, 0o000);
  await chmod(folder, 0o755);
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()));
  return { path, close };
}

/** Permissions do not bind root: it connects as somebody whom they do. */
async function asNobody<T>(act: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return act();
  process.seteuid?.(65_534);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}
