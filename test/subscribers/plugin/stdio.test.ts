import { once } from "node:events";
import { createServer as createHttp2Server, type ServerHttp2Stream } from "node:http2";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Handshake } from "#src/goplugin/handshake.js";
import { createIdentity } from "#src/goplugin/identity.js";
import { encodeStdioData } from "#src/goplugin/messages.js";
import { pinTo } from "#src/subscribers/plugin/pin.js";
import { readStdio } from "#src/subscribers/plugin/stdio.js";
import { Ground, until } from "../../support/plugin-lives.js";

function handshake(address: string): Handshake {
  return { coreVersion: 1, appVersion: 1, network: "unix", address, certificate: null };
}

async function listening(server: Server): Promise<string> {
  const path = join(new Ground().folder, "s.sock");
  server.listen(path);
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return path;
}

/** What is read from a peer that answers the stream by writing so many readable messages and whatever else. */
async function readFrom(messages: number, write: (stream: ServerHttp2Stream) => void): Promise<readonly string[]> {
  const server = createHttp2Server();
  const ended = new Promise<void>((resolve) => {
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.on("close", resolve);
      stream.respond({ ":status": 200, "content-type": "application/grpc" });
      write(stream);
    });
  });
  const read: string[] = [];
  const stdio = readStdio(handshake(await listening(server)), null, ({ channel, data }) => {
    read.push(`${channel}:${Buffer.from(data).toString()}`);
  });
  onTestFinished(() => stdio.close());
  await ended;
  await until(() => read.length >= messages);
  return read;
}

function frame(message: Uint8Array, { flag = 0, size = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(size, 1);
  return Buffer.concat([prefix, message]);
}

const said = (text: string) => encodeStdioData({ channel: "stdout", data: Buffer.from(text) });

describe("readStdio", () => {
  it("should read messages however they are cut, and pass over those that it cannot read", async () => {
    const bytes = Buffer.concat([
      frame(said("a")),
      frame(Buffer.from([0xff, 0xff])),
      frame(said("b".repeat(5_000))),
      frame(Buffer.alloc(0)),
      frame(encodeStdioData({ channel: "stderr", data: Buffer.from("c") })),
    ]);
    const read = await readFrom(3, (stream) => {
      for (let at = 0; at < bytes.length; at += 97) stream.write(bytes.subarray(at, at + 97));
      stream.end();
    });
    expect(read).toEqual(["stdout:a", `stdout:${"b".repeat(5_000)}`, "stderr:c"]);
  });

  it.each([
    ["compressed", frame(said("x"), { flag: 1 })],
    ["larger than anybody prints", frame(said("x"), { size: 1024 * 1024 + 1 })],
  ])("should hang up on a message that is %s", async (_, bad) => {
    const read = await readFrom(1, (stream) => {
      stream.write(Buffer.concat([frame(said("before")), bad, frame(said("after"))]));
    });
    expect(read).toEqual(["stdout:before"]);
  });

  it("should make nothing of a peer that is absent, foreign or without TLS", async () => {
    const { folder } = new Ground();
    const pin = pinTo((await createIdentity()).der, await createIdentity());
    const foreign = createServer((socket) => socket.on("error", () => {}).end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const path = await listening(foreign);
    let closed = 0;
    foreign.on("connection", (socket) => socket.on("close", () => closed++));
    for (const way of [null, pin]) {
      readStdio(handshake(join(folder, "none.sock")), way, () => {});
      readStdio(handshake(path), way, () => {});
      readStdio(handshake(path), way, () => {}).close();
    }
    await until(() => closed >= 2);
  });
});
