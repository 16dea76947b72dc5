/** Plugin processes for tests: scripts written on the spot, the peer without the SDK, and a look at what is left of them. */

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { KERNEL_COOKIE } from "#src/goplugin/protocol.js";
import type { LogSink } from "#src/subscribers/log.js";
import type { PluginLife, PluginSpec } from "#src/subscribers/plugin/life.js";
import { type StartOptions, startPlugin } from "#src/subscribers/plugin/start.js";

export type Logged = Parameters<LogSink>[0];

export const PEER = fileURLToPath(new URL("./raw-plugin.mjs", import.meta.url));

const HOST = fileURLToPath(new URL("./plugin-host.mjs", import.meta.url));

/** A folder that stands in for the system's temporary one, and is looked at for what is left in it. */
export class Ground {
  readonly folder: string;

  constructor() {
    const real = process.env["TMPDIR"];
    this.folder = mkdtempSync(join(tmpdir(), "hkl-test-"));
    process.env["TMPDIR"] = this.folder;
    onTestFinished(() => {
      if (real === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = real;
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** An executable script with this body, read by /bin/sh. */
  script(body: string): string {
    return this.file("plugin.sh", `#!/bin/sh\n${body}\n`, 0o700);
  }

  file(name: string, text: string, mode: number): string {
    const path = join(this.folder, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  /** A process of its own that starts the peer; killed with the test. */
  async host(orders: object, { stay }: { readonly stay: boolean }): Promise<Hosted> {
    const spec = {
      path: PEER,
      args: [JSON.stringify({ ...orders, folder: this.folder })],
      environment: { PATH: process.env["PATH"] },
      stay,
    };
    const child = spawn(process.execPath, [HOST, JSON.stringify(spec)], { stdio: ["ignore", "pipe", "inherit"] });
    const kill = () => void child.kill("SIGKILL");
    onTestFinished(kill);
    const exited = once(child, "exit");
    let text = "";
    for await (const chunk of child.stdout) {
      text += chunk;
      if (stay && text.endsWith("\n")) break;
    }
    const { ok, message, said } = JSON.parse(text) as { ok: boolean; message?: string; said: string[] };
    if (!ok) throw new Error(message);
    const code = stay ? null : (await exited)[0];
    return { said: said.map((line) => ({ message: line })), kill, code };
  }

  has(name: string): boolean {
    return readdirSync(this.folder).includes(name);
  }

  /** Private folders of plugins that are still there. */
  folders(): string[] {
    return readdirSync(this.folder).filter((name) => name.startsWith("hkl-"));
  }

  /** Command lines of processes that have this folder's path in them: every plugin and watcher of this test. */
  processes(): string[] {
    return execFileSync("ps", ["-axww", "-o", "args="], { encoding: "utf8" })
      .split("\n")
      .filter((line) => line.includes(this.folder));
  }
}

type HostedLine = { readonly message: string };

type Hosted = {
  /** What the plugin had logged when it was up. */
  readonly said: readonly HostedLine[];
  /** SIGKILL to the host. */
  readonly kill: () => void;
  /** Of a host that does not stay, its exit code. */
  readonly code: number | null;
};

export function specOf(path: string, overrides: Partial<PluginSpec> = {}): PluginSpec {
  const args = overrides.args ?? [];
  const launch = { args, env: [], startTimeoutMs: 10_000, autoMtls: "auto" } as const;
  return {
    provider: {
      name: "peer",
      sourceText: "./peer",
      source: { kind: "plugin", path, launch },
      sensitive: [],
      place: { file: "agent.hcl", line: 1, col: 1 },
    },
    path,
    args,
    environment: { PATH: process.env["PATH"] ?? "" },
    cookie: KERNEL_COOKIE,
    protocolVersion: 1,
    autoMtls: "off",
    startTimeoutMs: 10_000,
    maxMessageBytes: 1024 * 1024,
    redact: (text) => text,
    log: () => {},
    ...overrides,
  };
}

/** Why it did not start. */
export async function faultOf(spec: PluginSpec, options: StartOptions = {}): Promise<string> {
  const started = await startPlugin(spec, options);
  if (!started.ok) return started.message;
  await started.life.close();
  throw new Error("it has started");
}

export type StartedPeer = { readonly life: PluginLife; readonly log: Logged[] };

/** The peer with these orders; closed with the test. */
export async function startPeer(
  orders: object = {},
  overrides: Partial<PluginSpec> = {},
  options: StartOptions = {},
): Promise<StartedPeer> {
  const log: Logged[] = [];
  const spec = specOf(PEER, { args: [JSON.stringify(orders)], log: (line) => log.push(line), ...overrides });
  const started = await startPlugin(spec, options);
  if (!started.ok) throw new Error(started.message);
  onTestFinished(() => started.life.close());
  return { life: started.life, log };
}

/** A field that the peer logged with `message`. */
export function told(log: readonly { readonly message: string }[], message: string, field: string): string {
  const line = log.find((entry) => entry.message.startsWith(message))?.message ?? "";
  return new RegExp(` ${field}=(\\S+)`).exec(line)?.[1] ?? "";
}

/** Neither gone nor dead and not reaped yet, which is for init to do and takes some of them a second. */
export function isAlive(pid: number): boolean {
  const state = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" }).stdout.trim();
  return state !== "" && !state.startsWith("Z");
}

/** Looks every few ms until `condition` holds. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
