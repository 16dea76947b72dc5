/** Starts `subscriber-peer.mjs` in a process of its own and hears of its calls. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export type PeerOptions = {
  readonly kind?: "grpc" | "wire" | "http1" | "raw" | "silent";
  /** A socket path, or "tcp" (the default) for a free port on 127.0.0.1. */
  readonly listen?: string;
  /** What a call gets whose turn names no behaviour. */
  readonly behave?: string;
  readonly maxMessageBytes?: number;
  /** A PluginInfo.DescribeResponse, base64; without one the peer does not implement it. */
  readonly describe?: string;
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
};

export type PeerCall = {
  readonly mode: number;
  readonly subscriptionId: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly size: number;
};

type Told = { readonly target?: string; readonly call?: PeerCall; readonly cancelled?: true };

export class Peer {
  readonly #child: ChildProcess;
  /** Socket path or host:port. */
  readonly target: string;
  readonly calls: PeerCall[] = [];
  /** How many calls it saw cancelled. */
  cancelled = 0;
  readonly #waiting = new Set<() => void>();

  private constructor(child: ChildProcess, target: string) {
    this.#child = child;
    this.target = target;
    child.on("message", (told: Told) => {
      if (told.call !== undefined) this.calls.push(told.call);
      if (told.cancelled) this.cancelled += 1;
      for (const wake of this.#waiting) wake();
    });
  }

  static async start(options: PeerOptions = {}): Promise<Peer> {
    const script = fileURLToPath(new URL("./subscriber-peer.mjs", import.meta.url));
    const child = fork(script, [JSON.stringify(options)], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      execArgv: [],
    });
    const first: unknown[] = await Promise.race([
      once(child, "message"),
      once(child, "exit").then(() => Promise.reject(new Error("the peer ended before it listened"))),
    ]);
    const { target } = first[0] as Told;
    if (target === undefined) throw new Error("the peer does not listen");
    return new Peer(child, target);
  }

  /** Resolves once `condition` holds; it is looked at whenever the peer tells something. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        const wake = () => {
          this.#waiting.delete(wake);
          resolve();
        };
        this.#waiting.add(wake);
      });
    }
  }

  /** Kills it at once. Idempotent. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}
