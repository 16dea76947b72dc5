// Plugins: from the spawn to the first answered hook, and one hook call beside a bare gRPC call.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { createKernel, loadConfig, payloadFromView } from "hookledger";
import { encodeDispatchRequest } from "#src/payload/admission.js";
import { loadProviders } from "#src/subscribers/load.js";
import { folder, toolCall } from "./fixtures.mjs";
import { heading, interleaved, percentile, row } from "./measure.mjs";

const PATH = "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook";
const NODE_PLUGIN = fileURLToPath(new URL("./plugin-allow.mjs", import.meta.url));
const BARE = fileURLToPath(new URL("./bare-node.mjs", import.meta.url));
const GO = fileURLToPath(new URL("../node_modules/.cache/hookledger-goplugin/", import.meta.url));

export async function plugins() {
  const path = folder();
  const go = goPlugin();
  if (go === null) console.log("\nno Go plugin is measured: npm run test:interop builds it");
  await starting(path, go);
  await calling(path, go);
}

async function starting(path, go) {
  heading(
    "A plugin, from its spawn to its first answered hook",
    "one dispatch of a kernel that has started nothing, 1 veto, recorded in memory; median of 15, in turn, each with a process of its own",
    "reading the configuration, the first use of a cold file system cache, plugins that do something when they start",
  );
  const subjects = [
    { name: "bare node, imports grpc-js and protobufjs", run: bareNode },
    await started("Node plugin", path, NODE_PLUGIN, "off"),
    await started("Node plugin, AutoMTLS", path, NODE_PLUGIN, "require"),
    ...(go === null
      ? []
      : [await started("Go plugin", path, go, "off"), await started("Go plugin, AutoMTLS", path, go, "require")]),
  ];
  const samples = new Map(subjects.map(({ name }) => [name, []]));
  for (let round = 0; round < 16; round++) {
    for (const { name, run } of subjects) {
      const ms = await run();
      if (round > 0) samples.get(name).push(ms);
    }
  }
  const bare = percentile(samples.get("bare node, imports grpc-js and protobufjs"), 50);
  const targets = new Map([
    ["Node plugin", (ms) => `${(ms / bare).toFixed(2)} × the bare node, target ≤ 2 ×`],
    ["Node plugin, AutoMTLS", (ms) => `${(ms / bare).toFixed(2)} × the bare node`],
    ["Go plugin", () => "target ≤ 100 ms"],
  ]);
  for (const [name, values] of samples) {
    const ms = percentile(values, 50);
    row(name, `${ms.toFixed(0)} ms`, targets.get(name)?.(ms) ?? "");
  }
}

/** Spawned until it has ended. */
async function bareNode() {
  const begun = performance.now();
  await once(spawn(process.execPath, [BARE], { stdio: "ignore" }), "exit");
  return performance.now() - begun;
}

async function started(name, path, source, autoMtls) {
  const config = await configOf(path, source, autoMtls);
  const run = async () => {
    const kernel = await createKernel({ config, store: "memory:" });
    const begun = performance.now();
    const { allowed } = await kernel.dispatch(toolCall);
    const ms = performance.now() - begun;
    await kernel.close();
    if (!allowed) throw new Error(`${name} did not allow`);
    return ms;
  };
  return { name, run };
}

async function calling(path, go) {
  heading(
    "A hook call through a plugin",
    "one call of a subscriber until its answer is admitted, beside a bare grpc-js unary call of the same bytes with the same deadline to a bare grpc-js server, on unix sockets, in turn",
    "recording, concurrent calls, large payloads",
  );
  const socket = join(path, "bare.sock");
  const peer = fork(new URL("./grpc-peer.mjs", import.meta.url), [socket]);
  await once(peer, "message");
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), { "grpc.enable_retries": 0 });
  const payload = payloadFromView(toolCall);
  const request = Buffer.from(encodeDispatchRequest(payload, "veto", undefined));
  const subjects = [
    { name: "bare grpc-js call", run: () => rawCall(client, request) },
    await called("Node plugin", path, NODE_PLUGIN, "off", payload),
    await called("Node plugin, AutoMTLS", path, NODE_PLUGIN, "require", payload),
    ...(go === null ? [] : [await called("Go plugin", path, go, "off", payload)]),
  ];
  const latencies = await interleaved(subjects, { calls: 3_000, warmUp: 1_000 });
  for (const { close } of subjects) await close?.();
  client.close();
  peer.kill();
  const raw = percentile(latencies.get("bare grpc-js call"), 50);
  for (const [name, values] of latencies) {
    const p50 = percentile(values, 50);
    const ratio = name === "bare grpc-js call" ? "" : `${(p50 / raw).toFixed(2)} × the bare call, `;
    const target = name === "Node plugin" || name === "Go plugin" ? "target ≤ 1.4 ×, " : "";
    row(name, `${(p50 * 1000).toFixed(0)} µs`, `${ratio}${target}p99 ${(percentile(values, 99) * 1000).toFixed(0)} µs`);
  }
}

async function called(name, path, source, autoMtls, payload) {
  const providers = await loadProviders(await configOf(path, source, autoMtls), { env: process.env, log: () => {} });
  const { transport } = await providers.byName.get("gate").ready();
  const run = async () => {
    const begun = performance.now();
    const answer = await transport.invoke({
      dispatchId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
      point: "pre-tool-call",
      mode: "veto",
      payload,
      subscriptionId: undefined,
      session: "session-1",
      turn: undefined,
      traceparent: undefined,
      signal: NEVER,
      onAbort: () => {},
      timeoutMs: 5000,
      remainingMs: () => 5000 - (performance.now() - begun),
    });
    if (answer.class !== "allow") throw new Error(`${name}: ${JSON.stringify(answer)}`);
  };
  return { name, run, close: providers.close };
}

const NEVER = new AbortController().signal;

function rawCall(client, request) {
  const same = (value) => value;
  const deadline = Date.now() + 5000;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(PATH, same, same, request, new Metadata(), { deadline }, (error, answer) =>
      error ? reject(error) : resolve(answer),
    );
  });
}

async function configOf(path, source, autoMtls) {
  const file = join(path, "plugin.hcl");
  writeFileSync(
    file,
    `required_providers {
  gate = { source = "${source}", auto_mtls = "${autoMtls}" }
}
hook "pre-tool-call" {
  provider = "gate"
  mode     = "veto"
}
`,
  );
  const loaded = await loadConfig(file);
  if (!loaded.ok) throw new Error(loaded.errors[0].message);
  return loaded.config;
}

/** The newest that `npm run test:interop` has built, or null. */
function goPlugin() {
  if (!existsSync(GO)) return null;
  const built = readdirSync(GO)
    .map((name) => join(GO, name, "peerplugin"))
    .filter((file) => existsSync(file))
    .sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  return built[0] ?? null;
}
