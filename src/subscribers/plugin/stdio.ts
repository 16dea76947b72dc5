/**
 * `plugin.GRPCStdio/StreamStdio`: what a plugin's program prints, where go-plugin has put pipes of its own in the place of stdout and
 * stderr. Unread, they fill up and the plugin stops.
 *
 * On a connection of its own, so that a flood of prints takes no room from calls, and on one that does not keep this process up: the
 * gRPC library holds on to every connection with an open call.
 */

import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { Handshake } from "../../goplugin/handshake.js";
import { decodeStdioData, EMPTY, type StdioData } from "../../goplugin/messages.js";
import { METHODS, TLS_NAME } from "../../goplugin/protocol.js";
import type { Pin } from "./pin.js";

/** bytes of one message; Go's side sends 1 024 at a time */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** bytes before a message: whether it is compressed, and its length */
const PREFIX_BYTES = 5;

/** Hands on what is printed until the plugin or `close` ends it. A plugin without the service is one that prints nothing. */
export function readStdio(handshake: Handshake, pin: Pin | null, take: (data: StdioData) => void): { close(): void } {
  const session = connectHttp2(`${pin === null ? "http" : "https"}://${TLS_NAME}`, {
    createConnection: () => dial(handshake, pin),
    settings: { enablePush: false },
  });
  session.on("error", () => {});
  session.unref();
  const stream = session.request({
    [constants.HTTP2_HEADER_METHOD]: "POST",
    [constants.HTTP2_HEADER_PATH]: METHODS.stdio,
    [constants.HTTP2_HEADER_CONTENT_TYPE]: "application/grpc",
    [constants.HTTP2_HEADER_TE]: "trailers",
  });
  const messages = new Messages((message) => {
    const data = decodeStdioData(message);
    if (data !== null) take(data);
  });
  stream.on("data", (chunk: Buffer) => {
    if (!messages.push(chunk)) session.destroy();
  });
  stream.on("error", () => {});
  stream.on("close", () => session.close());
  stream.end(framed(EMPTY));
  return { close: () => end(session) };
}

function dial({ network, address }: Handshake, pin: Pin | null): Socket {
  const place = network === "unix" ? { path: address } : hostPort(address);
  const socket =
    pin === null
      ? connect(place)
      : connectTls({ ...place, servername: TLS_NAME, ALPNProtocols: ["h2"], rejectUnauthorized: true, ...pin });
  return socket.unref();
}

function hostPort(address: string): { readonly host: string; readonly port: number } {
  const { hostname, port } = new URL(`tcp://${address}`);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) };
}

function end(session: ClientHttp2Session): void {
  if (!session.destroyed) session.destroy();
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.alloc(PREFIX_BYTES + message.length);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

/** gRPC's messages in a stream of bytes. */
class Messages {
  readonly #take: (message: Buffer) => void;
  #held: Buffer = Buffer.alloc(0);

  constructor(take: (message: Buffer) => void) {
    this.#take = take;
  }

  /** False for what nobody asked for: a compressed message, or one that is too large. */
  push(chunk: Buffer): boolean {
    let rest = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    while (rest.length >= PREFIX_BYTES) {
      const size = rest.readUInt32BE(1);
      if (rest[0] !== 0 || size > MAX_MESSAGE_BYTES) return false;
      if (rest.length < PREFIX_BYTES + size) break;
      this.#take(rest.subarray(PREFIX_BYTES, PREFIX_BYTES + size));
      rest = rest.subarray(PREFIX_BYTES + size);
    }
    this.#held = rest;
    return true;
  }
}
