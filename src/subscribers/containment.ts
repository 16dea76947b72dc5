/**
 * Keeps the modules of a process that we own from ending it or writing into its answer. Only for a program such as the CLI: a
 * library must not touch process-wide state.
 *
 * While contained: `process.exit`, `reallyExit`, `abort` and a signal to the own process end nothing; the subscriber whose code
 * called them counts as crashed. A stray exception or rejection is reported and ends nothing. What a subscriber's code writes
 * to stdout goes to stderr. Whose code runs is known by its asynchronous context, so timers and promises that it leaves
 * behind are known too.
 *
 * What it cannot do: stop code that blocks the thread, exhausts memory or crashes in native code; see a write to file
 * descriptor 1 past `process.stdout`, or what a child process or a worker of the module does; know code that lost its
 * asynchronous context (it is reported without a name, and its exit is refused all the same); withstand a module that
 * is out to defeat it. Who does not trust a module runs it as a plugin.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import type { EventEmitter } from "node:events";
import { syncBuiltinESMExports } from "node:module";
import { rawText } from "../payload/text.js";
import { thrownText } from "./fault.js";

export type StrayFault = {
  readonly kind: "exception" | "rejection" | "exit";
  /** Provider whose code it was, or undefined where the context was lost. */
  readonly subscriber: string | undefined;
  readonly message: string;
};

export type ContainmentOptions = {
  /** Told of everything that belonged to no call. Must not throw. */
  readonly onStray: (fault: StrayFault) => void;
  /**
   * Takes what a subscriber's code writes to stdout and stderr, as text with the controls that it has; without it stdout goes to
   * stderr as it is. What is not UTF-8 is shown as such. Must not throw.
   */
  readonly onPrint?: (printed: { readonly subscriber: string; readonly text: string }) => void;
};

export interface Containment {
  /**
   * Runs `fn` as code of `subscriber`. Rejects with ModuleExit when it, or code that an earlier run of the same
   * subscriber left behind, tries to end the process before the promise is settled.
   */
  run<T>(subscriber: string, fn: () => T | PromiseLike<T>): Promise<T>;
  /**
   * Ends the process with this code, in one turn, so that no module gets a word in. Flush stdout before.
   */
  exit(code: number): never;
  /**
   * Gives the process back: its functions, and its listeners for `exit` and `beforeExit` as they were. From then on modules
   * are free. Idempotent.
   */
  dispose(): void;
}

/** Thrown into code that tried to end the process. */
export class ModuleExit extends Error {
  override readonly name = "ModuleExit";
}

type Run = { readonly subscriber: string; readonly exit: (error: ModuleExit) => void };

/** Throws a plain Error when the process is contained already. */
export function contain(options: ContainmentOptions): Containment {
  if (active) throw new Error("the process is contained already");
  active = true;
  const contained = new Contained(options);
  contained.install();
  return contained;
}

let active = false;

class Contained implements Containment {
  readonly #options: ContainmentOptions;
  readonly #context = new AsyncLocalStorage<Run>();
  readonly #running = new Set<Run>();
  readonly #restore: (() => void)[] = [];

  constructor(options: ContainmentOptions) {
    this.#options = options;
  }

