import { once } from "node:events";
import { connect } from "node:net";
import { type Client, Metadata, status as Status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  decodeHealthResponse,
  decodeStdioData,
  EMPTY,
  encodeHealthRequest,
  SERVING_STATUS,
} from "#src/goplugin/messages.js";
import { METHODS } from "#src/goplugin/protocol.js";
import { openChannel } from "#src/subscribers/channel.js";
import { describePeer } from "#src/subscribers/plugin-info.js";
import { provider } from "../support/subscriber-calls.js";
import { act, ask, PluginProcess } from "./plugin-process.js";

let plugin: PluginProcess;
let client: Client;

beforeAll(async () => {
  plugin = new PluginProcess();
  client = await plugin.client();
});

afterAll(() => plugin.stop());

const asItIs = (bytes: Buffer): Buffer => bytes;

describe("the services of a plugin", () => {
  it("should be healthy as `plugin` and as a whole, and know no other service", async () => {
    for (const service of ["plugin", ""]) {
      const { bytes } = await ask(client, METHODS.health, encodeHealthRequest(service));
      expect(decodeHealthResponse(bytes)).toBe(SERVING_STATUS.serving);
    }
    const other = ask(client, METHODS.health, encodeHealthRequest("plugins"));
    await expect(other).rejects.toMatchObject({ code: Status.NOT_FOUND });
    const noise = ask(client, METHODS.health, Uint8Array.of(0x0a, 9));
    await expect(noise).rejects.toMatchObject({ code: Status.INVALID_ARGUMENT });
  });

  it("should tell a watcher its health", async () => {
    const watch = client.makeServerStreamRequest(
      METHODS.healthWatch,
      asItIs,
      asItIs,
      Buffer.from(encodeHealthRequest("plugin")),
    );
    watch.on("error", () => {});
    const [bytes] = await once(watch, "data");
    expect(decodeHealthResponse(bytes)).toBe(SERVING_STATUS.serving);
    watch.cancel();
  });

  it("should describe itself as kernels read it", async () => {
    const target = await plugin.address();
    const source = { kind: "grpc", transport: "unix", target, insecure: false } as const;
    const channel = openChannel(source, { maxMessageBytes: 1024 });
    await expect(describePeer(provider(source), channel, 5_000)).resolves.toEqual({
      name: "acting",
      version: "1.2.3",
      category: undefined,
      supportedHookPoints: ["pre-tool-call", "pre-model-call", "session-start"],
    });
    channel.close();
  });

  it("should hold the broker's stream open until the host ends it", async () => {
    const broker = client.makeBidiStreamRequest(METHODS.broker, asItIs, asItIs, new Metadata());
    broker.on("data", () => {});
    broker.write(Buffer.from([0x08, 1]));
    broker.end();
    const [{ code }] = await once(broker, "status");
    expect(code).toBe(Status.OK);
  });

  it("should survive a host that connects and closes, and one that sends noise", async () => {
    for (const noise of ["", "GET / HTTP/1.1\r\n\r\n", `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${"\xff".repeat(64)}`]) {
      const socket = connect(await plugin.address());
      socket.on("error", () => {});
      await once(socket, "connect");
      socket.end(noise, "latin1");
      socket.resume();
      await once(socket, "close");
    }
    await expect(act(client, "allow")).resolves.toBeDefined();
  });
});

describe("what a plugin prints", () => {
  it("should stay off the handshake's pipe, and be lines of the log", async () => {
    await act(client, "print");
    expect(JSON.parse(await plugin.line("stderr", "printed by a hook"))).toMatchObject({ "@module": "acting.stdout" });
    expect(plugin.stdout).toHaveLength(1);
    expect(plugin.stderr).toContain("printed before it serves");
  });

  it("should hold up no call where the host does not read it, and say what is lost", async () => {
    const stream = client.makeServerStreamRequest(METHODS.stdio, asItIs, asItIs, Buffer.from(EMPTY));
    await once(stream, "metadata");
    await expect(act(client, "flood")).resolves.toBeDefined();
    await expect(act(client, "allow")).resolves.toBeDefined();
    let read = 0;
    stream.on("data", (bytes: Buffer) => {
      read += decodeStdioData(bytes)?.data.length ?? 0;
    });
    const line = await plugin.line("stderr", "that were printed are lost");
    const lost = Number(/(\d+) bytes/.exec(line)?.[1]);
    await expect.poll(() => read + lost).toBe(256 * 32 * 1024);
    expect(lost).toBeGreaterThan(4 * 1024 * 1024);
    stream.cancel();
    await once(stream, "error");
  });

  it("should go to the host's stream while that is open", async () => {
    const stream = client.makeServerStreamRequest(METHODS.stdio, asItIs, asItIs, Buffer.from(EMPTY));
    let printed = "";
    stream.on("data", (bytes: Buffer) => {
      const { channel, data } = decodeStdioData(bytes) ?? {};
      printed += `${channel}:${Buffer.from(data ?? EMPTY).toString()};`;
    });
    await once(stream, "metadata");
    await act(client, "print");
    await expect.poll(() => printed).toBe("stdout:printed by a hook\n;stdout:without an end;");
    stream.cancel();
    await once(stream, "error");
    await expect
      .poll(async () => {
        await act(client, "print");
        return plugin.logged().filter((message) => message.endsWith("printed by a hook")).length;
      })
      .toBeGreaterThan(1);
  });
});
