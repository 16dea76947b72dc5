/** A gRPC subscriber spelt by hand on HTTP/2, which can misbehave in every way that a wire allows. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { HookMode } from "#src/core/events.js";
import { type Payload, payloadFromBytes } from "#src/payload/payload.js";
import { recordsOf } from "#src/payload/records.js";
import { block, int } from "../payload/wire.js";

export type PeerRequest = { readonly mode: HookMode; readonly payload: Payload; readonly timeoutMs: number };
/** A message, a gRPC status, or what is no answer. */
export type PeerAnswer = Uint8Array | { readonly status: number } | "drop" | "hang";
/** `null`: the bytes are no valid request. */
export type Behaviour = (request: PeerRequest | null) => PeerAnswer | Promise<PeerAnswer>;

export const UNIMPLEMENTED = { status: 12 } as const;
const INVALID_ARGUMENT = { status: 3 } as const;
const MODES: readonly (HookMode | undefined)[] = [undefined, "observe", "transform", "veto"];

export const ack = () => block(1);
export const transformed = (payload: Uint8Array) => block(2, block(1, payload));
export const verdict = (decision: number) => block(3, int(1, decision));

/** What a subscriber that does nothing answers. */
export function wellBehaved(request: PeerRequest | null): PeerAnswer {
  if (request === null) return INVALID_ARGUMENT;
  const { mode, payload } = request;
  switch (mode) {
    case "observe":
      return ack();
    case "transform":
      return transformed(payload.bytes);
    case "veto":
      return verdict(1);
  }
}

/** Listens on a socket, and returns the source that names it. Only DispatchHook is there. */
export async function startPeer(behaviour: Behaviour): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-peer-"));
  const path = join(folder, "peer.sock");
  const sessions = new Set<http2.ServerHttp2Session>();
  const server = http2.createServer();
  server.on("session", (session) => {
    sessions.add(session);
    session.on("error", () => {});
    session.on("close", () => sessions.delete(session));
  });
  server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      const isHook = String(headers[":path"]).endsWith("/DispatchHook");
      const request = requestIn(Buffer.concat(chunks).subarray(5), String(headers["grpc-timeout"]));
      void Promise.resolve(isHook ? behaviour(request) : UNIMPLEMENTED).then((answer) => speak(stream, answer));
    });
  });
  server.listen(path);
  await once(server, "listening");
  onTestFinished(() => {
    for (const session of sessions) session.destroy();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return `grpc+unix://${path}`;
}

function requestIn(bytes: Uint8Array, timeout: string): PeerRequest | null {
  try {
    const records = recordsOf(bytes);
    const field = (number: number) => records.find((record) => record.number === number);
    const [payload, mode] = [field(1), field(2)];
    const known = mode === undefined ? undefined : MODES[bytes[mode.value] ?? 0];
    if (payload === undefined || known === undefined) return null;
    const timeoutMs =
      Number.parseInt(timeout, 10) * (timeout.endsWith("m") ? 1 : timeout.endsWith("u") ? 0.001 : 1_000);
    return { mode: known, payload: payloadFromBytes(bytes.subarray(payload.value, payload.end)), timeoutMs };
  } catch {
    return null;
  }
}

const GRPC = { ":status": 200, "content-type": "application/grpc" };

function speak(stream: http2.ServerHttp2Stream, answer: PeerAnswer): void {
  if (answer === "hang" || stream.destroyed) return;
  if (answer === "drop") {
    stream.session?.destroy();
    return;
  }
  if (!(answer instanceof Uint8Array)) {
    stream.respond({ ...GRPC, "grpc-status": String(answer.status) }, { endStream: true });
    return;
  }
  const head = Buffer.alloc(5);
  head.writeUInt32BE(answer.length, 1);
  stream.respond(GRPC, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(Buffer.concat([head, answer]));
}
