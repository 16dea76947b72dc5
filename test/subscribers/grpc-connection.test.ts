import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { payloadFromView } from "#src/payload/payload.js";
import { connectGrpc, type GrpcSubscriber } from "#src/subscribers/grpc.js";
import { authority, issue, writePems } from "../support/certificates.js";
import { call, INPUTS, provider } from "../support/subscriber-calls.js";
import { Peer } from "../support/subscriber-peer.js";

const MAX = 64 * 1024 * 1024;
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hookledger-grpc-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open: (Peer | GrpcSubscriber)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const one of open.splice(0)) await ("stop" in one ? one.stop() : one.close());
});

async function started(options: Parameters<typeof Peer.start>[0]): Promise<Peer> {
  const peer = await Peer.start(options);
  open.push(peer);
  return peer;
}

async function connected(target: string, maxMessageBytes = MAX): Promise<GrpcSubscriber> {
  const transport = target.startsWith("/") ? "unix" : "tcp";
  const source = { kind: "grpc", transport, target, insecure: false } as const;
  const subscriber = await connectGrpc(provider(source), { maxMessageBytes });
  open.push(subscriber);
  return subscriber;
}

const CRASHED = { class: "failed", error: { category: "PROCESS_CRASHED" } };

describe("a connection to a gRPC subscriber", () => {
  it("should carry the request's mode, subscription id and metadata", async () => {
    const peer = await started({ listen: join(folder, "metadata.sock") });
    const subscriber = await connected(peer.target);
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await subscriber.invoke(call("veto", { subscriptionId: "first", session: "sitzung ß", turn: "auto", traceparent }));
    await peer.until(() => peer.calls.length === 1);
    expect(peer.calls[0]).toMatchObject({
      mode: 3,
      subscriptionId: "first",
      metadata: {
        "hookledger-dispatch": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "hookledger-session": "sitzung%20%C3%9F",
        "hookledger-turn": "auto",
        traceparent,
      },
    });
  });

  it("should leave out metadata that would be over 256 bytes, and a traceparent that is none", async () => {
    const peer = await started({});
    const subscriber = await connected(peer.target);
    await subscriber.invoke(call("veto", { session: "ß".repeat(50), turn: "auto", traceparent: "00-\n" }));
    await peer.until(() => peer.calls.length === 1);
    expect(Object.keys(peer.calls[0]?.metadata ?? {})).not.toContain("hookledger-session");
    expect(Object.keys(peer.calls[0]?.metadata ?? {})).not.toContain("traceparent");
  });

  it("should crash the call of a peer that is not there, at once", async () => {
    const subscriber = await connected(join(folder, "nobody.sock"));
    expect(await subscriber.invoke(call("veto"))).toMatchObject(CRASHED);
  });

  it("should crash the call where the address refuses connections", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    await new Promise((resolve) => server.close(resolve));
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const answer = await (await connected(`127.0.0.1:${port}`)).invoke(call("veto"));
    expect(answer).toMatchObject(CRASHED);
    expect(answer.class === "failed" && answer.error.message).toMatch(/ECONNREFUSED/);
  });

  it("should crash the call where the path may not be opened, or is no socket", async () => {
    const peer = await started({ listen: join(folder, "forbidden.sock") });
    const file = join(folder, "file.sock");
    writeFileSync(file, "");
    // Root may open what nobody may.
    if (process.getuid?.() !== 0) chmodSync(peer.target, 0);
    const paths = process.getuid?.() === 0 ? [file] : [file, peer.target];
    for (const path of paths) expect(await (await connected(path)).invoke(call("veto"))).toMatchObject(CRASHED);
  });

  it("should be made again after the peer was restarted", async () => {
    const listen = join(folder, "restart.sock");
    const first = await started({ listen });
    const subscriber = await connected(listen);
    expect(await subscriber.invoke(call("veto"))).toEqual({ class: "allow" });
    await first.stop();
    expect(await subscriber.invoke(call("veto"))).toMatchObject(CRASHED);
    await started({ listen, behave: "deny" });
    await vi.waitFor(async () => expect(await subscriber.invoke(call("veto"))).toEqual({ class: "deny" }), 5_000);
  });

  it("should leave no call behind that was aborted in the turn in which it was made", async () => {
    const server = createHttp2Server();
    const streams: ServerHttp2Stream[] = [];
    server.on("stream", (stream, headers) => {
      streams.push(stream.on("error", () => {}));
      if (headers["hookledger-dispatch"] !== "HASTY") stream.respond({ ":status": 404 }, { endStream: true });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const subscriber = await connected(`127.0.0.1:${port}`);
    await subscriber.invoke(call("veto"));
    const hasty = call("veto", { dispatchId: "HASTY" });
    const answer = subscriber.invoke(hasty);
    hasty.abort();
    expect(await answer).toMatchObject({ class: "failed", error: { category: "VETO_FAILED" } });
    // What was sent before this call has arrived before it.
    await subscriber.invoke(call("veto"));
    await vi.waitFor(() => expect(streams.every((stream) => stream.closed)).toBe(true), 5_000);
    await subscriber.close();
    server.close();
  });

  it("should be one for all calls of a provider", async () => {
    const peer = await started({});
    const subscriber = await connected(peer.target);
    const answers = await Promise.all(Array.from({ length: 50 }, () => subscriber.invoke(call("veto"))));
    expect(answers).toEqual(Array.from({ length: 50 }, () => ({ class: "allow" })));
  });

  it("should ignore the proxy variables", async () => {
    let proxied = 0;
    const proxy = createServer((socket) => {
      proxied += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = proxy.address();
    const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
    for (const name of ["grpc_proxy", "https_proxy", "http_proxy"]) vi.stubEnv(name, url);
    for (const name of ["no_grpc_proxy", "no_proxy"]) vi.stubEnv(name, "");
    const peer = await started({});
    expect(await (await connected(peer.target)).invoke(call("veto"))).toEqual({ class: "allow" });
    expect(proxied).toBe(0);
    await new Promise((resolve) => proxy.close(resolve));
  });

  it("should carry messages of many megabytes both ways", async () => {
    const peer = await started({ listen: join(folder, "large.sock") });
    const subscriber = await connected(peer.target);
    const text = "m".repeat(16 * 1024 * 1024);
    const messages = [{ role: "ROLE_USER", content: [{ text: { text } }] }] as const;
    const payload = payloadFromView({ preModelCall: { ...INPUTS["pre-model-call"].preModelCall, messages } });
    const answer = await subscriber.invoke(call("transform", { payload, timeoutMs: 30_000 }));
    expect(answer.class).toBe("transformed");
    expect(answer.class === "transformed" && Buffer.compare(answer.payload.bytes, payload.bytes)).toBe(0);
  });

  it("should not send a request over the bound", async () => {
    const peer = await started({});
    const subscriber = await connected(peer.target, 64);
    const payload = payloadFromView({ sessionStart: { profile: "p".repeat(100) } });
    const answer = await subscriber.invoke(call("observe", { payload }));
    expect(answer).toMatchObject({ class: "failed", error: { category: "UNKNOWN" } });
    expect(peer.calls).toEqual([]);
  });
});

describe("a connection over TLS", () => {
  const ours = authority("ours");
  const theirs = authority("theirs");
  let files: Record<
    "ca" | "otherCa" | "cert" | "key" | "clientCert" | "clientKey" | "strangerCert" | "strangerKey" | "noise",
    string
  >;
  beforeAll(() => {
    const server = issue(ours, "gate.test");
    const client = issue(ours, "kernel.test");
    const stranger = issue(theirs, "kernel.test");
    files = writePems(folder, {
      ca: ours.pem,
      otherCa: theirs.pem,
      cert: server.cert,
      key: server.key,
      clientCert: client.cert,
      clientKey: client.key,
      strangerCert: stranger.cert,
      strangerKey: stranger.key,
      noise: "no certificate",
    });
  });

  async function over(target: string, tls: { ca?: string; cert?: string; key?: string; serverName?: string }) {
    const source = { kind: "grpc", transport: "tls", target, insecure: false, tls } as const;
    const subscriber = await connectGrpc(provider(source), { maxMessageBytes: MAX });
    open.push(subscriber);
    return subscriber.invoke(call("veto"));
  }

  it("should be made when authority and name are right", async () => {
    const peer = await started({ tls: { cert: files.cert, key: files.key } });
    expect(await over(peer.target, { ca: files.ca, serverName: "gate.test" })).toEqual({ class: "allow" });
  });

  it("should crash the call under another authority, another name, or without any of them", async () => {
    const peer = await started({ tls: { cert: files.cert, key: files.key } });
    for (const tls of [
      { ca: files.otherCa, serverName: "gate.test" },
      { ca: files.ca, serverName: "other.test" },
      { ca: files.ca },
      { serverName: "gate.test" },
    ]) {
      expect(await over(peer.target, tls)).toMatchObject(CRASHED);
    }
  });

  it("should show the client certificate that the peer requires, and crash without a good one", async () => {
    const peer = await started({ tls: { cert: files.cert, key: files.key, ca: files.ca } });
    const tls = { ca: files.ca, serverName: "gate.test" };
    expect(await over(peer.target, { ...tls, cert: files.clientCert, key: files.clientKey })).toEqual({
      class: "allow",
    });
    expect(await over(peer.target, { ...tls, cert: files.strangerCert, key: files.strangerKey })).toMatchObject(
      CRASHED,
    );
    expect(await over(peer.target, tls)).toMatchObject(CRASHED);
  });

  it("should crash the call when the peer speaks plain text", async () => {
    const peer = await started({});
    expect(await over(peer.target, { ca: files.ca, serverName: "gate.test" })).toMatchObject(CRASHED);
  });

  it.each([
    ["a missing file", () => ({ ca: join(folder, "nothing.pem") }), /tls\.ca cannot be read/],
    ["a file that is no PEM", () => ({ ca: files.noise, cert: files.noise, key: files.noise }), /cannot be used/],
    ["a certificate without its key", () => ({ cert: files.clientCert }), /only of use together/],
    ["a key of another certificate", () => ({ cert: files.clientCert, key: files.key }), /cannot be used/],
  ])("should refuse %s when it is loaded", async (_, tls, message) => {
    await expect(over("127.0.0.1:1", tls())).rejects.toMatchObject({
      code: "HL_SUBSCRIBER_LOAD",
      message: expect.stringMatching(message),
      place: { line: 2, col: 3 },
    });
  });
});
