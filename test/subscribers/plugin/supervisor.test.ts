import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Provider } from "#src/config/types.js";
import { RESTART_POLICY } from "#src/subscribers/plugin/restart.js";
import { PluginSupervisor } from "#src/subscribers/plugin/supervisor.js";
import { pidsOf } from "../../support/plugin-load.js";
import { temporaryFolder } from "../../support/store-fixtures.js";
import { call, provider } from "../../support/subscriber-calls.js";

const PEER = fileURLToPath(new URL("../../support/plugin-peer.mjs", import.meta.url));
const MARK = `supervisor-${process.pid}`;

let folder: ReturnType<typeof temporaryFolder>;
const open: PluginSupervisor[] = [];
beforeEach(() => {
  folder = temporaryFolder();
});
afterEach(async () => {
  await Promise.all(open.splice(0).map((plugin) => plugin.close()));
  folder.remove();
  expect(pidsOf(MARK)).toEqual([]);
});

function script(name: string, before: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, `#!/bin/sh\n${before}\nexec ${PEER} '{"kind":"grpc","mark":"${MARK}"}'\n`, { mode: 0o755 });
  return path;
}

function supervised(path: string, lines: string[] = []): PluginSupervisor {
  const launch = { args: [], env: [], startTimeoutMs: 10_000, autoMtls: "off" } as const;
  const gate: Provider = provider({ kind: "plugin", path, launch }, { name: "gate", sourceText: "./gate" });
  const plugin = new PluginSupervisor({
    spec: {
      provider: gate,
      path,
      args: [],
      environment: { PATH: process.env["PATH"] ?? "" },
      cookie: { key: "COOKIE", value: "yes" },
      protocolVersion: 1,
      autoMtls: "off",
      startTimeoutMs: 10_000,
      maxMessageBytes: 1024 * 1024,
      log: ({ message }) => lines.push(message),
      redact: (text) => text,
    },
    environmentOf: () => ({ PATH: process.env["PATH"] ?? "" }),
    needed: [{ point: "pre-tool-call", mode: "veto" }],
    restart: RESTART_POLICY,
    now: () => performance.now(),
    describeTimeoutMs: 2000,
  });
  open.push(plugin);
  return plugin;
}

describe("PluginSupervisor", () => {
  it("should fail calls until it is started, and say so", async () => {
    const plugin = supervised(script("gate", ""));
    expect(plugin.due).toBe(true);
    expect(await plugin.now.transport.invoke(call("veto"))).toMatchObject({
      class: "failed",
      error: { category: "PROCESS_CRASHED", message: expect.stringContaining("not started") },
    });
    const { transport } = await plugin.ready();
    expect(plugin.due).toBe(false);
    expect(await transport.invoke(call("veto"))).toMatchObject({ class: "allow" });
  });

  it("should not take the digest of one file for that of another which was put there while it started", async () => {
    const path = script("gate", `touch ${folder.path}/begun; while [ ! -e ${folder.path}/go ]; do sleep 0.01; done`);
    const plugin = supervised(path);
    const ready = plugin.ready();
    while (!existsSync(join(folder.path, "begun"))) await new Promise((resolve) => setImmediate(resolve));
    renameSync(script("other", ""), path);
    writeFileSync(join(folder.path, "go"), "");
    const { transport, producer } = await ready;
    expect(producer).not.toHaveProperty("digest");
    expect(plugin.fault).toMatchObject({
      code: "HL_PLUGIN_START",
      message: expect.stringContaining("changed while it was being started"),
    });
    expect(await transport.invoke(call("veto"))).toMatchObject({ error: { category: "PROCESS_CRASHED" } });
    await plugin.startNow();
    expect(plugin.now.producer).toHaveProperty("digest");
  });

  it("should keep answering with the process that a dispatch began with, or with its end", async () => {
    const lines: string[] = [];
    const plugin = supervised(script("gate", ""), lines);
    const first = await plugin.ready();
    await first.transport.invoke(call("veto", { turn: "crash" }));
    const second = await plugin.ready();
    expect(second).not.toBe(first);
    expect(await first.transport.invoke(call("veto"))).toMatchObject({
      class: "failed",
      error: { category: "PROCESS_CRASHED", message: expect.stringContaining("was killed by SIGKILL") },
    });
    expect(await second.transport.invoke(call("veto"))).toMatchObject({ class: "allow" });
    expect(lines).toContain("the plugin was killed by SIGKILL");
  });

  it("should not be started any more once it is closed", async () => {
    const plugin = supervised(script("gate", ""));
    await plugin.close();
    expect(plugin.due).toBe(false);
    const { transport } = await plugin.ready();
    expect(await transport.invoke(call("veto"))).toMatchObject({ error: { category: "PROCESS_CRASHED" } });
  });
});
