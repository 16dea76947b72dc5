/** A plugin's process under its watcher: started, seen to end, and let go of without a trace. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { codeOf } from "./executable.js";
import { type LifeClock, within } from "./time.js";
import { WATCHER } from "./watcher.js";

export type ProcessSpec = {
  readonly path: string;
  readonly args: readonly string[];
  /** The whole environment, for a folder that is there for this process alone. */
  readonly environment: (folder: string) => Readonly<Record<string, string>>;
  readonly clock: LifeClock;
};

/** ms between two looks at whether a group is gone */
const LOOK_MS = 5;
/** ms after which a group counts as gone: what init has not reaped by then is dead all the same */
const GONE_MS = 250;
/** ms that the watcher has to kill it */
const WATCHER_MS = 500;
/** ms that the system has to end what was killed; only a process that hangs in a driver takes longer */
const KILL_MS = 5_000;
/** ms in which the watcher's word is there once the watcher has ended */
const WORD_MS = 100;
/** ms in which an end that takes the watcher along is known, also on a busy machine */
const UNWATCHED_MS = 1_000;
/** ms in which the pipes of a process that has ended are read to their end; what it left behind may hold them open */
const DRAIN_MS = 250;

type Streams = {
  readonly control: Socket;
  /** Held by whoever would notice the end of this process. */
  readonly vigil: Socket;
  readonly stdout: Socket;
  readonly stderr: Socket;
};

/** Throws an Error whose message says in one line why nothing could be started; nothing is left then. */
export async function startProcess(spec: ProcessSpec): Promise<PluginProcess> {
  // Short: the path of a socket in it must fit into 108 bytes.
  const folder = await mkdtemp(join(tmpdir(), "hkl-"));
  try {
    const child = spawn("/bin/sh", ["-c", WATCHER, "hookledger-plugin", folder, spec.path, ...spec.args], {
      detached: true,
      env: { ...spec.environment(folder) },
      stdio: ["ignore", "pipe", "pipe", "pipe", "pipe"],
    });
    const { pid } = child;
    if (pid === undefined) {
      const [error] = await once(child, "error");
      throw error;
    }
    child.on("error", () => {});
    return new PluginProcess(child, pid, folder, spec.clock);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    const code = codeOf(error);
    const why = code === "E2BIG" ? "its arguments and its environment are too large" : "the system refuses";
    throw new Error(`it cannot be started: ${why} (${code})`, { cause: error });
  }
}

/** Made by `startProcess`. */
export class PluginProcess {
  /** Of the watcher and of its group. */
  readonly pid: number;
  readonly stdout: Socket;
  readonly stderr: Socket;
  /** How it ended ("exited with code 2", "was killed by SIGKILL"). Never rejects. */
  readonly ended: Promise<string>;
  /** All that it wrote has been read, or will not be. After `ended`. Never rejects. */
  readonly drained: Promise<void>;
  /** Nothing is left of it: group, pipes, folder. After `ended`, bounded. Never rejects. */
  readonly gone: Promise<void>;
  readonly #child: ChildProcess;
  readonly #control: Socket;
  readonly #vigil: Socket;
  readonly #clock: LifeClock;
  #end: string | null = null;
  #reaped = false;

