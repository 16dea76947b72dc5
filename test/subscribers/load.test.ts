import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Config, EnvReference, type Hook, type Provider, type Source } from "#src/config/types.js";
import type { ErrorCode } from "#src/errors.js";
import type { HookContext, HookHandlers } from "#src/subscribers/handlers.js";
import { type LoadedProviders, type LoadParts, loadProviders } from "#src/subscribers/load.js";
import { call, provider } from "../support/subscriber-calls.js";
import { Peer } from "../support/subscriber-peer.js";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "hookledger-load-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

const LAUNCH = { args: [], env: [], startTimeoutMs: 10_000, autoMtls: "auto" } as const;

function config(providers: readonly Provider[], hooks: readonly Partial<Hook>[]): Config {
  return {
    files: ["agent.hcl"],
    providers: new Map(providers.map((one) => [one.name, one])),
    hooks: hooks.map((hook, index) => ({
      point: "pre-tool-call",
      provider: "sub",
      mode: "veto",
      shadow: false,
      place: { file: "agent.hcl", line: 20 + index, col: 1 },
      ...hook,
    })),
    policy: [],
    profiles: new Map(),
    settings: {
      defaultHookTimeoutMs: 5_000,
      observeConcurrency: "concurrent",
      recording: "barrier",
      onStoreFailure: "abort",
      strict: false,
      redact: [],
      maxMessageBytes: 1024 * 1024,
      kept: {},
    },
    canonical: "{}",
  };
}

async function load(loaded: Config, parts: Partial<LoadParts> = {}): Promise<LoadedProviders> {
  const providers = await loadProviders(loaded, { env: {}, log: () => {}, ...parts });
  open.push(providers);
  return providers;
}

function plugin(path: string): Source {
  return { kind: "plugin", path, launch: LAUNCH };
}

function grpc(target: string): Source {
  return { kind: "grpc", transport: "tcp", target, insecure: false };
}

async function peerSaying(bytes?: string): Promise<Peer> {
  const peer = await Peer.start(bytes === undefined ? {} : { describe: Buffer.from(bytes, "hex").toString("base64") });
  open.push({ close: () => peer.stop() });
  return peer;
}

const ALLOW: HookHandlers = { "pre-tool-call": { veto: () => "allow" } };

