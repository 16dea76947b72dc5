/** A host of the genuine go-plugin library, see peerhost/main.go. */

import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { onTestFinished } from "vitest";
import type { HookMode } from "#src/core/events.js";
import { encodeDispatchRequest } from "#src/payload/admission.js";
import { type Payload, payloadFromView } from "#src/payload/payload.js";
import { buildGoPrograms } from "./build.js";
import { carrying } from "./lives.js";

/** What the host says of one order, or of what happened meanwhile. */
export type Report = {
  readonly event: string;
  readonly id?: string;
  /** base64 of a DispatchHookResponse. */
  readonly response?: string;
  /** Name of a gRPC status, and its message; absent when all went well. */
  readonly code?: string;
  readonly error?: string;
  readonly text?: string;
  readonly pid?: number;
  readonly ms: number;
};

export type GoHostOptions = {
  readonly autoMtls?: boolean;
  /** Report what the plugin writes to its stderr, as it stands. */
  readonly stdio?: boolean;
  /** Start nothing: go on with this plugin, an entry of the reattach variable. */
  readonly reattach?: object;
  readonly env?: Readonly<Record<string, string>>;
};

export type CallOptions = {
  /** ms; 0, the default: no deadline. */
  readonly timeoutMs?: number;
  /** ms after which the host cancels. */
  readonly cancelMs?: number;
  readonly subscriptionId?: string;
  readonly payload?: Payload;
};

export class GoHost {
  /** Everything that was reported so far. */
  readonly reports: Report[] = [];
  /** "started" or "failed". */
  readonly up: Promise<Report>;
  readonly ended: Promise<void>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<string, (report: Report) => void>();
  #orders = 0;

  constructor(command: readonly string[], { autoMtls = false, stdio = false, reattach, env = {} }: GoHostOptions = {}) {
    const attach = reattach === undefined ? [] : [`-reattach=${JSON.stringify(reattach)}`];
    const flags = [`-auto-mtls=${autoMtls}`, `-stdio=${stdio}`, ...attach, "--"];
    const child = spawn(buildGoPrograms().host, [...flags, ...command], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child = child;
    child.stdin.on("error", () => {});
    this.ended = new Promise((resolve) => {
      child.on("close", () => {
        this.#waiting.clear();
        resolve();
      });
    });
    this.up = new Promise((resolve) => {
      this.#waiting.set("", resolve);
    });
    createInterface({ input: child.stdout }).on("line", (line) => this.#take(JSON.parse(line)));
    onTestFinished(async () => {
      child.stdin.end();
      child.kill("SIGKILL");
      await this.ended;
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  call(mode: HookMode, order: string, options: CallOptions = {}): Promise<Report> {
    const { payload = payloadFromView(carrying(mode, order)), subscriptionId, ...rest } = options;
    const request = Buffer.from(encodeDispatchRequest(payload, mode, subscriptionId)).toString("base64");
    return this.order("call", { request, ...rest });
  }

  /** See `order` in peerhost/main.go. */
  order(op: "call" | "describe" | "ping" | "drop" | "reattach" | "kill" | "exit", rest: object = {}): Promise<Report> {
    this.#orders += 1;
    const id = `${this.#orders}`;
    const reported = new Promise<Report>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#child.stdin.write(`${JSON.stringify({ op, id, ...rest })}\n`);
    return reported;
  }

  /** Without a word to the plugin. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #take(report: Report): void {
    this.reports.push(report);
    const id = report.event === "started" || report.event === "failed" ? "" : report.id;
    if (id === undefined) return;
    this.#waiting.get(id)?.(report);
    this.#waiting.delete(id);
  }
}
