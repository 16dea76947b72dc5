/** From a configuration to subscribers that can be called. Only what a hook names is loaded; nothing else is touched. */

import { resolveEnv } from "../config/env.js";
import type { Config, Hook, Provider } from "../config/types.js";
import { parseConstraint, satisfies } from "../config/version.js";
import type { Producer } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { Containment } from "./containment.js";
import { connectGrpc, GrpcSubscriber } from "./grpc.js";
import { loadError, type NeededHook } from "./handler-table.js";
import type { HookConfig, HookHandlers } from "./handlers.js";
import { bindHost } from "./host.js";
import type { LogSink } from "./log.js";
import { loadModule } from "./module.js";
import type { PeerDescription } from "./plugin-info.js";
import type { SubscriberTransport } from "./port.js";

export type LoadParts = {
  /** Functions for providers with `source = "host"`, by provider name. */
  readonly host?: Readonly<Record<string, HookHandlers>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: LogSink;
  /** Only where the program owns the process. */
  readonly containment?: Containment;
  /** ms that a gRPC peer has to describe itself, 2 000 by default. */
  readonly describeTimeoutMs?: number;
};

type LoadedProvider = { readonly transport: SubscriberTransport; readonly producer: Producer };

export type LoadedProviders = {
  readonly byName: ReadonlyMap<string, LoadedProvider>;
  /** Every value that an `env()` stood for, for the redactor. */
  readonly secrets: readonly string[];
  readonly warnings: readonly string[];
  /** Closes every transport. Idempotent. */
  readonly close: () => Promise<void>;
};

const DESCRIBE_TIMEOUT_MS = 2_000;

/**
 * A gRPC peer need not be there. Throws, for the first provider that cannot be had, HL_SUBSCRIBER_LOAD, HL_SOURCE_UNSUPPORTED
 * or HL_ENV_UNSET, with its place; what was loaded before is closed.
 */
export async function loadProviders(config: Config, parts: LoadParts): Promise<LoadedProviders> {
  const transports = new Map<Provider, SubscriberTransport>();
  const secrets = new Set<string>();
  const close = async () => {
    await Promise.all([...transports.values()].map((transport) => transport.close()));
  };
  try {
    const needed = neededProviders(config);
    const described: Promise<Described>[] = [];
    // One after the other: modules are imported in textual order. The peers meanwhile describe themselves side by side.
    for (const [provider, hooks] of needed) {
      const { body, secrets: own } = resolveEnv(provider, parts.env);
      for (const secret of own) secrets.add(secret);
      const transport = await open(provider, hooks, deepFreeze(body), config, parts);
      transports.set(provider, transport);
      const describing = producerOf(provider, hooks, transport, parts);
      // Looked at below, unless another provider fails before.
      describing.catch(() => {});
      described.push(describing);
    }
    const byName = new Map<string, LoadedProvider>();
    const warnings: string[] = [];
    for (const description of described) {
      const { producer, transport, warning } = await description;
      byName.set(producer.name, { producer, transport });
      if (warning !== undefined) warnings.push(warning);
    }
    return { byName, secrets: [...secrets], warnings, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** In the order in which hooks first name them. */
function neededProviders(config: Config): Map<Provider, Hook[]> {
  const needed = new Map<Provider, Hook[]>();
  for (const hook of config.hooks) {
    const provider = config.providers.get(hook.provider);
    if (provider === undefined) throw undeclared(hook);
    const hooks = needed.get(provider) ?? [];
    needed.set(provider, hooks);
    hooks.push(hook);
  }
  return needed;
}

function undeclared(hook: Hook): HookledgerError {
  return new HookledgerError("HL_CONFIG", `no provider "${hook.provider}"`, { place: hook.place });
}

async function open(
  provider: Provider,
  needed: readonly NeededHook[],
  body: HookConfig,
  config: Config,
  parts: LoadParts,
): Promise<SubscriberTransport> {
  const options = { config: body, log: parts.log };
  switch (provider.source.kind) {
    case "module": {
      const { containment } = parts;
      return loadModule(provider, needed, containment === undefined ? options : { ...options, containment });
    }
    case "host":
      return bindHost(provider, needed, parts.host ?? {}, options);
    case "grpc":
      return connectGrpc(provider, { maxMessageBytes: config.settings.maxMessageBytes });
    case "plugin":
    case "forge":
      throw new HookledgerError(
        "HL_SOURCE_UNSUPPORTED",
        `provider "${provider.name}": ${provider.sourceText} needs the plugin host, which this build does not have`,
        { place: provider.place, hint: "Reach it over gRPC (grpc+unix:, grpc:, grpcs:), or load it as a module." },
      );
  }
}

type Described = LoadedProvider & { readonly warning?: string };

/** Checks what a peer says of itself against the configuration; who says nothing is not checked. */
async function producerOf(
  provider: Provider,
  needed: readonly NeededHook[],
  transport: SubscriberTransport,
  parts: LoadParts,
): Promise<Described> {
  const producer: Producer = { name: provider.name, source: provider.sourceText };
  if (!(transport instanceof GrpcSubscriber)) return { transport, producer };
  const description = await transport.describe(parts.describeTimeoutMs ?? DESCRIBE_TIMEOUT_MS);
  if (description === "absent") {
    const warning = `provider "${provider.name}": nobody answers at ${provider.sourceText}; until somebody does, its hooks fail`;
    return { transport, producer, warning };
  }
  if (description === null) {
    if (provider.version === undefined) return { transport, producer };
    const warning = `provider "${provider.name}": version ${provider.version} is not checked, the peer does not tell its own`;
    return { transport, producer, warning };
  }
  checkPoints(provider, needed, description);
  checkVersion(provider, description);
  const { version, category } = description;
  const told = { ...(version === "" ? {} : { version }), ...(category === undefined ? {} : { category }) };
  return { transport, producer: { ...producer, ...told } };
}

function checkPoints(provider: Provider, needed: readonly NeededHook[], description: PeerDescription): void {
  const supported = description.supportedHookPoints;
  const missing = needed.find(({ point }) => supported.length > 0 && !supported.includes(point));
  if (missing !== undefined) throw loadError(provider, `the peer does not support ${missing.point}`);
}

function checkVersion(provider: Provider, description: PeerDescription): void {
  if (provider.version === undefined) return;
  const constraint = parseConstraint(provider.version);
  if (constraint === null) throw loadError(provider, `"${provider.version}" is no version constraint`);
  const told = description.version === "" ? "no version" : `version "${description.version}"`;
  if (satisfies(description.version, constraint) !== true) {
    throw loadError(provider, `the peer has ${told}, and ${provider.version} is required`);
  }
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}
