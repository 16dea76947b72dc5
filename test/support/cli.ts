/** Runs the built command line as a process of its own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const CLONE = fileURLToPath(new URL("../../", import.meta.url));
const MAIN = join(CLONE, "dist/cli/main.js");

export type Ran = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type RunOptions = {
  readonly cwd: string;
  readonly stdin?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>>;
};

export class Running {
  stdout = "";
  stderr = "";
  readonly ended: Promise<Ran>;
  readonly #child;
  #changed: () => void = () => {};

  constructor(args: readonly string[], { cwd, stdin, env = {} }: RunOptions) {
    const { NO_COLOR: _, FORCE_COLOR: __, HOOKLEDGER_STORE: ___, ...inherited } = process.env;
    this.#child = spawn(process.execPath, [MAIN, ...args], { cwd, env: { ...inherited, ...env } });
    this.#child.stdin.on("error", () => {});
    this.#child.stdin.end(stdin);
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#changed();
    });
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#changed();
    });
    this.ended = new Promise((resolve) => {
      this.#child.on("close", (code) => {
        resolve({ code, stdout: this.stdout, stderr: this.stderr });
        this.#changed();
      });
    });
    onTestFinished(() => {
      this.#child.kill("SIGKILL");
    });
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** The reader of stdout goes away. */
  async closeStdout(): Promise<void> {
    const closed = once(this.#child.stdout, "close");
    this.#child.stdout.destroy();
    await closed;
  }

  /** Resolves once a stream has the text; rejects if the process ends without it. */
  async sees(stream: "stdout" | "stderr", text: string): Promise<void> {
    while (!this[stream].includes(text)) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`ended without ${JSON.stringify(text)} on ${stream}: ${this.stderr}`);
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}

export function run(args: readonly string[], options: RunOptions): Promise<Ran> {
  return new Running(args, options).ended;
}

/** A folder with these files, removed when the test is over. */
export function folderWith(files: Readonly<Record<string, string | Uint8Array>>): string {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-cli-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

/** What `npm install` makes of a dependency on hookledger, with this build for the package. */
export function installHookledger(folder: string): void {
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  symlinkSync(CLONE, join(folder, "node_modules/hookledger"));
}
