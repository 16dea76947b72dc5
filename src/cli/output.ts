/** Where a command prints: results to stdout, everything else to stderr. */
import { HookledgerError } from "../errors.js";
import { createStyle, type Style, wantsColor } from "./style.js";
import { jsonText } from "./text.js";

/** What an output needs of a stream; `process.stdout` and `process.stderr` are such. */
export interface OutputStream {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string, done: (error?: Error | null) => void): boolean;
  on(event: "error", listener: (error: Error) => void): unknown;
}

export type OutputOptions = {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly verbose?: boolean;
  /** false: `--no-color` */
  readonly color?: boolean;
};

const CLEAR_LINE = "\r\u001b[2K";
/** Of a terminal that does not tell. */
const DEFAULT_COLUMNS = 80;
/** ms between two pictures of the progress line */
const PROGRESS_INTERVAL = 100;

/**
 * Texts are expected to be safe to print: foreign text goes through `foreign` first. Lines are given without their line
 * break.
 */
export class Output {
  readonly json: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  /** For what goes to stdout. */
  readonly style: Style;
  /** For what goes to stderr. */
  readonly noteStyle: Style;
  /** Is there somebody at stderr to watch progress? */
  readonly isTerminal: boolean;
  /** Of the terminal that shows the result, if one does. */
  readonly columns: number | undefined;
  readonly #stdout: OutputStream;
  readonly #stderr: OutputStream;
  #redact: (text: string) => string = (text) => text;
  #noted: Promise<void> = Promise.resolve();
  #readerGone = false;
  #progressAt = 0;
  #progressShown = false;

  constructor({ stdout, stderr, env, json = false, quiet = false, verbose = false, color = true }: OutputOptions) {
    this.json = json;
    this.quiet = quiet;
    this.verbose = verbose;
    this.isTerminal = stderr.isTTY === true;
    this.columns = stdout.isTTY === true ? stdout.columns : undefined;
    this.style = createStyle(color && wantsColor(stdout.isTTY === true, env));
    this.noteStyle = createStyle(color && wantsColor(this.isTerminal, env));
    this.#stdout = stdout;
    this.#stderr = stderr;
    // Each write learns of its own failure; without a listener the stream would throw it at the process as well.
    for (const stream of [stdout, stderr]) stream.on("error", () => {});
  }

  /**
   * A line (or several) of the result. Resolves once it is written out: true, or false if the reader has gone away, and then there
   * is no use in going on. Throws HL_OUTPUT if stdout cannot be written for another reason.
   */
  async print(text: string): Promise<boolean> {
    if (this.#readerGone) return false;
    this.#clearProgress();
    const error = await written(this.#stdout, `${text}\n`);
    if (error === null) return true;
    if (isGone(error)) {
      this.#readerGone = true;
      return false;
    }
    throw new HookledgerError("HL_OUTPUT", `the result cannot be written: ${error.message}`, { cause: error });
  }

  /** From here on `redacted` takes out what the operator named as secret. */
  redactWith(redactor: { text(text: string): string }): void {
    this.#redact = (text) => redactor.text(text);
  }

  /** For diagnostics that may quote a payload or a subscriber: before the text is cut or escaped. */
  redacted(text: string): string {
    return this.#redact(text);
  }

  /** One JSON document on one line of the result; else as `print`. */
  document(value: unknown): Promise<boolean> {
    return this.print(jsonText(value));
  }

  /** A line about the work, which is not its result. */
  note(text: string): void {
    if (!this.quiet) this.error(text);
  }

  /** Something that the reader should know of, which stopped nothing. */
  warn(text: string): void {
    this.note(`${this.noteStyle.yellow("warning:")} ${text}`);
  }

  /** A line that only `--verbose` shows. */
  detail(text: string): void {
    if (this.verbose) this.note(text);
  }

  /** A line on stderr, also with `--quiet`. */
  error(text: string): void {
    this.#clearProgress();
    this.#toStderr(`${text}\n`);
  }

  /** Replaces the progress line, on a terminal; the next line of anything takes it away. */
  progress(text: string): void {
    if (!this.isTerminal || this.quiet) return;
    const now = performance.now();
    if (this.#progressShown && now - this.#progressAt < PROGRESS_INTERVAL) return;
    this.#progressAt = now;
    this.#progressShown = true;
    const line = Array.from(text).slice(0, (this.#stderr.columns || DEFAULT_COLUMNS) - 1);
    this.#toStderr(`${CLEAR_LINE}${this.noteStyle.dim(line.join(""))}`);
  }

  /** Resolves once everything is written out. */
  async flush(): Promise<void> {
    this.#clearProgress();
    await this.#noted;
  }

  #clearProgress(): void {
    if (!this.#progressShown) return;
    this.#progressShown = false;
    this.#toStderr(CLEAR_LINE);
  }

  #toStderr(text: string): void {
    const done = written(this.#stderr, text);
    this.#noted = this.#noted.then(async () => {
      await done;
    });
  }
}

function written(stream: OutputStream, text: string): Promise<Error | null> {
  return new Promise((resolve) => {
    stream.write(text, (error) => resolve(error ?? null));
  });
}

function isGone(error: Error): boolean {
  return "code" in error && (error.code === "EPIPE" || error.code === "ERR_STREAM_DESTROYED");
}
