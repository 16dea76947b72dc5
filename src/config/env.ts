import { HookledgerError, type Place } from "../errors.js";
import { type ConfigValue, EnvReference, type Provider } from "./types.js";

/** Shorter ones would redact half of every text. In UTF-16 units. */
const MIN_SECRET_CHARS = 6;

type Environment = Readonly<Record<string, string | undefined>>;

/** A value in which no `env()` is left. */
type ResolvedValue =
  | null
  | boolean
  | number
  | string
  | readonly ResolvedValue[]
  | { readonly [key: string]: ResolvedValue };

/** What the variables held, each once, where it is long enough to be redacted (6 characters). */
type Secrets = readonly string[];

type Resolved = {
  readonly body: { readonly [key: string]: ResolvedValue };
  /** Of a plugin whose cookie is configured. */
  readonly cookie?: { readonly key: string; readonly value: string };
  readonly secrets: Secrets;
};

/** A provider's body and its plugin's cookie, with the environment in them. Throws HL_ENV_UNSET with its place. */
export function resolveEnv({ body, source, place }: Provider, env: Environment): Resolved {
  const resolver = new Resolver(env, place);
  const resolved = resolver.object(body ?? {});
  const cookie = source.kind === "plugin" || source.kind === "forge" ? source.launch.cookie : undefined;
  const value = cookie === undefined ? "" : resolver.text(cookie.value);
  return {
    body: resolved,
    ...(cookie === undefined ? {} : { cookie: { key: cookie.key, value } }),
    secrets: [...resolver.secrets],
  };
}

class Resolver {
  readonly secrets = new Set<string>();
  readonly #env: Environment;
  /** Of a reference that knows none. */
  readonly #place: Place;

  constructor(env: Environment, place: Place) {
    this.#env = env;
    this.#place = place;
  }

  value(value: ConfigValue): ResolvedValue {
    if (value === null || typeof value !== "object") return value;
    if (value instanceof EnvReference) return this.#variable(value);
    return isList(value) ? value.map((item) => this.value(item)) : this.object(value);
  }

  object(object: { readonly [key: string]: ConfigValue }): { readonly [key: string]: ResolvedValue } {
    return Object.fromEntries(Object.entries(object).map(([key, member]) => [key, this.value(member)]));
  }

  text(value: string | EnvReference): string {
    return typeof value === "string" ? value : this.#variable(value);
  }

  #variable({ env: name, place = this.#place }: EnvReference): string {
    const value = Object.hasOwn(this.#env, name) ? this.#env[name] : undefined;
    if (value === undefined) {
      throw new HookledgerError("HL_ENV_UNSET", `the environment variable ${name} is not set`, {
        place,
        hint: `set ${name} where hookledger runs`,
      });
    }
    if (value.length >= MIN_SECRET_CHARS) this.secrets.add(value);
    return value;
  }
}

function isList(
  value: readonly ConfigValue[] | { readonly [key: string]: ConfigValue },
): value is readonly ConfigValue[] {
  return Array.isArray(value);
}
