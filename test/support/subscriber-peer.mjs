// A subscriber in a process of its own, reached over gRPC, that misbehaves on command. Plain JavaScript: it is forked as it is.
//
//   node subscriber-peer.mjs '{"kind":"grpc","listen":"/tmp/x/peer.sock","behave":"deny"}'
//
// kind     grpc: a grpc-js server · wire: gRPC spelt by hand on HTTP/2 · http1 · raw: bytes on TCP · silent: accepts, says nothing
// listen   a socket path, or "tcp" for a free port on 127.0.0.1
// behave   what a call gets whose `hookledger-turn` names no behaviour; "auto" answers well by mode
// plugin   true: a go-plugin plugin, which says on stdout where it listens, is healthy, and ends when it is told to
// tls      { cert, key, ca? }: file names; with ca, a client certificate is required
//
// Sends { target } to its parent when it listens, and { call: {…} } for every call.

import { readFileSync, rmSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { Metadata, Server, ServerCredentials, status } from "@grpc/grpc-js";

const options = {
  kind: "grpc",
  listen: "tcp",
  behave: "auto",
  maxMessageBytes: 256 * 1024 * 1024,
  ...JSON.parse(process.argv[2] ?? "{}"),
};
const DISPATCH_HOOK = "/pluggableharness.hook.v1.HookSubscriberService/DispatchHook";
const DESCRIBE = "/hookledger.v1.PluginInfo/Describe";
const HEALTH = "/grpc.health.v1.Health/Check";
const SHUTDOWN = "/plugin.GRPCController/Shutdown";
const SERVING = Buffer.from([8, 1]);

// --- the few bytes of protobuf that answers need -------------------------------------------------------------------------

function varint(value) {
  const bytes = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return Buffer.from([...bytes, rest]);
    bytes.push((rest % 128) | 128);
  }
}
const field = (number, bytes) => Buffer.concat([varint(number * 8 + 2), varint(bytes.length), bytes]);
const ack = () => field(1, Buffer.alloc(0));
const transformed = (payload) => field(2, field(1, payload));
const verdict = (decision) => field(3, Buffer.concat([varint(8), varint(decision)]));

/** payload bytes and mode of a DispatchHookRequest */
function parseRequest(bytes) {
  const request = { payload: Buffer.alloc(0), mode: 0, subscriptionId: undefined };
  let at = 0;
  const read = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = read();
    const value = read();
    if (tag === 16) request.mode = value;
    else {
      const content = bytes.subarray(at, at + value);
      at += value;
      if (tag === 10) request.payload = content;
      if (tag === 26) request.subscriptionId = content.toString();
    }
  }
  return request;
}

const auto = (request) => ({ 1: ack, 2: () => transformed(request.payload), 3: () => verdict(1) })[request.mode]();

// --- behaviours of a well-formed gRPC server -----------------------------------------------------------------------------

const failure = (code, details) => ({ code, details });
const answers = {
  auto,
  ack,
  echo: (request) => transformed(request.payload),
  allow: () => verdict(1),
  deny: () => verdict(2),
  unspecified: () => verdict(0),
  "unknown-enum": () => verdict(77),
  empty: () => Buffer.alloc(0),
  "two-outcomes": () => Buffer.concat([verdict(1), verdict(2)]),
  "mixed-outcomes": () => Buffer.concat([ack(), verdict(1)]),
  "empty-transform": () => field(2, Buffer.alloc(0)),
  "wrong-variant": () => transformed(field(8, field(1, Buffer.from("s")))),
  // A model beside the one that is there: libraries merge the two.
  "changed-model": ({ payload }) => {
    const inner = payload.subarray(2);
    return transformed(field(2, Buffer.concat([inner, field(2, field(1, Buffer.from("evil")))])));
  },
  "added-field": ({ payload }) => transformed(Buffer.concat([payload, field(100, Buffer.from("x"))])),
  "dropped-model": () => transformed(field(2, Buffer.alloc(0))),
  "wrong-mode": (request) => (request.mode === 3 ? ack() : verdict(1)),
  garbage: () => Buffer.from("deadbeefdeadbeef", "hex"),
  "100-mib": () => Buffer.alloc(100 * 1024 * 1024),
  "resource-exhausted": () =>
    failure(status.RESOURCE_EXHAUSTED, "grpc: received message larger than max (5000000 vs. 4194304)"),
  "early-deadline": () => failure(status.DEADLINE_EXCEEDED, "gave up early"),
  internal: () => failure(status.INTERNAL, "boom"),
  unavailable: () => failure(status.UNAVAILABLE, "draining"),
  unimplemented: () => failure(status.UNIMPLEMENTED, "no such method"),
  cancelled: () => failure(status.CANCELLED, "no longer of interest"),
  exit: () => process.exit(0),
  crash: () => process.kill(process.pid, "SIGKILL"),
};
const reasons = {
  reason: "too%20many%20%E2%9C%8B",
  "bad-reason": "%E2%28%A1",
  "long-reason": "x".repeat(4000),
  "empty-reason": "no%20verdict",
};

