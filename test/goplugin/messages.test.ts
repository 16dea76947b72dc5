import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";
import { describe, expect, it } from "vitest";
import {
  decodeHealthRequest,
  decodeHealthResponse,
  decodeStdioData,
  encodeHealthRequest,
  encodeHealthResponse,
  encodeStdioData,
} from "#src/goplugin/messages.js";
import { METHODS } from "#src/goplugin/protocol.js";

const root = new protobuf.Root();
for (const file of [
  "grpc/health/v1/health",
  "goplugin/controller",
  "goplugin/stdio",
  "goplugin/broker",
  "hookledger/v1/plugin_info",
]) {
  const path = fileURLToPath(new URL(`../../proto/${file}.proto`, import.meta.url));
  protobuf.parse(readFileSync(path, "utf8"), root, { keepCase: true });
}

/** As protobufjs encodes it, from our `.proto` files. */
function encoded(type: string, fields: object): Uint8Array {
  const message = root.lookupType(type);
  return new Uint8Array(message.encode(message.fromObject(fields)).finish());
}

describe("the codecs of go-plugin's messages", () => {
  it("should write and read what the files say", () => {
    const request = encoded("grpc.health.v1.HealthCheckRequest", { service: "plugin" });
    expect(new Uint8Array(encodeHealthRequest("plugin"))).toEqual(request);
    expect(decodeHealthRequest(request)).toBe("plugin");

    const response = encoded("grpc.health.v1.HealthCheckResponse", { status: "NOT_SERVING" });
    expect(new Uint8Array(encodeHealthResponse(2))).toEqual(response);
    expect(decodeHealthResponse(response)).toBe(2);

    for (const channel of ["stdout", "stderr"] as const) {
      const data = new Uint8Array(Buffer.from("hé\0"));
      const stdio = encoded("plugin.StdioData", { channel: channel.toUpperCase(), data });
      expect(new Uint8Array(encodeStdioData({ channel, data }))).toEqual(stdio);
      expect(decodeStdioData(stdio)).toEqual({ channel, data });
    }
  });

  it("should read an empty message as its defaults, and pass over what is unknown", () => {
    const unknown = [0x7a, 1, 0, 0x78, 1];
    expect(decodeHealthRequest(Uint8Array.from(unknown))).toBe("");
    expect(decodeHealthResponse(Uint8Array.from(unknown))).toBe(0);
    expect(decodeStdioData(Uint8Array.from([0x08, 1, ...unknown]))).toEqual({
      channel: "stdout",
      data: new Uint8Array(0),
    });
  });

  it("should give null for what cannot be read, and for an unknown channel", () => {
    const noise = Uint8Array.of(0x0a, 9, 1);
    expect([decodeHealthRequest(noise), decodeHealthResponse(noise), decodeStdioData(noise)]).toEqual([
      null,
      null,
      null,
    ]);
    expect(decodeStdioData(Uint8Array.of(0x08, 3))).toBeNull();
  });

  it("should have the names that the files give the methods", () => {
    const { dispatchHook: _, ...methods } = METHODS;
    for (const path of Object.values(methods)) {
      const [, service = "", method = ""] = path.split("/");
      expect(Object.keys(root.lookupService(service).methods)).toContain(method);
    }
  });
});
