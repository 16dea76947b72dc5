import { afterEach, describe, expect, it } from "vitest";
import { connectGrpc } from "#src/subscribers/grpc.js";
import type { PeerDescription } from "#src/subscribers/plugin-info.js";
import { provider } from "../support/subscriber-calls.js";
import { Peer, type PeerOptions } from "../support/subscriber-peer.js";

const peers: Peer[] = [];
afterEach(async () => {
  for (const peer of peers.splice(0)) await peer.stop();
});

async function described(options: PeerOptions, timeoutMs = 5_000): Promise<PeerDescription | null | "absent"> {
  const peer = await Peer.start(options);
  peers.push(peer);
  const source = { kind: "grpc", transport: "tcp", target: peer.target, insecure: false } as const;
  const subscriber = await connectGrpc(provider(source), { maxMessageBytes: 1024 });
  try {
    return await subscriber.describe(timeoutMs);
  } finally {
    await subscriber.close();
  }
}

function hex(...parts: readonly string[]): PeerOptions {
  return { describe: Buffer.from(parts.join(""), "hex").toString("base64") };
}

const NAME = "0a0467617465";
const VERSION = "1205312e342e32";

describe("what a peer says of itself", () => {
  it("should be read, with its points packed or one by one", async () => {
    const expected = {
      name: "gate",
      version: "1.4.2",
      category: "tool",
      supportedHookPoints: ["pre-tool-call", "plan-ready"],
    };
    expect(await described(hex(NAME, VERSION, "1802", "22020405"))).toEqual(expected);
    expect(await described(hex(NAME, VERSION, "1802", "2004", "2005"))).toEqual(expected);
  });

  it("should be read as far as this build knows it", async () => {
    expect(await described(hex(NAME, "18e807", "220304630a", "7a0101"))).toEqual({
      name: "gate",
      version: "",
      category: undefined,
      supportedHookPoints: ["pre-tool-call"],
    });
    expect(await described(hex(""))).toEqual({
      name: "",
      version: "",
      category: undefined,
      supportedHookPoints: [],
    });
  });

  it.each([
    ["cut off", "0a0a67"],
    ["of a name in other bytes than UTF-8's length", "0affffffff0f"],
    ["with a control character", "0a026101"],
    ["a long name", `0aac02${"61".repeat(300)}`],
    ["with groups without end", "0b".repeat(200)],
    ["with a field that reaches past its end", "2264"],
  ])("should be refused when it is nonsense: %s", async (_, bytes) => {
    await expect(described(hex(bytes))).rejects.toMatchObject({ code: "HL_SUBSCRIBER_LOAD", place: { line: 2 } });
  });

  it("should be unknown where the peer does not say, does not answer, or speaks another protocol", async () => {
    expect(await described({})).toBeNull();
    expect(await described({ kind: "silent" }, 20)).toBe("absent");
    expect(await described({ kind: "http1" })).toBe("absent");
    expect(await described({ kind: "wire", behave: "html" })).toBe("absent");
  });
});