describe("loading the providers of a configuration", () => {
  it("should load every provider that a hook names, and no other", async () => {
    const path = join(folder, "gate.mjs");
    writeFileSync(path, "export default { 'pre-tool-call': { veto: () => 'deny' } }");
    const peer = await peerSaying("0a04676174651205312e342e321802");
    const unused = join(folder, "unused.mjs");
    writeFileSync(unused, "globalThis.unusedWasLoaded = true; export default {}");
    const providers = await load(
      config(
        [
          provider({ kind: "module", path }, { name: "gate", sourceText: "module:./gate.mjs" }),
          provider({ kind: "host" }, { name: "sub", sourceText: "host" }),
          provider(grpc(peer.target), { name: "remote", sourceText: "grpc://there", version: "~> 1.2" }),
          provider({ kind: "module", path: unused }, { name: "unused" }),
        ],
        [{ provider: "gate" }, { provider: "sub" }, { provider: "remote" }, { provider: "gate", id: "again" }],
      ),
      { host: { sub: ALLOW } },
    );
    expect([...providers.byName.keys()]).toEqual(["gate", "sub", "remote"]);
    expect([...providers.byName.values()].map(({ now }) => now.producer)).toEqual([
      { name: "gate", source: "module:./gate.mjs" },
      { name: "sub", source: "host" },
      { name: "remote", source: "grpc://there", version: "1.4.2", category: "tool" },
    ]);
    const answers = [...providers.byName.values()].map(({ now }) => now.transport.invoke(call("veto")));
    expect((await Promise.all(answers)).map((answer) => answer.class)).toEqual(["deny", "allow", "allow"]);
    expect(providers.warnings()).toEqual([]);
    expect(globalThis).not.toHaveProperty("unusedWasLoaded");
  });

  it("should give the handlers a frozen body with every env() resolved, and tell the secrets", async () => {
    let seen: HookContext["config"] | undefined;
    const host: HookHandlers = {
      "pre-tool-call": {
        veto(_, ctx) {
          seen = ctx.config;
          return "allow";
        },
      },
    };
    const body = { token: new EnvReference("TOKEN"), nested: { list: [1, { deep: true }] } };
    const given = config([provider({ kind: "host" }, { sensitive: ["token"], body })], [{}]);
    const providers = await load(given, { host: { sub: host }, env: { TOKEN: "s3cret-value" } });
    await providers.byName.get("sub")?.now.transport.invoke(call("veto"));
    expect(seen).toEqual({ token: "s3cret-value", nested: { list: [1, { deep: true }] } });
    expect(providers.secrets).toEqual(["s3cret-value"]);
    for (const part of [seen, seen?.["nested"]]) expect(Object.isFrozen(part)).toBe(true);
    expect(seen).toSatisfy((config: { nested: { list: object[] } }) => Object.isFrozen(config.nested.list[1]));
  });

  it("should refuse a body whose variable is not set", async () => {
    const body = { token: new EnvReference("TOKEN") };
    const given = config([provider({ kind: "host" }, { body })], [{}]);
    await expect(load(given, { host: { sub: ALLOW } })).rejects.toMatchObject({ code: "HL_ENV_UNSET" });
  });

  it.each<[string, Source, ErrorCode, string]>([
    ["a plugin whose file is missing", plugin("/plugins/x"), "HL_SUBSCRIBER_LOAD", "there is no file"],
    ["a plugin that is a folder", plugin("/"), "HL_SUBSCRIBER_LOAD", "is not a file"],
    ["a plugin that nobody may run", plugin(fileURLToPath(import.meta.url)), "HL_SUBSCRIBER_LOAD", "is not executable"],
    [
      "a git-forge address that is not installed",
      { kind: "forge", address: "github.com/acme/x", launch: LAUNCH },
      "HL_SOURCE_UNSUPPORTED",
      "is not installed",
    ],
  ])("should refuse %s", async (_, source, code, message) => {
    await expect(load(config([provider(source)], [{}]))).rejects.toMatchObject({
      code,
      message: expect.stringContaining(message),
      place: { file: "agent.hcl", line: 2, col: 3 },
    });
  });

  it("should close what it had loaded when a later provider cannot be had", async () => {
    const peer = await peerSaying();
    const given = config(
      [provider(grpc(peer.target), { name: "remote" }), provider({ kind: "host" }, { name: "sub" })],
      [{ provider: "remote" }, { provider: "sub" }],
    );
    await expect(load(given)).rejects.toMatchObject({ code: "HL_SUBSCRIBER_LOAD" });
  });

  it("should not need a gRPC peer to be there", async () => {
    const providers = await load(config([provider(grpc("127.0.0.1:1"), { version: "~> 1.2" })], [{}]));
    expect(providers.warnings()).toEqual([expect.stringContaining("nobody answers at grpc:127.0.0.1:1")]);
    const answer = await providers.byName.get("sub")?.now.transport.invoke(call("veto"));
    expect(answer).toMatchObject({ class: "failed", error: { category: "PROCESS_CRASHED" } });
  });

  it.each([
    [
      "its version does not satisfy",
      "1205312e342e32",
      { version: "~> 2.0" },
      /has version "1\.4\.2", and ~> 2\.0 is required/,
    ],
    ["its version is none", "12066c6174657374", { version: "~> 2.0" }, /has version "latest"/],
    ["it tells no version", "0a0167", { version: "~> 2.0" }, /has no version/],
    ["the constraint is none", "1205312e342e32", { version: "newest" }, /"newest" is no version constraint/],
    ["it does not support the point", "220105", {}, /does not support pre-tool-call/],
  ])("should refuse a gRPC peer when %s", async (_, bytes, overrides, message) => {
    const peer = await peerSaying(bytes);
    await expect(load(config([provider(grpc(peer.target), overrides)], [{}]))).rejects.toMatchObject({
      code: "HL_SUBSCRIBER_LOAD",
      message: expect.stringMatching(message),
      place: { line: 2 },
    });
  });
});
