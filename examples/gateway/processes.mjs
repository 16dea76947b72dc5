// The folder and the processes of one run. Whichever way the run ends, no process and no file outlives it, unless it is to be kept.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Untrue } from "../demo/story.mjs";

/** ms that a run may take before it is given up. */
const WATCHDOG_MS = 60_000;
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
const CLONE = join(import.meta.dirname, "../..");

export class Processes {
  folder = mkdtempSync(join(tmpdir(), "hookledger-gateway-"));
  store = `sqlite:${join(this.folder, "ledger", "ledger.db")}`;
  #children = new Set();

  /** `keep`: the folder stays when the run is over. */
  constructor({ keep }) {
    process.on("exit", () => {
      for (const child of this.#children) child.kill("SIGKILL");
      if (!keep) rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
    });
    for (const [signal, code] of Object.entries(SIGNALS)) process.on(signal, () => process.exit(code));
    // Nobody reads any more.
    process.stdout.on("error", () => process.exit(1));
    setTimeout(() => {
      process.stderr.write(`\nit was given up after ${WATCHDOG_MS / 1000} s\n`);
      process.exit(1);
    }, WATCHDOG_MS).unref();
  }

  /** Starts a script of this folder. Resolves with it and the first line that it prints; `onLine` is told the others. */
  async start(name, args = [], onLine = () => {}) {
    const child = this.#spawn([join(import.meta.dirname, name), ...args], ["pipe", "pipe", "inherit"]);
    const lines = createInterface({ input: child.stdout });
    const first = await Promise.race([once(lines, "line"), once(child, "exit").then(() => null)]);
    if (first === null) throw new Untrue(`${name} does not start`);
    lines.on("line", onLine);
    return { child, first: first[0] };
  }

  /** Tells it to end. Resolves with its exit code once it has, and all that it printed is read. */
  async end(child) {
    const closed = once(child, "close");
    child.kill("SIGTERM");
    const [code] = await closed;
    return code;
  }

  /** Runs the command line on this terminal. Resolves with its exit code. */
  async hookledger(args) {
    const env = { ...process.env, HOOKLEDGER_STORE: this.store };
    const child = this.#spawn([join(CLONE, "dist/cli/main.js"), ...args], ["ignore", "inherit", "inherit"], env);
    const [code] = await once(child, "close");
    return code;
  }

  #spawn(argv, stdio, env = process.env) {
    const child = spawn(process.execPath, argv, { cwd: CLONE, env, stdio });
    this.#children.add(child);
    child.on("exit", () => this.#children.delete(child));
    return child;
  }
}
