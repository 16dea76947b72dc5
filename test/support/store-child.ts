/** Starts test/support/store-child.mjs and follows what it says. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("./store-child.mjs", import.meta.url));

export class StoreChild {
  readonly lines: string[] = [];
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  #changed: () => void = () => {};

  constructor(args: readonly string[], options: { readonly uid?: number; readonly gid?: number } = {}) {
    this.#process = spawn(process.execPath, [SCRIPT, ...args], { stdio: ["pipe", "pipe", "inherit"], ...options });
    this.#ended = once(this.#process, "close");
    if (this.#process.stdout === null) throw new Error("no stdout");
    createInterface({ input: this.#process.stdout }).on("line", (line) => {
      this.lines.push(line);
      this.#changed();
    });
    this.#process.once("exit", () => this.#changed());
  }

  /** Resolves once `count` lines begin with `prefix`, with the rest of the last one. */
  async said(prefix: string, count = 1): Promise<string> {
    for (;;) {
      const line = this.all(prefix)[count - 1];
      if (line !== undefined) return line;
      if (this.#process.exitCode !== null) throw new Error(`ended; said ${this.lines.slice(-5).join(" | ")}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  /** What followed `prefix` in each line that begins with it. */
  all(prefix: string): string[] {
    return this.lines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
  }

  async end(): Promise<readonly string[]> {
    this.#process.stdin?.end();
    await this.#ended;
    return this.lines;
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }
}
