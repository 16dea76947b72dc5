/** Our host, one plugin process at a time: what the supervisor of a kernel does, without the kernel. */

import { randomUUID } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { PluginLaunch } from "#src/config/types.js";
import type { HookMode } from "#src/core/events.js";
import { KERNEL_COOKIE } from "#src/goplugin/protocol.js";
import type { Answer } from "#src/payload/answer.js";
import type { HookPayloadInput, PointMessages } from "#src/payload/messages.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import type { PluginLife, PluginSpec, Started } from "#src/subscribers/plugin/life.js";
import { startPlugin } from "#src/subscribers/plugin/start.js";
import type { Invocation } from "#src/subscribers/port.js";

export type AutoMtls = PluginLaunch["autoMtls"];
export const AUTO_MTLS: readonly AutoMtls[] = ["off", "auto", "require"];

export type Logged = { readonly level: string; readonly message: string };
export type LifeOptions = Partial<Omit<PluginSpec, "provider" | "path" | "args" | "log">> & {
  /** ms for each step of `close`. */
  readonly graceMs?: number;
};

/** A folder of its own for the temporary files of one test, gone with it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-goplugin-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts `path`; whatever comes up is closed with the test. */
export async function start(
  path: string,
  args: readonly string[] = [],
  options: LifeOptions = {},
): Promise<{ readonly started: Started; readonly log: readonly Logged[] }> {
  const log: Logged[] = [];
  const { graceMs, ...spec } = options;
  const grace = graceMs === undefined ? {} : { graceMs };
  const started = await startPlugin(
    specOf(path, args, spec, (line) => log.push(line)),
    grace,
  );
  if (started.ok) onTestFinished(() => started.life.close());
  return { started, log };
}

/** As `start`, of a plugin that must come up. */
export async function startLife(
  path: string,
  args: readonly string[] = [],
  options: LifeOptions = {},
): Promise<{ readonly life: PluginLife; readonly log: readonly Logged[] }> {
  const { started, log } = await start(path, args, options);
  if (!started.ok) throw new Error(started.message);
  return { life: started.life, log };
}

function specOf(
  path: string,
  args: readonly string[],
  options: Omit<LifeOptions, "graceMs">,
  log: (line: Logged) => void,
): PluginSpec {
  const launch: PluginLaunch = { args, env: [], startTimeoutMs: 10_000, autoMtls: options.autoMtls ?? "auto" };
  return {
    provider: {
      name: "peer",
      sourceText: path,
      source: { kind: "plugin", path, launch },
      sensitive: [],
      place: { file: "agent.hcl", line: 1, col: 1 },
    },
    path,
    args,
    environment: { PATH: process.env["PATH"] ?? "" },
    cookie: KERNEL_COOKIE,
    protocolVersion: 1,
    autoMtls: "auto",
    startTimeoutMs: 10_000,
    maxMessageBytes: 64 * 1024 * 1024,
    redact: (text) => text,
    log,
    ...options,
  };
}

const POINTS = { observe: "session-start", transform: "pre-model-call", veto: "pre-tool-call" } as const;

/** The payload that carries an order to the peer plugin, see peerplugin/orders.go. */
export function carrying(mode: HookMode, order: string): HookPayloadInput {
  switch (mode) {
    case "observe":
      return { sessionStart: { sessionId: "s-1", profile: order, workingDirectory: "/work" } };
    case "transform":
      return {
        preModelCall: {
          messages: [{ role: "ROLE_USER", content: [{ text: { text: order } }], id: "m-1" }],
          model: { provider: "acme", id: "large" },
        },
      };
    case "veto":
      return { preToolCall: { call: { id: "c-1", toolName: order, arguments: { path: "a.txt", depth: 0 } } } };
  }
}

export type AskOptions = Partial<
  Pick<Invocation, "timeoutMs" | "session" | "turn" | "subscriptionId" | "traceparent">
> & {
  readonly payload?: Payload;
  readonly cancel?: AbortSignal;
};

/** One call, on the clock of this machine. */
export function ask(life: PluginLife, mode: HookMode, order: string, options: AskOptions = {}): Promise<Answer> {
  const { timeoutMs = 10_000, payload = payloadFromView(carrying(mode, order)), cancel, ...rest } = options;
  const controller = new AbortController();
  const due = performance.now() + timeoutMs;
  const timer = setTimeout(() => controller.abort(), timeoutMs);
  cancel?.addEventListener("abort", () => controller.abort());
  const call: Invocation = {
    dispatchId: "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    point: POINTS[mode],
    mode,
    payload,
    subscriptionId: undefined,
    session: undefined,
    turn: undefined,
    traceparent: undefined,
    ...rest,
    signal: controller.signal,
    onAbort: (stop) => controller.signal.addEventListener("abort", stop),
    timeoutMs,
    remainingMs: () => Math.max(0, due - performance.now()),
  };
  return life.invoke(call).finally(() => clearTimeout(timer));
}

/** The messages that a transform answered. */
export function messagesOf(answer: Answer): PointMessages["pre-model-call"]["messages"] {
  if (answer.class !== "transformed") throw new Error(`not transformed: ${JSON.stringify(answer)}`);
  return (answer.payload.view as PointMessages["pre-model-call"]).messages;
}

/** The text that a transform put into its first message. */
export function textOf(answer: Answer): string {
  return messagesOf(answer)[0]?.content[0]?.text?.text ?? "";
}

/** An argument that means nothing to a plugin, and by which its processes are found. */
export function mark(): string {
  return `mark-${randomUUID()}`;
}

/** Is there such a process? One that has ended and waits to be reaped is none. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

/** Pids of everything that runs with `text` among its arguments. */
export function running(text: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/cmdline`, "utf8")
            .split("\0")
            .some((part) => part.includes(text)) && isAlive(pid)
        );
      } catch {
        return false;
      }
    });
}
