/** What a command file exports, and what its `run` is given. */
import { nearest } from "../config/spelling.js";
import { HookledgerError } from "../errors.js";
import type { ExitCode } from "./exit.js";
import type { Host } from "./host.js";
import type { Output } from "./output.js";
import { durationMs, momentMs } from "./time.js";

export type OptionSpec = {
  /** As commander has it: `--limit <n>`, `--all`. */
  readonly flags: string;
  readonly description: string;
};

export type Example = { readonly command: string; readonly does: string };

/** One file a command; `program.ts` lists them. */
export type CommandFile = {
  /** One word, or two for a command of a group: `list`, `audit export`. */
  readonly name: string;
  /** Starts with a small letter and ends without a full stop. */
  readonly summary: string;
  /** As commander has it: `<id>`, `[path]`, `[id...]`. */
  readonly args?: string;
  readonly options: readonly OptionSpec[];
  readonly examples: readonly Example[];
  /** Resolves with the exit code; throws a HookledgerError for every failure that is none of the result. */
  run(call: CommandCall): Promise<ExitCode>;
};

type CallParts = {
  readonly out: Output;
  readonly host: Host;
  /** URL */
  readonly store: string;
  /** File or folder. */
  readonly config: string;
  readonly args: readonly string[];
  /** By the option's long name without dashes, `older-than` as `olderThan`. */
  readonly options: ReadonlyMap<string, string | boolean>;
};

/** One invocation of a command. Every reader throws HL_USAGE where the option's value is not of its kind. */
export class CommandCall {
  readonly out: Output;
  readonly host: Host;
  readonly store: string;
  readonly config: string;
  readonly args: readonly string[];
  readonly #options: CallParts["options"];

  constructor({ out, host, store, config, args, options }: CallParts) {
    this.out = out;
    this.host = host;
    this.store = store;
    this.config = config;
    this.args = args;
    this.#options = options;
  }

  flag(name: string): boolean {
    return this.#options.get(name) === true;
  }

  text(name: string): string | undefined {
    const value = this.#options.get(name);
    return typeof value === "string" ? value : undefined;
  }

  whole(name: string, range: { readonly min: number; readonly max?: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const { min, max = Number.MAX_SAFE_INTEGER } = range;
    const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    const bounds = max === Number.MAX_SAFE_INTEGER ? `from ${min} on` : `from ${min} to ${max}`;
    throw badOption(name, `takes a whole number ${bounds}`);
  }

  oneOf<T extends string>(name: string, values: readonly T[]): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = values.find((known) => known === text);
    if (value === undefined) throw badOption(name, `takes ${values.join(", ")}`, nearest(text, values));
    return value;
  }

  /** ms since 1970, from ISO 8601 or a duration before `now`. */
  moment(name: string, now: number): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const moment = momentMs(text, now);
    if (moment === null)
      throw badOption(
        name,
        "takes a time, such as 2026-02-28T09:30:00Z or 2026-02-28, or a duration before now, such as 2h or 7d",
      );
    return moment;
  }

  /** ms */
  duration(name: string): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const duration = durationMs(text);
    if (duration === null) throw badOption(name, "takes a duration, such as 500ms, 30s, 10m, 2h or 7d");
    return duration;
  }
}

/** `meant`: what was probably to be written. */
function badOption(name: string, message: string, meant?: string): HookledgerError {
  return new HookledgerError(
    "HL_USAGE",
    `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)} ${message}`,
    meant === undefined ? {} : { hint: `Did you mean ${meant}?` },
  );
}
