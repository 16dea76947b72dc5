import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { HookMode } from "#src/core/events.js";
import type { DispatchResult } from "#src/dispatch/result.js";
import type { PointMessages } from "#src/payload/messages.js";
import type { Payload } from "#src/payload/payload.js";
import { verifyAll } from "#src/replay/verify-all.js";
import type { EventStore, StreamEvents } from "#src/store/port.js";
import { kernelOn, projectWith } from "./kernels.js";
import { AUTO_MTLS, carrying } from "./lives.js";

async function streams(store: EventStore): Promise<readonly StreamEvents[]> {
  const all: StreamEvents[] = [];
  for await (const page of store.readStreams({ order: "oldest" })) all.push(...page);
  return all;
}

async function divergences(store: EventStore): Promise<readonly unknown[]> {
  const all: unknown[] = [];
  for await (const { diverged } of verifyAll(store, undefined, 1)) all.push(...diverged);
  return all;
}

/** The text of the first message. */
function spoken(payload: Payload | null): string {
  if (payload === null) throw new Error("there is no payload");
  const { messages } = payload.view as PointMessages["pre-model-call"];
  return messages[0]?.content[0]?.text?.text ?? "";
}

function verdict(result: DispatchResult) {
  const { status, allowed, decidedBy, reason, hookErrors } = result;
  return {
    status,
    allowed,
    decidedBy,
    reason,
    errors: hookErrors.map(({ category, message }) => `${category}: ${message}`),
  };
}

describe.each(AUTO_MTLS)("a kernel over a genuine Go plugin, AutoMTLS %s", (autoMtls) => {
  it("should decide as the plugin says, and record which program said it", async () => {
    const config = projectWith({ autoMtls, provider: 'version = "~> 1.4"' });
    const { kernel, store } = await kernelOn(config);
    await kernel.start();
    expect(kernel.warnings).toEqual([]);
    expect(verdict(await kernel.dispatch(carrying("veto", "read_file")))).toMatchObject({ allowed: true, errors: [] });
    expect(verdict(await kernel.dispatch(carrying("veto", "deny not today")))).toMatchObject({
      allowed: false,
      reason: "not today",
      errors: [],
    });
    const rewritten = await kernel.dispatch(carrying("transform", "upper"));
    expect(JSON.stringify(rewritten.payload?.view)).toContain("UPPER");
    expect(verdict(await kernel.dispatch(carrying("observe", "default")))).toMatchObject({ allowed: true, errors: [] });

    const digest = createHash("sha256")
      .update(readFileSync(join(dirname(config), "peerplugin")))
      .digest("hex");
    const recorded = JSON.stringify(await streams(store));
    expect(recorded).toContain(digest);
    expect(recorded).toContain("1.4.2");
    expect(await divergences(store)).toEqual([]);
  });

  it.each([
    ["panic", "PROCESS_CRASHED: the plugin exited with code 2"],
    ["exit 7", "PROCESS_CRASHED: the plugin exited with code 7"],
    ["kill", "PROCESS_CRASHED: the plugin was killed by SIGKILL"],
    ["fail to tell", "FAILED: UNKNOWN: to tell"],
    ["unset", "INVALID_RESPONSE: empty answer: no outcome is set"],
  ])("should deny, abort or go on, and ask a new process the next time: %s", async (order, said) => {
    const restart = { firstWaitMs: 0, longestWaitMs: 0, bound: 10, goodRunMs: 60_000 };
    const { kernel } = await kernelOn(projectWith({ autoMtls }), { restart });
    const expected: Record<HookMode, object> = {
      veto: { status: "decided", allowed: false, errors: [said.replace(/^FAILED/, "VETO_FAILED")] },
      transform: { status: "aborted", allowed: false, errors: [said.replace(/^FAILED/, "TRANSFORM_FAILED")] },
      observe: { status: "decided", allowed: true, errors: [said.replace(/^FAILED/, "UNKNOWN")] },
    };
    for (const mode of ["veto", "transform", "observe"] as const) {
      expect(verdict(await kernel.dispatch(carrying(mode, order)))).toMatchObject(expected[mode]);
      expect(verdict(await kernel.dispatch(carrying("veto", "read_file")))).toMatchObject({
        allowed: true,
        errors: [],
      });
    }
  });

  it("should record a timeout at the deadline", async () => {
    const { kernel } = await kernelOn(projectWith({ autoMtls, timeoutMs: 300 }));
    await kernel.start();
    const began = performance.now();
    const result = await kernel.dispatch(carrying("veto", "stuck"));
    expect(performance.now() - began).toBeLessThan(800);
    expect(result).toMatchObject({ allowed: false, hookErrors: [{ category: "TIMEOUT" }] });
  });
});