function serveGrpc() {
  const server = new Server({
    "grpc.max_receive_message_length": options.maxMessageBytes,
    "grpc.max_send_message_length": options.maxMessageBytes,
  });
  const unary = (path) => ({
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: (bytes) => bytes,
    requestDeserialize: (bytes) => bytes,
    responseSerialize: (bytes) => bytes,
    responseDeserialize: (bytes) => bytes,
  });
  const service = { DispatchHook: unary(DISPATCH_HOOK) };
  const handlers = { DispatchHook: dispatchHook };
  if (options.describe !== undefined) {
    service.Describe = unary(DESCRIBE);
    handlers.Describe = (_call, done) => done(null, Buffer.from(options.describe, "base64"));
  }
  if (options.plugin) {
    service.Check = unary(HEALTH);
    handlers.Check = (_call, done) => done(null, SERVING);
    service.Shutdown = unary(SHUTDOWN);
    handlers.Shutdown = (_call, done) => {
      done(null, Buffer.alloc(0));
      setImmediate(() => process.exit(0));
    };
  }
  server.addService(service, handlers);
  const address = options.listen === "tcp" ? "127.0.0.1:0" : `unix:${options.listen}`;
  server.bindAsync(address, grpcCredentials(), (error, port) => {
    if (error) throw error;
    ready(options.listen === "tcp" ? `127.0.0.1:${port}` : options.listen);
  });
}

function dispatchHook(call, done) {
  const request = parseRequest(call.request);
  const metadata = Object.fromEntries(
    Object.entries(call.metadata.getMap()).map(([key, value]) => [key, String(value)]),
  );
  call.on("cancelled", () => tell({ cancelled: true }));
  tell({
    call: { mode: request.mode, subscriptionId: request.subscriptionId ?? null, metadata, size: call.request.length },
  });
  const behaviour = chosen(metadata["hookledger-turn"]);
  if (behaviour === "hang") return;
  if (behaviour in reasons) {
    const trailers = new Metadata();
    trailers.set("hookledger-reason", reasons[behaviour]);
    done(null, behaviour === "empty-reason" ? Buffer.alloc(0) : verdict(2), trailers);
    return;
  }
  if (behaviour.startsWith("late-")) {
    setTimeout(() => done(null, auto(request)), Number(behaviour.slice(5)));
    return;
  }
  const answer = answers[behaviour](request);
  if (Buffer.isBuffer(answer)) done(null, answer);
  else if (answer !== undefined && answer !== true) done(answer);
}

function chosen(turn) {
  const behaviour = turn === undefined ? "" : decodeURIComponent(turn);
  const known =
    behaviour in answers ||
    behaviour in reasons ||
    behaviour === "hang" ||
    /^late-\d+$/.test(behaviour) ||
    behaviour in wire;
  return known ? behaviour : options.behave;
}

function grpcCredentials() {
  if (options.tls === undefined) return ServerCredentials.createInsecure();
  const { cert, key, ca } = options.tls;
  return ServerCredentials.createSsl(
    ca === undefined ? null : readFileSync(ca),
    [{ cert_chain: readFileSync(cert), private_key: readFileSync(key) }],
    ca !== undefined,
  );
}

// --- behaviours below gRPC -----------------------------------------------------------------------------------------------

const GRPC = { ":status": 200, "content-type": "application/grpc" };

