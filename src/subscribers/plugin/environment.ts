/** What a plugin gets to see of the environment: what is listed here, and never the host's own. */

import type { Provider } from "../../config/types.js";
import { type Cookie, PLUGIN_ENV } from "../../goplugin/protocol.js";
import type { HookConfig } from "../handlers.js";

type Environment = Readonly<Record<string, string | undefined>>;

/** What is known of the plugin before it runs. */
export type KnownProducer = { readonly category?: string; readonly version?: string };

/**
 * PATH, HOME and what the provider's `env` names, each where it is set: a plugin that needs a variable is the one to say that it is
 * missing. Then its producer attributes, behind any that the operator lets through, and the body of its `provider` block.
 */
export function pluginEnvironment(
  { name, source, body }: Provider,
  env: Environment,
  config: HookConfig,
  known: KnownProducer = {},
): Readonly<Record<string, string>> {
  const named = "launch" in source ? source.launch.env : [];
  const passed = new Map<string, string>();
  for (const variable of ["PATH", "HOME", ...named]) {
    const value = Object.hasOwn(env, variable) ? env[variable] : undefined;
    if (value !== undefined) passed.set(variable, value);
  }
  passed.set(
    RESOURCE,
    [passed.get(RESOURCE) ?? "", producerAttributes(name, known)].filter((list) => list !== "").join(","),
  );
  if (body !== undefined) passed.set(PLUGIN_ENV.config, JSON.stringify(config));
  return Object.fromEntries(passed);
}

const RESOURCE = "OTEL_RESOURCE_ATTRIBUTES";

/** Pairs of OpenTelemetry's resource variable: values percent-encoded. */
function producerAttributes(name: string, { category, version }: KnownProducer): string {
  return Object.entries({ category, name, version })
    .flatMap(([key, value]) =>
      value === undefined ? [] : [`pluggableharness.producer.${key}=${encodeURIComponent(value.toWellFormed())}`],
    )
    .join(",");
}

/** What a start adds. */
export type StartVariables = {
  readonly cookie: Cookie;
  readonly protocolVersion: number;
  readonly folder: string;
  /** PEM, or null where AutoMTLS is not offered. */
  readonly certificate: string | null;
};

/** Of go-plugin's protocol: a start's to say, whatever the operator lets through. */
const RESERVED = [
  PLUGIN_ENV.protocolVersions,
  PLUGIN_ENV.clientCertificate,
  PLUGIN_ENV.socketFolder,
  "PLUGIN_UNIX_SOCKET_GROUP",
  "PLUGIN_MULTIPLEX_GRPC",
];

export function startEnvironment(
  passed: Readonly<Record<string, string>>,
  { cookie, protocolVersion, folder, certificate }: StartVariables,
): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries(Object.entries(passed).filter(([variable]) => !RESERVED.includes(variable))),
    [cookie.key]: cookie.value,
    [PLUGIN_ENV.protocolVersions]: String(protocolVersion),
    [PLUGIN_ENV.socketFolder]: folder,
    ...(certificate === null ? {} : { [PLUGIN_ENV.clientCertificate]: certificate }),
    TMPDIR: folder,
  };
}