describe("what a kernel tells its plugin", () => {
  it("should be its configuration and what the operator lets through, nothing else", async () => {
    const env = {
      PATH: process.env["PATH"],
      HOME: "/nowhere",
      LET_THROUGH: "yes",
      KEPT_BACK: "no",
      SECRET: "s3cret-of-mine",
    };
    const config = projectWith({
      autoMtls: "off",
      provider: 'env = ["LET_THROUGH", "UNSET"]\n    version = "1.4.2"',
      blocks: 'provider "peer" {\n  depth = { of = [1, "ä"] }\n  key = env("SECRET")\n}',
    });
    const { kernel, store } = await kernelOn(config, { env });
    const { payload } = await kernel.dispatch(carrying("transform", "environment"));
    const found: { readonly environment: readonly string[]; readonly temporary: string } = JSON.parse(spoken(payload));
    const named = Object.fromEntries(found.environment.map((entry) => entry.split(/=(.*)/s, 2)));
    expect(named).toEqual({
      PATH: env.PATH,
      HOME: "/nowhere",
      LET_THROUGH: "yes",
      TMPDIR: found.temporary,
      PLUGIN_UNIX_SOCKET_DIR: found.temporary,
      PLUGIN_PROTOCOL_VERSIONS: "1",
      PLUGGABLEHARNESS_AGENT_PLUGIN: "pluggableharness-agent-v1-a6f3c9d2-plugin-handshake",
      OTEL_RESOURCE_ATTRIBUTES: expect.stringContaining("pluggableharness.producer.name=peer"),
      HOOKLEDGER_PROVIDER_CONFIG: expect.any(String),
    });
    expect(JSON.parse(named["HOOKLEDGER_PROVIDER_CONFIG"] ?? "")).toEqual({
      depth: { of: [1, "ä"] },
      key: "s3cret-of-mine",
    });
    expect(JSON.stringify(await streams(store))).not.toContain("s3cret-of-mine");
  });
});

describe("a kernel over a Go plugin that does not start", () => {
  it.each([
    ["stray", [], "stray line"],
    ["wrong version", ["app-7"], "protocol version 7"],
    ["early end", ["exit-early"], "exited with code 3"],
  ])("should deny, abort or go on: %s", async (_, args, said) => {
    const { kernel } = await kernelOn(projectWith({ args: args.length === 0 ? ["stray"] : args }));
    await kernel.start();
    expect(kernel.warnings).toEqual([expect.stringContaining(said)]);
    const category = "PROCESS_CRASHED";
    expect(await kernel.dispatch(carrying("veto", "read_file"))).toMatchObject({
      allowed: false,
      hookErrors: [{ category }],
    });
    expect(await kernel.dispatch(carrying("transform", "upper"))).toMatchObject({
      status: "aborted",
      hookErrors: [{ category }],
    });
    expect(await kernel.dispatch(carrying("observe", "x"))).toMatchObject({
      allowed: true,
      hookErrors: [{ category }],
    });
  });

  it("should refuse one of another version than is asked for", async () => {
    const { kernel } = await kernelOn(projectWith({ provider: 'version = "~> 2.0"' }));
    await expect(kernel.start()).rejects.toMatchObject({ code: "HL_SUBSCRIBER_LOAD" });
    expect(await kernel.dispatch(carrying("veto", "read_file"))).toMatchObject({ allowed: false });
  });
});
