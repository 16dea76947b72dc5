/** The process that the command line owns: its signals, its end, and the modules inside it. */
import { type Containment, type ContainmentOptions, contain } from "../subscribers/containment.js";
import { EXIT, type ExitCode } from "./exit.js";

type Signal = "SIGINT" | "SIGTERM";

const SIGNALS: Readonly<Record<Signal, ExitCode>> = { SIGINT: EXIT.interrupted, SIGTERM: EXIT.terminated };

/** What commands ask of the process. */
export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  /** From here on modules run in this process; until its end they can neither end it nor write to stdout. */
  contain(options: ContainmentOptions): Containment;
  /** The next SIGINT or SIGTERM is `handle`'s, with the exit code that it stands for; the one after that ends the process. */
  onInterrupt(handle: (code: ExitCode) => void): void;
  /** Exit code of a process that ends before its command has one. */
  failWith(code: ExitCode): void;
}

export class ProcessHost implements Host {
  readonly env = process.env;
  #failure: ExitCode = EXIT.internal;
  #containment: Containment | null = null;
  #interrupt: ((code: ExitCode) => void) | null = null;

  /** Until a command comes to an exit code, every end of the process is a failure. */
  constructor() {
    this.failWith(EXIT.internal);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => this.#signalled(signal));
    // Nothing is left to wait for and no command has come to an end; whatever a module made of the exit code.
    process.on("beforeExit", () => this.exit(this.#failure));
  }

  get stdin(): AsyncIterable<Uint8Array | string> {
    return process.stdin;
  }

  get contained(): boolean {
    return this.#containment !== null;
  }

  contain(options: ContainmentOptions): Containment {
    this.#containment ??= contain(options);
    return this.#containment;
  }

  onInterrupt(handle: (code: ExitCode) => void): void {
    this.#interrupt = handle;
  }

  failWith(code: ExitCode): void {
    this.#failure = code;
    process.exitCode = code;
  }

  /** In one turn: no module gets a word in. */
  exit(code: ExitCode): never {
    if (this.#containment !== null) this.#containment.exit(code);
    process.exit(code);
  }

  #signalled(signal: Signal): void {
    const interrupt = this.#interrupt;
    if (interrupt === null) this.exit(SIGNALS[signal]);
    this.#interrupt = null;
    interrupt(SIGNALS[signal]);
  }
}