  run<T>(subscriber: string, fn: () => T | PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const run: Run = { subscriber, exit: reject };
      this.#running.add(run);
      const running = this.#context.run(run, async () => fn());
      running.then(resolve, reject).finally(() => this.#running.delete(run));
    });
  }

  install(): void {
    for (const name of ["exit", "reallyExit", "abort"] as const) {
      this.#replace(process, name, (...args: unknown[]) => this.#exit(`process.${name}(${codeOf(args[0])})`));
    }
    const { kill } = process;
    this.#replace(process, "kill", (pid: number, signal?: string | number) => {
      const own = pid === process.pid || pid === 0 || pid === -process.pid;
      const refused = own && signal !== 0 && this.#context.getStore() !== undefined;
      return refused ? this.#exit("process.kill of itself") : Reflect.apply(kill, process, [pid, signal]);
    });
    this.#divert(process.stdout, (args) => Reflect.apply(process.stderr.write, process.stderr, args));
    if (this.#options.onPrint !== undefined) this.#divert(process.stderr, () => true);
    this.#listen("uncaughtException", (error: unknown) => this.#stray("exception", error));
    this.#listen("unhandledRejection", (error: unknown) => this.#stray("rejection", error));
    for (const event of ["exit", "beforeExit"]) {
      const emitter: EventEmitter = process;
      const before = new Set(emitter.listeners(event));
      this.#restore.push(() => {
        for (const listener of emitter.listeners(event)) {
          if (!before.has(listener) && isListener(listener)) emitter.off(event, listener);
        }
      });
    }
    syncBuiltinESMExports();
  }

  exit(code: number): never {
    this.dispose();
    process.exit(code);
  }

  dispose(): void {
    for (const restore of this.#restore.splice(0).reverse()) restore();
    active = false;
    syncBuiltinESMExports();
  }

  #replace(owner: object, name: string, replacement: (...args: never[]) => unknown): void {
    const own = Object.getOwnPropertyDescriptor(owner, name);
    Object.defineProperty(owner, name, { value: replacement, configurable: true, writable: true, enumerable: true });
    this.#restore.push(() => {
      if (own === undefined) Reflect.deleteProperty(owner, name);
      else Object.defineProperty(owner, name, own);
    });
  }

  /** What a subscriber's code writes to `stream` goes to `onPrint`, or else where `otherwise` has it. */
  #divert(stream: NodeJS.WriteStream, otherwise: (args: unknown[]) => unknown): void {
    const { write } = stream;
    this.#replace(stream, "write", (...args: unknown[]) => {
      const run = this.#context.getStore();
      if (run === undefined) return Reflect.apply(write, stream, args);
      const { onPrint } = this.#options;
      if (onPrint === undefined) return otherwise(args);
      const written = args.findLast((arg) => typeof arg === "function");
      if (written !== undefined) process.nextTick(written);
      this.#context.exit(() => onPrint({ subscriber: run.subscriber, text: textOf(args[0], args[1]) }));
      return true;
    });
  }

  #listen(event: "uncaughtException" | "unhandledRejection", listener: (error: unknown) => void): void {
    process.on(event, listener);
    this.#restore.push(() => process.off(event, listener));
  }

  /** The run whose code it was crashed; where that had ended already, every run of its subscriber; else nobody's call did. */
  #exit(what: string): never {
    const context = this.#context.getStore();
    const error = new ModuleExit(`the module tried to end the process: ${what}`);
    const runs = [...this.#running].filter((run) => run.subscriber === context?.subscriber);
    const crashed = context !== undefined && this.#running.has(context) ? [context] : runs;
    for (const run of crashed) run.exit(error);
    if (crashed.length === 0) this.#report("exit", error.message);
    throw error;
  }

  #stray(kind: "exception" | "rejection", error: unknown): void {
    // The exit was refused, and counted, where it was tried.
    if (error instanceof ModuleExit) return;
    this.#report(kind, thrownText(error));
  }

  #report(kind: StrayFault["kind"], message: string): void {
    this.#options.onStray({
      kind,
      subscriber: this.#context.getStore()?.subscriber,
      message: rawText(message),
    });
  }
}

function isListener(value: unknown): value is (...args: unknown[]) => void {
  return typeof value === "function";
}

function textOf(chunk: unknown, encoding: unknown): string {
  if (chunk instanceof Uint8Array) return Buffer.from(chunk).toString("utf8");
  if (typeof chunk !== "string") return "";
  const isText = typeof encoding !== "string" || !Buffer.isEncoding(encoding) || /^utf-?8$/i.test(encoding);
  return isText ? chunk : Buffer.from(chunk, encoding).toString("utf8");
}

function codeOf(code: unknown): string {
  if (typeof code === "number") return String(code);
  return typeof code === "string" && code.length <= 20 ? code : "";
}
