/** Demos as a newcomer runs them, but for the terminal, and what they leave behind. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

const CLONE = fileURLToPath(new URL("../../", import.meta.url));

/** A folder whose name has a space in it. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "hookledger demo "));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export class Demo {
  stdout = "";
  stderr = "";
  readonly child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor(script: string, temp: string, args: readonly string[] = [], clone = CLONE) {
    const env = { ...process.env, TMPDIR: temp, CI: "true" };
    this.child = spawn(process.execPath, [join(clone, script), ...args], { env });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.#closed = once(this.child, "close");
    onTestFinished(() => {
      this.child.kill("SIGKILL");
    });
  }

  async ended(): Promise<number | null> {
    await this.#closed;
    return this.child.exitCode;
  }

  async said(text: string): Promise<void> {
    while (!this.stdout.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`ended without ${JSON.stringify(text)}: ${this.stderr}`);
      await Promise.race([once(this.child.stdout!, "data"), this.#closed]);
    }
  }
}

/** Processes with this text in their command or environment, where the system tells: a demo's own temporary folder is in both. */
export function processesWith(text: string): readonly string[] {
  if (process.platform !== "linux") return [];
  const told = (pid: string, file: string) => {
    try {
      return readFileSync(`/proc/${pid}/${file}`, "utf8").replaceAll("\0", " ");
    } catch {
      // It is somebody else's, or it has ended; a zombie has neither.
      return "";
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => told(pid, "cmdline").includes(text) || told(pid, "environ").includes(text));
}

export function contentsOf(folder: string): readonly Buffer[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)));
}

/** This project with one of its examples' files changed. */
export function cloneWith(file: string, change: (text: string) => string): string {
  const clone = temporaryFolder();
  for (const name of ["node_modules", "dist", "proto", "package.json"]) {
    if (!existsSync(join(CLONE, name))) throw new Error(`there is no ${name}`);
    symlinkSync(join(CLONE, name), join(clone, name));
  }
  cpSync(join(CLONE, "examples"), join(clone, "examples"), { recursive: true });
  const path = join(clone, "examples", file);
  const text = readFileSync(path, "utf8");
  const changed = change(text);
  if (changed === text) throw new Error(`nothing to change in ${file}`);
  writeFileSync(path, changed);
  return clone;
}
