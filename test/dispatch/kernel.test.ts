import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKernel, type KernelOptions } from "#src/dispatch/kernel.js";
import { Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import { openStore } from "#src/store/open.js";
import type { EventStore } from "#src/store/port.js";
import type { HookHandlers } from "#src/subscribers/handlers.js";
import { FaultyStore } from "../support/faulty-store.js";
import { INPUTS } from "../support/subscriber-calls.js";

const INPUT = INPUTS["pre-tool-call"];
let folder: string;
let names = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hookledger-kernel-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

async function config(text: string): Promise<string> {
  const own = join(folder, String(names++));
  await mkdir(own);
  await writeFile(join(own, "agent.hcl"), text);
  return join(own, "agent.hcl");
}

const HOST = `
required_providers {
  gate = { source = "host" }
  log  = { source = "host", sensitive = ["token"] }
}
provider "log" { token = env("CANARY") }
hook "pre-tool-call" {
  provider = "log"
  mode     = "observe"
}
hook "pre-tool-call" {
  provider   = "gate"
  mode       = "veto"
  timeout_ms = 300
}
`;

async function kernelOf(text: string, options: Partial<KernelOptions> = {}) {
  const store = options.store ?? openMemoryStore();
  return createKernel({ config: await config(text), env: { CANARY: "canary-4711" }, ...options, store });
}

function handlers(gate: HookHandlers, log: HookHandlers = { "pre-tool-call": { observe: () => {} } }) {
  return { gate, log };
}

const allowing: HookHandlers = { "pre-tool-call": { veto: () => "allow" } };

describe("a kernel", () => {
  it("should dispatch what agent.hcl says, in its order, and record it", async () => {
    const store = openMemoryStore();
    const order: string[] = [];
    const host = handlers(
      {
        "pre-tool-call": {
          veto() {
            order.push("gate");
            return { decision: "deny", reason: "no" };
          },
        },
      },
      { "pre-tool-call": { observe: () => order.push("log") } },
    );
    const kernel = await kernelOf(HOST, { store, host });
    const result = await kernel.dispatch(INPUT, { session: "s-1" });
    expect(result).toMatchObject({ decision: "deny", decidedBy: "gate", reason: "no", allowed: false, recorded: true });
    expect(order).toStrictEqual(["log", "gate"]);
    await kernel.close();
    const stream = (await store.readStream(`hookdispatch-${result.dispatchId}`))!;
    expect(await new Verifier(store).verify(stream)).toMatchObject({ open: false, diverged: null });
    expect(JSON.parse(stream.events[0]!.data)).toMatchObject({
      subscribers: [
        { id: "log", timeoutMs: 5000, producer: { name: "log", source: "host" } },
        { id: "gate", timeoutMs: 300 },
      ],
    });
  });

  it("should record no redacted part of a subscriber's address", async () => {
    const store = openMemoryStore();
    const text = `
required_providers {
  gate = { source = "grpc+unix:///nowhere/secret-host.sock" }
}
hook "pre-tool-call" {
  provider = "gate"
  mode     = "veto"
}
settings { redact = ["secret-[a-z]+"] }
`;
    const kernel = await kernelOf(text, { store });
    const { dispatchId, allowed } = await kernel.dispatch(INPUT);
    await kernel.close();
    expect(allowed).toBe(false);
    const stream = (await store.readStream(`hookdispatch-${dispatchId}`))!;
    expect(JSON.stringify(stream.events)).not.toContain("secret-host");
    expect(JSON.parse(stream.events[0]!.data)).toMatchObject({
      subscribers: [{ producer: { source: "grpc+unix:///nowhere/[redacted].sock" } }],
    });
  });

  it("should never let an env() value reach ledger, result, callback or log", async () => {
    const store = new FaultyStore(openMemoryStore());
    const heard: unknown[] = [];
    const host = handlers(allowing, {
      "pre-tool-call": {
        observe(_payload, ctx) {
          const token = String(ctx.config["token"]);
          ctx.log.warn(`the token is\n${token}`);
          throw new Error(`refused ${token}`);
        },
      },
    });
    const kernel = await kernelOf(HOST, {
      store,
      host,
      log: (line) => heard.push(line),
      onHookError: (error) => heard.push(error),
    });
    heard.push(await kernel.dispatch(INPUT));
    await kernel.close();
    const all = JSON.stringify([heard, store.requests.map(({ events }) => events)]);
    const blobs = store.requests.flatMap(({ blobs: own = [] }) =>
      own.map(({ bytes }) => Buffer.from(bytes).toString()),
    );
    expect(all).toContain(String.raw`the token is\\u{a}[redacted]`);
    expect(all).toContain("refused [redacted]");
    expect(all + blobs.join()).not.toContain("canary-4711");
    expect(blobs.join()).toContain("CANARY");
  });

  it("should wait for detached observers when it is closed, and refuse dispatches from then on", async () => {
    let answer: () => void = () => {};
    const text = `${HOST}settings { observe_concurrency = "detached" }`;
    const path = join(folder, "detached.db");
    const host = handlers(allowing, {
      "pre-tool-call": {
        observe: () =>
          new Promise<void>((resolve) => {
            answer = resolve;
          }),
      },
    });
    const kernel = await kernelOf(text, { store: `sqlite:${path}`, host });
    const { dispatchId, allowed } = await kernel.dispatch(INPUT);
    expect(allowed).toBe(true);
    const closed = kernel.close();
    await expect(kernel.dispatch(INPUT)).rejects.toMatchObject({ code: "HL_KERNEL_CLOSED" });
    answer();
    await closed;
    expect(await typesIn(path, dispatchId)).toStrictEqual([
      "started",
      "subscriber-invoked",
      "subscriber-invoked",
      "outcome",
      "decided",
      "outcome",
    ]);
  });

  it("should wait for a dispatch that only begins to look into the ledger when it is closed", async () => {
    const store = new FaultyStore(openMemoryStore());
    let read: () => void = () => {};
    store.beforeRead = () =>
      new Promise<void>((resolve) => {
        read = resolve;
      });
    const kernel = await kernelOf(HOST, { store, host: handlers(allowing) });
    const result = kernel.dispatch(INPUT, { id: "01ARZ3NDEKTSV4RRFFQ69G5FAV" });
    const order: string[] = [];
    const both = Promise.all([
      result.then(() => order.push("result")),
      kernel.close().then(() => order.push("closed")),
    ]);
    store.beforeRead = () => {};
    read();
    await both;
    expect(order).toStrictEqual(["result", "closed"]);
    expect((await result).allowed).toBe(true);
  });

  it("should be closed once, and leave a store that is the caller's open", async () => {
    const store = openMemoryStore();
    const kernel = await kernelOf(HOST, { store, host: handlers(allowing) });
    await Promise.all([kernel.close(), kernel.close()]);
    await expect(store.readStream("hookdispatch-01ARZ3NDEKTSV4RRFFQ69G5FAV")).resolves.toBeNull();
  });

  it("should dispatch nothing where something cannot be loaded", async () => {
    const path = join(folder, "never.db");
    await expect(kernelOf(HOST, { store: `sqlite:${path}`, host: { gate: allowing } })).rejects.toMatchObject({
      code: "HL_SUBSCRIBER_LOAD",
    });
    await expect(kernelOf('hook "pre-tool-call" {}')).rejects.toMatchObject({ code: "HL_CONFIG" });
    await expect(kernelOf(HOST, { host: handlers(allowing), env: {} })).rejects.toMatchObject({ code: "HL_ENV_UNSET" });
    await expect(openStore(`sqlite:${path}`, { mode: "read" })).rejects.toMatchObject({ code: "HL_STORE_MISSING" });
  });

  it("should refuse a chain that no start could name", async () => {
    const long = "x".repeat(900);
    const providers = Array.from(
      { length: 250 },
      (_, i) => `p${i} = { source = "grpc+unix:///run/${i}/${long}.sock" }`,
    );
    const hooks = Array.from(
      { length: 250 },
      (_, i) => `hook "pre-tool-call" {\n provider = "p${i}"\n mode = "veto"\n}`,
    );
    const text = `required_providers {\n${providers.join("\n")}\n}\n${hooks.join("\n")}`;
    await expect(kernelOf(text)).rejects.toMatchObject({ code: "HL_LIMIT_SUBSCRIBERS" });
  });

  it("should put the kernel's policy first, with the rules of agent.hcl", async () => {
    const text = `
policy "no_removal" {
  match  = { tool_name = "remove" }
  action = "deny"
  reason = "never"
}
settings { default_hook_timeout_ms = 1234 }
`;
    const store = openMemoryStore();
    const kernel = await kernelOf(text, { store });
    const items = [
      { id: "1", operationName: "remove" },
      { id: "2", operationName: "write" },
    ] as const;
    const result = await kernel.dispatch({ planReady: { plan: { turnId: "t", items } } });
    expect(result.planDecisions).toMatchObject([
      { itemId: "1", decision: "deny", decidedBy: "policy:no_removal", reason: "never" },
      { itemId: "2", decision: "ask", decidedBy: "policy:default" },
    ]);
    const [started] = (await store.readStream(`hookdispatch-${result.dispatchId}`))!.events;
    expect(JSON.parse(started!.data)).toMatchObject({
      subscribers: [{ id: "kernel:policy", mode: "policy", timeoutMs: 1234, producer: { name: "kernel" } }],
    });
    await kernel.close();
  });
});

async function typesIn(path: string, dispatchId: string): Promise<string[]> {
  const store: EventStore = await openStore(`sqlite:${path}`, { mode: "read" });
  try {
    return (await store.readStream(`hookdispatch-${dispatchId}`))!.events.map(({ type }) => type);
  } finally {
    await store.close();
  }
}
