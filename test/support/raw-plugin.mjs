#!/usr/bin/env node
/**
 * A go-plugin plugin without the SDK, that behaves well or badly as its first argument, JSON, says. A call does what its session
 * metadata say: `allow` (the default), `deny`, `hang`, `exit:<code>`, `kill`, `print:<text>`.
 */

import { spawn } from "node:child_process";
import { chmodSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Server, ServerCredentials, status } from "@grpc/grpc-js";
import { formatHandshake } from "#src/goplugin/handshake.js";
import { createIdentity } from "#src/goplugin/identity.js";
import { encodeHealthResponse, encodeStdioData, SERVING_STATUS } from "#src/goplugin/messages.js";
import { KERNEL_COOKIE, METHODS } from "#src/goplugin/protocol.js";

const options = JSON.parse(process.argv[2] ?? "{}");
const { env } = process;
const folder = env.TMPDIR;
const tell = (message, fields = {}) =>
  writeSync(2, `${JSON.stringify({ "@level": "info", "@message": message, ...fields })}\n`);

if (env[KERNEL_COOKIE.key] !== KERNEL_COOKIE.value) {
  writeSync(2, "This is a plugin.\n");
  process.exit(1);
}
tell("started", { pid: process.pid, environment: env, folderMode: statSync(folder).mode & 0o777 });
if (options.ignoreTerm) process.on("SIGTERM", () => {});
if (options.grandchild) {
  // It ignores SIGTERM too, and holds on to the pipes.
  const child = spawn("/bin/sh", ["-c", "trap '' TERM; while :; do sleep 5; done", "grandchild", folder], {
    stdio: "inherit",
  });
  tell("grandchild", { pid: child.pid });
}

const bytes = {
  requestDeserialize: (b) => b,
  responseSerialize: (b) => b,
  requestSerialize: (b) => b,
  responseDeserialize: (b) => b,
};
const unary = (path) => ({ path, requestStream: false, responseStream: false, ...bytes });
const server = new Server({ "grpc.max_receive_message_length": options.maxMessageBytes ?? -1 });

if (options.health !== "none") {
  server.addService(
    { check: unary(METHODS.health) },
    {
      check(_call, reply) {
        if (options.health === "hang") return;
        if (options.health === "exit") process.exit(7);
        const serving = options.health === "not-serving" ? SERVING_STATUS.notServing : SERVING_STATUS.serving;
        reply(null, Buffer.from(encodeHealthResponse(serving)));
      },
    },
  );
}
if (options.shutdown !== "none") {
  server.addService(
    { shutdown: unary(METHODS.shutdown) },
    {
      shutdown(_call, reply) {
        if (options.shutdown === "hang") return;
        reply(null, Buffer.alloc(0));
        if (options.shutdown !== "ignore") setImmediate(() => process.exit(options.exitCode ?? 0));
      },
    },
  );
}
let stdio = null;
if (options.stdio !== "none") {
  server.addService(
    { stream: { path: METHODS.stdio, requestStream: false, responseStream: true, ...bytes } },
    {
      stream(call) {
        stdio = call;
        for (const [channel, text] of options.prints ?? []) print(channel, text);
      },
    },
  );
}

function print(channel, text) {
  stdio?.write(Buffer.from(encodeStdioData({ channel, data: Buffer.from(text) })));
}

/** DispatchHookResponse with a VetoResult. */
const decision = (value) => Buffer.from([0x1a, 0x02, 0x08, value]);

server.addService(
  { dispatch: unary(METHODS.dispatchHook) },
  {
    dispatch(call, reply) {
      const [order = "allow", detail = ""] = decodeURIComponent(
        String(call.metadata.get("hookledger-session")[0] ?? "allow"),
      ).split(":");
      if (order === "hang") return tell("called");
      if (order === "kill") process.kill(process.pid, "SIGKILL");
      if (order === "exit") process.exit(Number(detail));
      if (order === "answer-and-exit") {
        reply(null, decision(1));
        // As soon as the answer is with the system.
        return setImmediate(() => setImmediate(() => process.exit(9)));
      }
      if (order === "fail") return reply({ code: status.INTERNAL, details: detail });
      if (order === "print") print("stdout", `${detail}\n`);
      reply(null, decision(order === "deny" ? 2 : 1));
    },
  },
);

const clientCertificate = env.PLUGIN_CLIENT_CERT;
const tls = options.tls ?? (clientCertificate === undefined ? "none" : "own");
const identity = tls === "none" ? null : await createIdentity();
const announced = tls === "other" ? await createIdentity() : identity;
const serverCredentials =
  identity === null || tls === "announced-only"
    ? ServerCredentials.createInsecure()
    : ServerCredentials.createSsl(
        Buffer.from(clientCertificate),
        [{ private_key: Buffer.from(identity.key), cert_chain: Buffer.from(identity.certificate) }],
        true,
      );
const network = options.network ?? "unix";
const path = join(folder, "plugin.sock");
server.bindAsync(network === "unix" ? `unix:${path}` : "127.0.0.1:0", serverCredentials, (error, port) => {
  if (error) throw error;
  if (network === "unix") chmodSync(path, 0o600);
  const line = formatHandshake({
    coreVersion: 1,
    appVersion: 1,
    network,
    address: network === "unix" ? path : `127.0.0.1:${port}`,
    certificate: announced?.der ?? null,
  });
  if (options.split) {
    writeSync(1, line.slice(0, 10));
    setTimeout(() => writeSync(1, `${line.slice(10)}\nafter the handshake\n`), 20);
  } else {
    writeSync(1, `${line}\n`);
  }
});
