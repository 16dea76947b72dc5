// The folder and the processes of one run. Whichever way the run ends, no process outlives it.
import { spawn } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Untrue } from "./story.mjs";

/** ms that a run may take before it is given up. */
const WATCHDOG_MS = 60_000;
/** bytes that the path of a Unix socket may have on every system, with some to spare */
const MAX_SOCKET_PATH = 100;
const SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
const CLONE = join(import.meta.dirname, "../..");
const CLI = join(CLONE, "dist/cli/main.js");

export class Stage {
  /** Private to this run. */
  folder = mkdtempSync(join(tmpdir(), "hookledger-demo-"));
  /** Where services listen. */
  sockets = join(this.folder, "sockets");
  /** What the audit plugin writes. */
  audit = join(this.folder, "audit.ndjson");
  clone = CLONE;
  #keep;
  #children = new Set();
  #lines = [];
  #news = new EventEmitter();

  /** `keep`: the folder stays when the run is over. */
  constructor({ keep }) {
    this.#keep = keep;
    if (Buffer.byteLength(this.#socketOf("a-rather-long-name")) > MAX_SOCKET_PATH) {
      this.sockets = mkdtempSync("/tmp/hookledger-demo-");
    }
    process.on("exit", () => this.#clear());
    for (const [signal, code] of Object.entries(SIGNALS)) process.on(signal, () => process.exit(code));
    // Nobody reads any more.
    process.stdout.on("error", () => process.exit(1));
    setTimeout(() => {
      process.stderr.write(`\nthe demo was given up after ${WATCHDOG_MS / 1000} s\n`);
      process.exit(1);
    }, WATCHDOG_MS).unref();
    mkdirSync(this.sockets, { recursive: true });
  }

  get store() {
    return `sqlite:${join(this.folder, "ledger", "ledger.db")}`;
  }

  /** Starts a service that is no plugin, as somebody else would, and waits until it listens. Returns its process id. */
  async service(name) {
    const script = fileURLToPath(new URL(`plugins/${name}.mjs`, import.meta.url));
    const child = this.#start([script, this.#socketOf(name)], ["pipe", "pipe", "inherit"]);
    const listens = await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => null)]);
    if (listens === null) throw new Untrue(`the service ${name} does not start`);
    child.stdout.resume();
    return child.pid;
  }

  /** Of the kernel: what the plugins and their host have to say. */
  log = (line) => {
    this.#lines.push(line);
    this.#news.emit("line");
  };

  /** All of it so far. */
  get logged() {
    return this.#lines.map(({ level, provider, message }) => `${level}  ${provider}: ${message}\n`).join("");
  }

  /** Resolves with the first match in what a provider says from now on. */
  async says(name, pattern) {
    for (let at = this.#lines.length; ; at += 1) {
      while (this.#lines.length <= at) await once(this.#news, "line");
      const { provider, message } = this.#lines[at];
      const found = provider === name ? pattern.exec(message) : null;
      if (found !== null) return found;
    }
  }

  /** Ends every service that still runs. */
  async stopServices() {
    const running = [...this.#children];
    for (const child of running) child.kill();
    await Promise.all(running.map((child) => once(child, "exit")));
  }

  /** Runs the command line on this terminal. Returns its exit code. */
  async run(args) {
    const [code] = await once(this.#cli(args, "inherit"), "close");
    return code;
  }

  /** The same command line with `--json`: its documents, one a line. */
  async read(args) {
    const child = this.#cli([...args, "--json"], "pipe");
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    await once(child, "close");
    return text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  }

  #cli(args, output) {
    return this.#start([CLI, ...args], ["ignore", output, output === "pipe" ? "ignore" : output], {
      cwd: CLONE,
      env: { ...process.env, HOOKLEDGER_STORE: this.store },
    });
  }

  #start(argv, stdio, options = {}) {
    const child = spawn(process.execPath, argv, { ...options, stdio });
    this.#children.add(child);
    child.on("exit", () => this.#children.delete(child));
    return child;
  }

  #socketOf(name) {
    return join(this.sockets, `${name}.sock`);
  }

  #clear() {
    for (const child of this.#children) child.kill("SIGKILL");
    rmSync(this.sockets, { recursive: true, force: true });
    if (!this.#keep) rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}
