// Five gRPC subscribers on a unix socket in another process, durable in SQLite, beside the bare calls.
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { createKernel, payloadFromView } from "hookledger";
import { encodeDispatchRequest } from "#src/payload/admission.js";
import { fiveHooks, folder, toolCall } from "./fixtures.mjs";
import { heading, interleaved, percentile, row } from "./measure.mjs";

const PATH = "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook";
const MODES = ["observe", "veto", "observe", "veto", "observe"];

export async function overGrpc() {
  heading(
    "5 gRPC subscribers on a unix socket, one after the other, durable in SQLite (WAL, synchronous=FULL)",
    "one dispatch until its decision is on disk, beside 5 bare grpc-js calls of the same bytes with the same deadlines, in turn",
    "networks, TLS, large payloads, concurrent dispatches; the disk is this machine's",
  );
  const path = folder();
  const socket = join(path, "five.sock");
  const peer = fork(new URL("./grpc-peer.mjs", import.meta.url), [socket]);
  await once(peer, "message");
  const kernel = await createKernel({
    config: fiveHooks(path, `grpc+unix://${socket}`),
    store: `sqlite:${join(path, "ledger.db")}`,
  });
  const client = new Client(`unix:${socket}`, credentials.createInsecure(), { "grpc.enable_retries": 0 });
  const payload = payloadFromView(toolCall);
  const requests = MODES.map((mode, i) => Buffer.from(encodeDispatchRequest(payload, mode, `h${i}`)));
  const latencies = await interleaved(
    [
      { name: "raw", run: () => rawCalls(client, requests) },
      { name: "hookledger", run: () => kernel.dispatch(toolCall, { session: "session-1" }) },
    ],
    { calls: 1_500, warmUp: 300 },
  );
  await kernel.close();
  client.close();
  peer.kill();
  const raw = latencies.get("raw");
  const ours = latencies.get("hookledger");
  for (const [name, values] of [
    ["5 bare grpc-js calls", raw],
    ["hookledger, 12 events durable", ours],
  ]) {
    row(
      name,
      `${percentile(values, 50).toFixed(2)} ms`,
      `p95 ${percentile(values, 95).toFixed(2)} ms, p99 ${percentile(values, 99).toFixed(2)} ms`,
    );
  }
  row("ratio of the medians", `${(percentile(ours, 50) / percentile(raw, 50)).toFixed(2)} ×`, "target ≤ 1.5 ×");
}

async function rawCalls(client, requests) {
  for (const request of requests) {
    await new Promise((resolve, reject) => {
      const same = (value) => value;
      const deadline = Date.now() + 5000;
      client.makeUnaryRequest(PATH, same, same, request, new Metadata(), { deadline }, (error, answer) =>
        error ? reject(error) : resolve(answer),
      );
    });
  }
}
