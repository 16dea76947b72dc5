/** The configuration that a command works with, or what is wrong with it. */
import { resolveEnv } from "../config/env.js";
import { loadConfig } from "../config/load.js";
import type { Config } from "../config/types.js";
import { type ErrorCode, HookledgerError, type Place } from "../errors.js";
import { createRedactor, type Redactor } from "../payload/redaction.js";
import type { Output } from "./output.js";
import { foreign } from "./text.js";

/** A diagnostic, or what loading had to say of a place. */
export type Problem = {
  readonly code: ErrorCode;
  readonly message: string;
  readonly place: Place;
  readonly line?: string;
  readonly hint?: string;
};

/** Several errors at once; as an error it is the first of them. */
export class ConfigRejected extends HookledgerError {
  /** File or folder, as named on the command line. */
  readonly path: string;
  readonly problems: readonly Problem[];

  constructor(path: string, problems: readonly Problem[]) {
    const [first] = problems;
    super(
      first?.code ?? "HL_CONFIG",
      first?.message ?? "the configuration is rejected",
      first === undefined ? {} : { place: first.place, ...(first.hint === undefined ? {} : { hint: first.hint }) },
    );
    this.path = path;
    this.problems = problems;
  }
}

/** What the command line names. Throws HL_USAGE where that is nothing, as an unset variable of a script is. */
export async function loadNamed(path: string): ReturnType<typeof loadConfig> {
  if (path === "")
    throw new HookledgerError("HL_USAGE", "the path of the configuration is empty", {
      hint: "Name a file or a folder of *.hcl, or nothing for ./agent.hcl.",
    });
  return loadConfig(path);
}

/** Loads it and tells its warnings. Throws ConfigRejected, and what `loadNamed` throws. */
export async function configFor({ out }: { readonly out: Output }, path: string): Promise<Config> {
  const loaded = await loadNamed(path);
  tellWarnings(out, loaded.warnings);
  if (!loaded.ok) throw new ConfigRejected(path, loaded.errors);
  return loaded.config;
}

export function tellWarnings(out: Output, warnings: readonly Problem[]): void {
  for (const { place, message } of warnings)
    out.warn(`${foreign(place.file)}:${place.line}:${place.col}: ${foreign(message)}`);
}

/** Redacts as the kernel will; a variable that is not set is for the loader to complain about. */
export function redactorFor(config: Config, env: Readonly<Record<string, string | undefined>>): Redactor {
  const secrets = [...config.providers.values()].flatMap((provider) => {
    try {
      return resolveEnv(provider, env).secrets;
    } catch (error) {
      if (error instanceof HookledgerError && error.code === "HL_ENV_UNSET") return [];
      throw error;
    }
  });
  return createRedactor({ patterns: config.settings.redact, secrets });
}
