// Starts plugins as it is told over IPC, and holds on to them until it is killed.
import { readdirSync } from "node:fs";
import { createKernel } from "#src/dispatch/kernel.js";
import { KERNEL_COOKIE } from "#src/goplugin/protocol.js";
import { payloadFromView } from "#src/payload/payload.js";
import { startPlugin } from "#src/subscribers/plugin/start.js";

async function start({ path, args, autoMtls }) {
  const launch = { args, env: [], startTimeoutMs: 20_000, autoMtls };
  const started = await startPlugin(
    {
      provider: {
        name: "peer",
        sourceText: path,
        source: { kind: "plugin", path, launch },
        sensitive: [],
        place: { file: "agent.hcl", line: 1, col: 1 },
      },
      path,
      args,
      environment: { PATH: process.env.PATH },
      cookie: KERNEL_COOKIE,
      protocolVersion: 1,
      autoMtls,
      startTimeoutMs: 20_000,
      maxMessageBytes: 1 << 20,
      redact: (text) => text,
      log: () => {},
    },
    { signal: new AbortController().signal },
  );
  if (!started.ok) throw new Error(started.message);
  return started.life;
}

const payload = payloadFromView({ preToolCall: { call: { id: "c-1", toolName: "read_file" } } });

async function round(plugin) {
  const life = await start(plugin);
  const answer = await life.invoke({
    dispatchId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    point: "pre-tool-call",
    mode: "veto",
    payload,
    signal: new AbortController().signal,
    onAbort: () => {},
    timeoutMs: 10_000,
    remainingMs: () => 10_000,
  });
  if (answer.class !== "allow") throw new Error(JSON.stringify(answer));
  await life.close();
}

const descriptors = () => readdirSync("/proc/self/fd").length;

async function follow(order) {
  if (order.kernel !== undefined) {
    const kernel = await createKernel({ config: order.kernel, store: "memory:" });
    await kernel.start();
    return kernel.warnings;
  }
  if (order.start !== undefined) {
    const lives = await Promise.all(order.start.map(start));
    return lives.map(({ pid }) => pid);
  }
  const [first, ...others] = order.rounds;
  await round(first);
  const before = descriptors();
  for (const plugin of others) await round(plugin);
  return { descriptors: { before, after: descriptors() } };
}

process.on("message", (order) => {
  follow(order).then(
    (value) => process.send({ value }),
    (error) => process.send({ error: error.stack }),
  );
});
