/** Everything that one plugin process writes, on its way into our log. */

import { type Logger, type LogSink, loggerFor } from "../log.js";
import { FloodGate } from "./flood.js";
import { LineSplitter, lineText } from "./lines.js";
import { readLogLine } from "./log-line.js";
import type { LifeClock } from "./time.js";

const TAIL_LINES = 64;
/** UTF-16 units */
const MAX_TAIL_LINE = 2_048;
/** What the Go runtime begins with when it gives up: all that follows belongs to it. */
const COLLAPSE = /^(?:panic: |fatal error: )/;
/** How a line begins in which a program says what was wrong. */
const TELLING = /^(?:panic: |fatal error: |(?:Uncaught )?[A-Za-z.]*(?:Error|Exception)\b|error\b)/i;

const OPENING_BRACE = 0x7b;
/** bytes at the end of a chunk that are read although nothing is logged */
const SKIMMED_BYTES = 1_024;

/** Bytes in, as they come. */
export type LogStream = { push(chunk: Buffer): void; end(): void };

export class PluginLog {
  readonly #provider: string;
  readonly #log: Logger;
  readonly #redact: (text: string) => string;
  readonly #gate: FloodGate;
  /** Lines without a level of their own, the last ones. */
  readonly #tail: string[] = [];
  /** The last line that it called an error itself. */
  #lastError: string | null = null;
  #count = 0;
  #collapsing = false;

  constructor(provider: string, sink: LogSink, clock: LifeClock, redact: (text: string) => string) {
    this.#provider = provider;
    this.#redact = redact;
    this.#log = loggerFor(provider, sink);
    this.#gate = new FloodGate(clock, (message) => this.#log.warn(message));
  }

  /** For one stream. What the process writes to stderr also tells why it ended. */
  stream(name: "stdout" | "stderr"): LogStream {
    const splitter = new LineSplitter((line, cut) => {
      const admitted = this.#gate.admits(line.length + 1);
      if (!admitted) this.#gate.leaveOut(cut);
      // What is left out is read only for what it may tell of an end, which JSON never does.
      if (!admitted && (name === "stdout" || line[0] === OPENING_BRACE)) return;
      this.#take(lineText(line, cut, this.#redact), name, admitted);
    });
    return {
      push: (chunk) => {
        if (this.#gate.shut) this.#gate.leaveOut(splitter.skim(chunk, SKIMMED_BYTES));
        else splitter.push(chunk);
      },
      end: () => splitter.end(),
    };
  }

  /** What it last said on stderr of its own accord, short and without a stack; null when it said nothing. */
  get lastWords(): string | null {
    const telling = this.#tail.findLast((line) => TELLING.test(line));
    if (telling !== undefined) return telling;
    if (this.#count > 0 && this.#count <= 4) return this.#tail.join(" ");
    return this.#tail.at(-1) ?? this.#lastError;
  }

  /** For an end that nobody asked for: what it wrote last becomes findable. `how`: "exited with code 2". */
  explain(how: string): void {
    this.#gate.flush();
    // All of it is in the log as it came.
    if (this.#collapsing) return;
    for (const line of this.#tail) this.#log.error(`before it ${how}: ${line}`);
  }

  /** Of the host's own. */
  warn(message: string): void {
    this.#log.warn(message);
  }

  /** Nothing more comes. */
  end(): void {
    this.#gate.flush();
  }

  #take(text: string, stream: "stdout" | "stderr", admitted: boolean): void {
    const { level, message, labelled } = readLogLine(text, this.#provider);
    const own = stream === "stderr" && !labelled;
    if (own) this.#remember(text);
    else if (level === "error") this.#lastError = message.slice(0, MAX_TAIL_LINE);
    if (own) this.#collapsing = admitted && (this.#collapsing || COLLAPSE.test(text));
    if (admitted) this.#log[own && this.#collapsing ? "error" : level](message);
  }

  #remember(text: string): void {
    if (text.trim() === "") return;
    this.#count++;
    this.#tail.push(text.slice(0, MAX_TAIL_LINE));
    if (this.#tail.length > TAIL_LINES) this.#tail.shift();
  }
}
