/** From a configuration to subscribers that can be called. Only what a hook names is loaded; nothing else is touched. */

import { resolveEnv } from "../config/env.js";
import type { Config, Hook, Provider } from "../config/types.js";
import type { Producer } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { Containment } from "./containment.js";
import { connectGrpc, type GrpcSubscriber } from "./grpc.js";
import { loadError, type NeededHook } from "./handler-table.js";
import type { HookConfig, HookHandlers } from "./handlers.js";
import { bindHost } from "./host.js";
import type { LogSink } from "./log.js";
import { loadModule } from "./module.js";
import type { PeerDescription } from "./plugin-info.js";
import type { SubscriberTransport } from "./port.js";
import { parseConstraint, satisfies } from "./version.js";

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

export type LoadedProvider = { readonly transport: SubscriberTransport; readonly producer: Producer };

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
 * A gRPC peer need not be there. Throws, for the first provider in textual order that cannot be had, HL_SUBSCRIBER_LOAD,
 * HL_SOURCE_UNSUPPORTED or HL_ENV_UNSET, with its place; what was loaded before is closed.
 */
export async function loadProviders(config: Config, parts: LoadParts): Promise<LoadedProviders> {
  const loaded = new Map<string, LoadedProvider>();
  const secrets = new Set<string>();
  const warnings: string[] = [];
  const close = async () => {
    await Promise.all([...loaded.values()].map(({ transport }) => transport.close()));
  };
  try {
    for (const [provider, needed] of neededProviders(config)) {
      const resolved = resolveEnv(provider, parts.env);
      for (const secret of resolved.secrets) secrets.add(secret);
      loaded.set(provider.name, await loadOne(provider, needed, resolved.body, config, parts, warnings));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { byName: loaded, secrets: [...secrets], warnings, close };
}

/** In the order in which hooks first name them. */
function neededProviders(config: Config): Map<Provider, Hook[]> {
  const needed = new Map<Provider, Hook[]>();
  for (const hook of config.hooks) {
    const provider = config.providers.get(hook.provider);
    if (provider === undefined)
      throw new HookledgerError("HL_CONFIG", `no provider "${hook.provider}"`, { place: hook.place });
    const hooks = needed.get(provider) ?? [];
    needed.set(provider, hooks);
    hooks.push(hook);
  }
  return needed;
}

async function loadOne(
  provider: Provider,
  needed: readonly NeededHook[],
  body: HookConfig,
  config: Config,
  parts: LoadParts,
  warnings: string[],
): Promise<LoadedProvider> {
  const producer: Producer = { name: provider.name, source: provider.sourceText };
  const options = { config: deepFreeze(body), log: parts.log };
  switch (provider.source.kind) {
    case "module": {
      const { containment } = parts;
      const transport = await loadModule(provider, needed, {
        ...options,
        ...(containment === undefined ? {} : { containment }),
      });
      return { transport, producer };
    }
    case "host":
      return { transport: bindHost(provider, needed, parts.host ?? {}, options), producer };
    case "grpc": {
      const transport = await connectGrpc(provider, { maxMessageBytes: config.settings.maxMessageBytes });
      return { transport, producer: await describedProducer(provider, needed, transport, producer, parts, warnings) };
    }
    case "plugin":
    case "forge":
      throw new HookledgerError(
        "HL_SOURCE_UNSUPPORTED",
        `provider "${provider.name}": ${provider.sourceText} needs the plugin host, which this build does not have`,
        { place: provider.place, hint: "Reach it over gRPC (grpc+unix:, grpc:, grpcs:), or load it as a module." },
      );
  }
}

/** Checks what the peer says of itself against the configuration; a peer that says nothing is not checked. */
async function describedProducer(
  provider: Provider,
  needed: readonly NeededHook[],
  subscriber: GrpcSubscriber,
  producer: Producer,
  parts: LoadParts,
  warnings: string[],
): Promise<Producer> {
  try {
    const description = await subscriber.describe(parts.describeTimeoutMs ?? DESCRIBE_TIMEOUT_MS);
    if (description === null) {
      if (provider.version !== undefined) {
        warnings.push(
          `provider "${provider.name}": version ${provider.version} is not checked, the peer does not tell its own`,
        );
      }
      return producer;
    }
    checkPoints(provider, needed, description);
    checkVersion(provider, description);
    const { version, category } = description;
    return {
      ...producer,
      ...(version === "" ? {} : { version }),
      ...(category === undefined ? {} : { category }),
    };
  } catch (error) {
    await subscriber.close();
    throw error;
  }
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