  constructor(child: ChildProcess, pid: number, folder: string, clock: LifeClock) {
    const { control, vigil, stdout, stderr } = streamsOf(child);
    this.#child = child;
    this.pid = pid;
    this.stdout = stdout;
    this.stderr = stderr;
    this.#control = control;
    this.#vigil = vigil;
    this.#clock = clock;
    vigil.resume().once("close", () => void this.#unwatched());
    const reaped = new Promise<string>((resolve) => {
      child.once("exit", (code, signal) => {
        this.#reaped = true;
        resolve(signal === null ? exitText(code ?? 0) : `was killed by ${signal}`);
      });
    });
    this.ended = this.#awaitEnd(reaped);
    this.drained = this.ended.then(() => this.#drain());
    this.gone = this.ended.then(() => this.#release(reaped, folder));
  }

  /** Null while it runs. */
  get end(): string | null {
    return this.#end;
  }

  /** SIGTERM to the whole group, while its leader is sure to be the one that was started. */
  terminate(): void {
    if (!this.#reaped) signalGroup(this.pid, "SIGTERM");
  }

  /** Ends it at once. False if it has not ended even so. */
  async kill(): Promise<boolean> {
    if (this.#control.writable) this.#control.write("now\n");
    if (await within(this.#clock, WATCHER_MS, this.ended)) return true;
    if (!this.#reaped) signalGroup(this.pid, "SIGKILL");
    return within(this.#clock, KILL_MS, this.ended);
  }

  /** Whether it keeps this process up. */
  hold(held: boolean): void {
    const change = held ? "ref" : "unref";
    for (const part of [this.#child, this.#control, this.#vigil, this.stdout, this.stderr]) part[change]();
  }

  async #awaitEnd(reaped: Promise<string>): Promise<string> {
    const word = new Promise<string | null>((resolve) => {
      let said = "";
      this.#control.on("data", (chunk: Buffer) => {
        said = (said + chunk.toString("latin1")).slice(0, 64);
        const code = /^exit (\d{1,3})\n/.exec(said)?.[1];
        if (code !== undefined) resolve(statusText(Number(code)));
      });
      this.#control.once("close", () => resolve(null));
    });
    const watched = await Promise.race([word, reaped.then(() => this.#lastWord(word))]);
    this.#end = watched ?? (await reaped);
    return this.#end;
  }

  /** The watcher is dead. If it was killed alone, nobody watches the plugin any longer. */
  async #lastWord(word: Promise<string | null>): Promise<string | null> {
    if (!(await within(this.#clock, WORD_MS, word))) signalGroup(this.pid, "SIGKILL");
    return word;
  }

  /** Nobody would end the plugin with this process any longer: it does not outlive that, unless it has just ended itself. */
  async #unwatched(): Promise<void> {
    if (!(await within(this.#clock, UNWATCHED_MS, this.ended)) && !this.#reaped) signalGroup(this.pid, "SIGKILL");
  }

  async #drain(): Promise<void> {
    const read = Promise.all([closed(this.stdout), closed(this.stderr)]);
    if (await within(this.#clock, DRAIN_MS, read)) return;
    this.stdout.destroy();
    this.stderr.destroy();
  }

  async #release(reaped: Promise<string>, folder: string): Promise<void> {
    await reaped;
    this.#control.destroy();
    this.#vigil.destroy();
    const until = this.#clock.now() + GONE_MS;
    while (signalGroup(this.pid, 0) && this.#clock.now() < until) {
      await new Promise<void>((resolve) => {
        this.#clock.timer(LOOK_MS, resolve);
      });
    }
    await this.drained;
    await rm(folder, { recursive: true, force: true }).catch(() => {});
  }
}

function streamsOf(child: ChildProcess): Streams {
  const [, stdout, stderr, control, vigil] = child.stdio;
  if (!(stdout instanceof Socket && stderr instanceof Socket && control instanceof Socket && vigil instanceof Socket)) {
    throw new TypeError("a pipe of a child process is no socket");
  }
  // A pipe that breaks is the end of what it tells.
  for (const socket of [stdout, stderr, control, vigil]) socket.on("error", () => {});
  return { stdout, stderr, control, vigil };
}

function closed(socket: Socket): Promise<void> {
  return socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once("close", () => resolve()));
}

/** Whether there is such a group. */
function signalGroup(leader: number, signal: "SIGTERM" | "SIGKILL" | 0): boolean {
  try {
    return process.kill(-leader, signal);
  } catch {
    return false;
  }
}

const SIGNALS = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

/** A shell's status: of a process that a signal killed, 128 and the signal's number. */
function statusText(status: number): string {
  const signal = status > 128 ? SIGNALS.get(status - 128) : undefined;
  return signal === undefined ? exitText(status) : `was killed by ${signal}`;
}

function exitText(code: number): string {
  return `exited with code ${code}`;
}
