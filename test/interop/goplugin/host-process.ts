/** Our host as a process of its own, which can be killed. */

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { AutoMtls } from "./lives.js";

export type Hosted = { readonly path: string; readonly args: readonly string[]; readonly autoMtls: AutoMtls };
/** Open file descriptors of the host, after one round and after all of them. */
export type Rounds = { readonly descriptors: { readonly before: number; readonly after: number } };

export class HostProcess {
  readonly pids: readonly number[];
  readonly #child: ChildProcess;

  /** Comes up with all of these plugins. */
  static async start(plugins: readonly Hosted[], env: Readonly<Record<string, string>>): Promise<HostProcess> {
    const child = fork(fileURLToPath(new URL("host-process.mjs", import.meta.url)), {
      env: { PATH: process.env["PATH"] ?? "", ...env },
    });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    return new HostProcess(child, await asked<readonly number[]>(child, { start: plugins }));
  }

  private constructor(child: ChildProcess, pids: readonly number[]) {
    this.#child = child;
    this.pids = pids;
  }

  /** Starts, asks and stops one after the other. */
  rounds(plugins: readonly Hosted[]): Promise<Rounds> {
    return asked<Rounds>(this.#child, { rounds: plugins });
  }

  /** Starts a whole kernel, and keeps it; its warnings. */
  kernel(config: string): Promise<readonly string[]> {
    return asked<readonly string[]>(this.#child, { kernel: config });
  }

  /** Without a word. */
  kill(): void {
    this.#child.kill("SIGKILL");
  }
}

async function asked<T>(child: ChildProcess, order: object): Promise<T> {
  child.send(order);
  const end = new AbortController();
  const dead = once(child, "exit", { signal: end.signal }).then(([code]) => {
    throw new Error(`the host ended with code ${code}`);
  });
  dead.catch(() => {});
  const [answer] = await Promise.race([once(child, "message", { signal: end.signal }), dead]).finally(() =>
    end.abort(),
  );
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer.value;
}
