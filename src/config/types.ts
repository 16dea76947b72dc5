/** agent.hcl, resolved: typed, in textual order, every part with its place. */

import type { HookMode } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import type { PolicyRule } from "../core/policy.js";
import type { Place } from "../errors.js";

/** A literal from the configuration. `env("NAME")` stays as written until something is loaded. */
export type ConfigValue =
  | null
  | boolean
  | number
  | string
  | EnvReference
  | readonly ConfigValue[]
  | { readonly [key: string]: ConfigValue };
export class EnvReference {
  readonly env: string;
  readonly place: Place | undefined;
  constructor(env: string, place?: Place) {
    this.env = env;
    this.place = place;
  }
}

export type TlsFiles = {
  /** Paths, absolute after resolution. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
};

export type Source =
  | { readonly kind: "module"; readonly path: string }
  | { readonly kind: "host" }
  /** target: absolute socket path, or host:port. */
  | {
      readonly kind: "grpc";
      readonly transport: "unix" | "tcp" | "tls";
      readonly target: string;
      readonly insecure: boolean;
      readonly tls?: TlsFiles;
    }
  | { readonly kind: "plugin"; readonly path: string; readonly launch: PluginLaunch }
  | { readonly kind: "forge"; readonly address: string; readonly path?: string; readonly launch: PluginLaunch };

export type PluginLaunch = {
  readonly args: readonly string[];
  readonly env: readonly string[];
  /** ms, default 10 000. */
  readonly startTimeoutMs: number;
  readonly cookie?: { readonly key: string; readonly value: string | EnvReference };
  readonly protocolVersion?: number;
  readonly autoMtls: "auto" | "require" | "off";
};

export type Provider = {
  readonly name: string;
  /** As written, for messages and `producer.source`. */
  readonly sourceText: string;
  readonly source: Source;
  readonly version?: string;
  readonly sensitive: readonly string[];
  /** Body of `provider "<name>" { }`, or undefined without one. */
  readonly body?: { readonly [key: string]: ConfigValue };
  readonly place: Place;
};

export type Recording = "barrier" | "write-ahead";

export type Hook = {
  readonly point: HookPoint;
  readonly provider: string;
  readonly mode: HookMode;
  readonly id?: string;
  /** ms, whole, 1 to 600 000; undefined: the default. */
  readonly timeoutMs?: number;
  readonly recording?: Recording;
  readonly shadow: boolean;
  readonly place: Place;
};

export type Settings = {
  /** ms, default 5000. */
  readonly defaultHookTimeoutMs: number;
  readonly observeConcurrency: "concurrent" | "sequential" | "detached";
  readonly recording: Recording;
  readonly onStoreFailure: "abort" | "continue";
  readonly strict: boolean;
  /** RE2 patterns. */
  readonly redact: readonly string[];
  /** bytes, default 64 MiB. */
  readonly maxMessageBytes: number;
  /** ms or undefined. */
  readonly chainBudgetMs?: number;
  readonly hostLabel?: string;
  /** What the origin's schema has and this product does not interpret. */
  readonly kept: { readonly [key: string]: ConfigValue };
};

/** An `agent_profile` block: parsed and kept, not interpreted. An expression in it is kept as `${…}` text. */
export type Profile = {
  readonly name: string;
  readonly body: { readonly [key: string]: ConfigValue };
  readonly place: Place;
};

/** A policy rule with where it stands. */
export type PlacedRule = PolicyRule & { readonly place: Place };

export type Config = {
  /** Files read, sorted by the bytes of their base name. */
  readonly files: readonly string[];
  readonly providers: ReadonlyMap<string, Provider>;
  /** In textual order. */
  readonly hooks: readonly Hook[];
  readonly policy: readonly PlacedRule[];
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly settings: Settings;
  /**
   * RFC 8785 text of the whole configuration with env("NAME") as written and no machine's paths (sources as written,
   * places by base name). Its digest (domain "config") is `started.configDigest`; the text is archived under it.
   */
  readonly canonical: string;
};

export type Diagnostic = {
  readonly severity: "error" | "warning";
  readonly code:
    | "HL_CONFIG"
    | "HL_CONFIG_UNREADABLE"
    | "HL_LIMIT_CONFIG"
    | "HL_LIMIT_DEPTH"
    | "HL_LIMIT_SUBSCRIBERS"
    | "HL_SOURCE_UNSUPPORTED"
    | "HL_ENV_UNSET";
  readonly message: string;
  readonly place: Place;
  /** The offending line of the file, controls escaped, cut to 200 characters. */
  readonly line?: string;
  readonly hint?: string;
};

export type ConfigResult =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly Diagnostic[] }
  | { readonly ok: false; readonly errors: readonly Diagnostic[]; readonly warnings: readonly Diagnostic[] };