function frame(message, flag = 0) {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Headers, these chunks, and trailers. */
function speak(stream, headers, chunks, trailers) {
  stream.respond(headers, { waitForTrailers: trailers !== undefined });
  if (trailers !== undefined) stream.on("wantTrailers", () => stream.sendTrailers(trailers));
  for (const chunk of chunks) stream.write(chunk);
  stream.end();
}

const OK = { "grpc-status": "0" };
const wire = {
  plain: (stream) => speak(stream, GRPC, [frame(verdict(1))], OK),
  "with-format": (stream) =>
    speak(stream, { ...GRPC, "content-type": "application/grpc+proto; x=y" }, [frame(verdict(1))], OK),
  "grpc-web": (stream) => speak(stream, { ...GRPC, "content-type": "application/grpc-web" }, [frame(verdict(1))], OK),
  html: (stream) =>
    speak(stream, { ":status": 200, "content-type": "text/html" }, [Buffer.from("<html>it works</html>")]),
  json: (stream) => speak(stream, { ":status": 200, "content-type": "application/json" }, [frame(verdict(1))], OK),
  "no-content-type": (stream) => speak(stream, { ":status": 200 }, [frame(verdict(1))], OK),
  "http-500": (stream) => speak(stream, { ":status": 500, "content-type": "text/plain" }, [Buffer.from("oops")]),
  "http-500-bare": (stream) => stream.respond({ ":status": 500 }, { endStream: true, sendDate: false }),
  "http-404-bare": (stream) => stream.respond({ ":status": 404 }, { endStream: true }),
  "http-503-bare": (stream) => stream.respond({ ":status": 503 }, { endStream: true }),
  "two-messages": (stream) => speak(stream, GRPC, [frame(verdict(1)), frame(verdict(2))], OK),
  "no-message": (stream) => speak(stream, GRPC, [], OK),
  "no-status": (stream) => speak(stream, GRPC, [frame(verdict(1))]),
  "half-frame": (stream) => speak(stream, GRPC, [frame(verdict(1)).subarray(0, 7)], OK),
  "frame-of-noise": (stream) => speak(stream, GRPC, [frame(Buffer.from("ffffffffffffffffffffff", "hex"))], OK),
  "huge-length": (stream) => speak(stream, GRPC, [Buffer.from([0, 0x7f, 0xff, 0xff, 0xff, 1])], OK),
  "bad-gzip": (stream) => speak(stream, { ...GRPC, "grpc-encoding": "gzip" }, [frame(Buffer.from("not gzip"), 1)], OK),
  "compressed-identity": (stream) => speak(stream, GRPC, [frame(verdict(1), 1)], OK),
  "odd-encoding": (stream) => speak(stream, { ...GRPC, "grpc-encoding": "zstd" }, [frame(verdict(1), 1)], OK),
  "status-then-allow": (stream) =>
    speak(stream, GRPC, [frame(verdict(1))], { "grpc-status": "13", "grpc-message": "boom" }),
  "odd-status": (stream) => speak(stream, GRPC, [frame(verdict(1))], { "grpc-status": "many" }),
  "rst-internal": (stream) => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR),
  "rst-protocol": (stream) => stream.close(http2.constants.NGHTTP2_PROTOCOL_ERROR),
  "rst-cancel": (stream) => stream.close(http2.constants.NGHTTP2_CANCEL),
  "rst-refused": (stream) => stream.close(http2.constants.NGHTTP2_REFUSED_STREAM),
  "rst-calm": (stream) => stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM),
  "rst-mid-answer": (stream) => {
    stream.respond(GRPC);
    stream.write(frame(verdict(1)), () => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR));
  },
  "close-at-once": (stream) => stream.session.destroy(),
  "close-mid-answer": (stream) => {
    stream.respond(GRPC);
    stream.write(frame(verdict(1)).subarray(0, 6), () => stream.session.destroy());
  },
  "own-oversize": (stream) =>
    stream.respond(
      { ...GRPC, "grpc-status": "8", "grpc-message": "Received message larger than max (5000000 vs 4194304)" },
      { endStream: true },
    ),
};

function serveWire() {
  const server = http2.createServer();
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    tell({ call: { path: headers[":path"] } });
    if (options.plugin && headers[":path"] === HEALTH) {
      speak(stream, GRPC, [frame(SERVING)], OK);
      return;
    }
    if (
      options.plugin ? headers[":path"] !== DISPATCH_HOOK : headers[":path"] === DESCRIBE && options.behave === "auto"
    ) {
      stream.respond({ ...GRPC, "grpc-status": "12" }, { endStream: true });
      return;
    }
    stream.on("data", () => {});
    stream.on("end", () => wire[chosen(headers["hookledger-turn"])](stream));
  });
  listen(server);
}

function serveHttp1() {
  listen(http.createServer((_request, response) => response.end("HTTP/1.1 spoken here")));
}

function serveRaw() {
  listen(
    net.createServer((socket) => {
      socket.on("error", () => {});
      socket.write("SSH-2.0-not_grpc\r\n");
    }),
  );
}

function serveSilent() {
  listen(net.createServer((socket) => socket.on("error", () => {}).resume()));
}

function listen(server) {
  const done = () => {
    const address = server.address();
    ready(typeof address === "string" ? address : `127.0.0.1:${address.port}`);
  };
  if (options.listen === "tcp") server.listen(options.port ?? 0, "127.0.0.1", done);
  else server.listen(options.listen, done);
}

function ready(target) {
  if (options.plugin) process.stdout.write(`1|1|unix|${target}|grpc\n`);
  else tell({ target });
}

function tell(message) {
  if (options.plugin) return;
  if (process.connected) process.send(message);
  else if (message.target !== undefined) process.stdout.write(`${JSON.stringify(message)}\n`);
}

process.on("disconnect", () => process.exit(0));
if (options.listen !== "tcp") rmSync(options.listen, { force: true });
({ grpc: serveGrpc, wire: serveWire, http1: serveHttp1, raw: serveRaw, silent: serveSilent })[options.kind]();
