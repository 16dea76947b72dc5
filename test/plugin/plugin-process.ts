/** A plugin in a process of its own, driven as a host drives it, by a plain grpc-js client. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type ChannelCredentials, Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { HookMode } from "#src/core/events.js";
import { KERNEL_COOKIE, METHODS, PLUGIN_ENV } from "#src/goplugin/protocol.js";
import { encodeDispatchRequest } from "#src/payload/admission.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFromView } from "#src/payload/payload.js";

export const FIXTURES = fileURLToPath(new URL("fixtures/", import.meta.url));
export const HOST_ENV = {
  [KERNEL_COOKIE.key]: KERNEL_COOKIE.value,
  [PLUGIN_ENV.protocolVersions]: "1",
};

export type StartOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly file?: string;
  /** Words before `node`, for a parent between this process and the plugin. */
  readonly under?: readonly string[];
};

export type Reply = { readonly bytes: Buffer; readonly trailers: Metadata };

export class PluginProcess {
  readonly folder = mkdtempSync(join(tmpdir(), "sdk-"));
  readonly child: ChildProcessWithoutNullStreams;
  /** Code and signal. */
  readonly exited: Promise<readonly [number | null, NodeJS.Signals | null]>;
  /** Whole lines so far. */
  readonly stdout: string[] = [];
  readonly stderr: string[] = [];
  readonly #lines: Record<"stdout" | "stderr", Interface>;
  readonly #clients: Client[] = [];

  constructor({ env = HOST_ENV, args = [], file = "plugin.mjs", under = [] }: StartOptions = {}) {
    const [command = "", ...rest] = [...under, process.execPath, join(FIXTURES, file), ...args];
    const path = process.env["PATH"] ?? "";
    this.child = spawn(command, rest, { env: { PATH: path, TMPDIR: this.folder, ...env }, stdio: "pipe" });
    this.exited = once(this.child, "close").then(([code, signal]) => [code, signal]);
    this.#lines = {
      stdout: createInterface({ input: this.child.stdout }),
      stderr: createInterface({ input: this.child.stderr }),
    };
    this.#lines.stdout.on("line", (line) => this.stdout.push(line));
    this.#lines.stderr.on("line", (line) => this.stderr.push(line));
  }

  /** Resolves with the first line, also one that is there already, that has `text` in it; rejects when the process ends first. */
  async line(stream: "stdout" | "stderr", text: string): Promise<string> {
    for (;;) {
      const found = this[stream].find((line) => line.includes(text));
      if (found !== undefined) return found;
      const [ended] = await Promise.race([
        once(this.#lines[stream], "line").then(() => [false]),
        once(this.#lines[stream], "close").then(() => [true]),
      ]);
      if (ended) throw new Error(`no "${text}" on ${stream}: ${this.stderr.join("\n")}`);
    }
  }

  /** The handshake's fields. */
  async handshake(): Promise<readonly string[]> {
    return (await this.line("stdout", "|")).split("|");
  }

  async address(): Promise<string> {
    return (await this.handshake())[3] ?? "";
  }

  async client(secure: ChannelCredentials = credentials.createInsecure(), address?: string): Promise<Client> {
    const client = new Client(`unix:${address ?? (await this.address())}`, secure, {
      "grpc.ssl_target_name_override": "localhost",
      "grpc.enable_retries": 0,
      "grpc.max_receive_message_length": -1,
      "grpc.use_local_subchannel_pool": 1,
    });
    this.#clients.push(client);
    return client;
  }

  /** Messages of the log, without the rest of their lines. */
  logged(): readonly string[] {
    return this.stderr.flatMap((line) => (line.startsWith("{") ? [String(JSON.parse(line)["@message"])] : []));
  }

  async stop(): Promise<void> {
    for (const client of this.#clients) client.close();
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGKILL");
    await this.exited;
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Rejects with the ServiceError of any status but OK. */
export function ask(
  client: Client,
  path: string,
  request: Uint8Array,
  { deadlineMs = 10_000, metadata = {}, signal }: AskOptions = {},
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let bytes: Buffer;
    const sent = new Metadata();
    for (const [key, value] of Object.entries(metadata)) sent.set(key, value);
    const call = client.makeUnaryRequest<Buffer, Buffer>(
      path,
      (message) => message,
      (message) => message,
      Buffer.from(request),
      sent,
      { deadline: Date.now() + deadlineMs },
      (error: ServiceError | null, message) => {
        if (error !== null) reject(error);
        else bytes = message ?? Buffer.alloc(0);
      },
    );
    call.on("status", ({ code, metadata: trailers }) => {
      if (code === 0) resolve({ bytes, trailers });
    });
    signal?.addEventListener("abort", () => call.cancel());
  });
}

type AskOptions = {
  readonly deadlineMs?: number;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

export function hookRequest(mode: HookMode, input: HookPayloadInput, subscriptionId?: string): Uint8Array {
  return encodeDispatchRequest(payloadFromView(input), mode, subscriptionId);
}

/** Asks the fixture's veto to do one of its acts. */
export function act(client: Client, name: string, options?: AskOptions): Promise<Reply> {
  const request = hookRequest("veto", { preToolCall: { call: { id: "c-1", toolName: name } } }, "gate-1");
  return ask(client, METHODS.dispatchHook, request, options);
}
