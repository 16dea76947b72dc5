import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { attachedTo, readAttachments } from "#src/subscribers/plugin/reattach.js";
import { provider } from "../../support/subscriber-calls.js";

function read(value: unknown): ReadonlyMap<string, unknown> {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return readAttachments({ HOOKLEDGER_REATTACH_PROVIDERS: text });
}

/** As Terraform's variable has it. */
function entry(addr: object = { Network: "unix", String: "/tmp/plugin1/p.sock" }) {
  return { Protocol: "grpc", ProtocolVersion: 1, Pid: 4711, Test: true, Addr: addr };
}

describe("readAttachments", () => {
  it.each([[{}], [{ HOOKLEDGER_REATTACH_PROVIDERS: "" }]])("should find nobody in %o", (env) => {
    expect(readAttachments(env).size).toBe(0);
  });

  it("should read where each plugin listens", () => {
    const found = read({ gate: entry(), audit: entry({ Network: "tcp", String: "127.0.0.1:4000" }) });
    expect([...found]).toEqual([
      ["gate", { network: "unix", address: "/tmp/plugin1/p.sock" }],
      ["audit", { network: "tcp", address: "127.0.0.1:4000" }],
    ]);
  });

  it.each([
    ["no JSON", "{gate", "is no JSON object of plugins by provider name"],
    ["a list", [], "is no JSON object of plugins by provider name"],
    ["an entry that is none", { gate: 1 }, 'says nothing of "gate"'],
    ["net/rpc", { gate: { ...entry(), Protocol: "netrpc" } }, 'has another protocol than "grpc" for "gate"'],
    ["no address", { gate: { Protocol: "grpc" } }, 'has no Addr for "gate"'],
    ["a relative socket", { gate: entry({ Network: "unix", String: "p.sock" }) }, 'has no Addr for "gate"'],
    ["another machine", { gate: entry({ Network: "tcp", String: "10.0.0.1:80" }) }, 'has no Addr for "gate"'],
    [
      "a name that looks like this one",
      { gate: entry({ Network: "tcp", String: "localhost.evil:80" }) },
      "has no Addr",
    ],
    ["a number that is none", { gate: entry({ Network: "tcp", String: "127.0.0.999:80" }) }, "has no Addr"],
    ["a port that is none", { gate: entry({ Network: "tcp", String: "127.0.0.1:65536" }) }, "has no Addr"],
  ])("should refuse %s", (_, value, message) => {
    expect(() => read(value)).toThrow(
      expect.objectContaining({
        code: "HL_USAGE",
        message: expect.stringContaining(message),
        hint: expect.stringContaining("--debug"),
      }),
    );
  });

  it("should never throw anything else", () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        try {
          readAttachments({ HOOKLEDGER_REATTACH_PROVIDERS: text });
        } catch (error) {
          expect(error).toBeInstanceOf(HookledgerError);
        }
      }),
    );
  });
});

describe("attachedTo", () => {
  const launch = { args: [], env: [], startTimeoutMs: 1, autoMtls: "auto" } as const;

  it("should keep who the provider is, reach it where it listens, and say so where its source is told", () => {
    const gate = provider({ kind: "plugin", path: "/gate", launch }, { sourceText: "./gate", version: "~> 1.0" });
    expect(attachedTo(gate, { network: "unix", address: "/tmp/p.sock" })).toEqual({
      ...gate,
      sourceText: "./gate, reattached to unix:/tmp/p.sock",
      source: { kind: "grpc", transport: "unix", target: "/tmp/p.sock", insecure: false },
    });
  });

  it.each([
    { kind: "host" },
    { kind: "module", path: "/gate.mjs" },
    { kind: "grpc", transport: "tls", target: "gate:443", insecure: false },
  ] as const)("should put nothing in the place of $kind", (source) => {
    const gate = provider(source);
    expect(attachedTo(gate, { network: "unix", address: "/tmp/p.sock" })).toBe(gate);
  });
});
