/** From a configuration to subscribers that can be called. Only what a hook names is loaded; nothing else is touched. */

import { resolveEnv } from "../config/env.js";
import type { Config, Hook, Provider } from "../config/types.js";
import type { Producer } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import { quoted } from "../goplugin/quote.js";
import type { Containment } from "./containment.js";
import { deepFreeze } from "./deep-freeze.js";
import { connectGrpc, GrpcSubscriber } from "./grpc.js";
import type { NeededHook } from "./handler-table.js";
import type { HookConfig, HookHandlers } from "./handlers.js";
import { bindHost } from "./host.js";
import type { LogSink } from "./log.js";
import { loadModule } from "./module.js";
import { checkPeer, toldBy, uncheckedVersion } from "./peer-checks.js";
import { isPlugin, pluginOf } from "./plugin/plugin-of.js";
import { attachedTo, REATTACH_VARIABLE, readAttachments } from "./plugin/reattach.js";
import type { RestartPolicy } from "./plugin/restart.js";
import type { PluginSupervisor } from "./plugin/supervisor.js";
import type { Reach, Startable, SubscriberTransport } from "./port.js";

export type LoadParts = {
  /** Functions for providers with `source = "host"`, by provider name. */
  readonly host?: Readonly<Record<string, HookHandlers>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: LogSink;
  /** Takes out of what plugins say what must not be shown; asked for nothing before all is loaded. */
  readonly redact?: (text: string) => string;
  /** Only where the program owns the process. */
  readonly containment?: Containment;
  /** ms that a gRPC peer or a plugin has to describe itself, 2 000 by default. */
  readonly describeTimeoutMs?: number;
  /** When a plugin that ended is started again. */
  readonly restart?: RestartPolicy;
};

export type LoadedProviders = {
  readonly byName: ReadonlyMap<string, Startable>;
  /** Every value that an `env()` stood for, for the redactor. */
  readonly secrets: readonly string[];
  /** What there is to say of what stands, for a person. */
  readonly warnings: () => readonly string[];
  /**
   * Starts the plugins among these providers, side by side; of all providers by default. Never rejects: gives why some do not run,
   * HL_PLUGIN_START (it did not come up) or HL_SUBSCRIBER_LOAD (not the version or the points that are asked for).
   */
  readonly start: (names?: ReadonlySet<string>) => Promise<readonly HookledgerError[]>;
  /** Closes every transport and ends every plugin. Idempotent. */
  readonly close: () => Promise<void>;
};

const DESCRIBE_TIMEOUT_MS = 2_000;

/**
 * Starts no plugin, and a gRPC peer need not be there. Throws, for the first provider that cannot be had, HL_SUBSCRIBER_LOAD,
 * HL_SOURCE_UNSUPPORTED (a forge address that is not installed) or HL_ENV_UNSET, with its place, and HL_USAGE for a reattach
 * variable that cannot be read; what was loaded before is closed.
 */
export async function loadProviders(config: Config, parts: LoadParts): Promise<LoadedProviders> {
  const { describeTimeoutMs = DESCRIBE_TIMEOUT_MS } = parts;
  const { maxMessageBytes } = config.settings;
  const plugins = new Map<string, PluginSupervisor>();
  const transports: SubscriberTransport[] = [];
  const secrets = new Set<string>();
  const close = async () => {
    await Promise.all([...plugins.values(), ...transports].map((one) => one.close()));
  };
  try {
    const attachments = readAttachments(parts.env);
    const describing = new Map<string, Promise<Standing>>();
    const warnings: string[] = [];
    // One after the other: modules are imported in textual order. The peers meanwhile describe themselves side by side.
    for (const [provider, hooks] of neededProviders(config)) {
      const resolved = resolveEnv(provider, parts.env);
      for (const secret of resolved.secrets) secrets.add(secret);
      const body = deepFreeze(resolved.body);
      const attachment = attachments.get(provider.name);
      if (isPlugin(provider) && attachment === undefined) {
        const pluginParts = { ...parts, body, cookie: resolved.cookie, describeTimeoutMs, maxMessageBytes };
        plugins.set(provider.name, await pluginOf(provider, hooks, pluginParts));
        continue;
      }
      const reached = attachment === undefined ? provider : attachedTo(provider, attachment);
      if (attachment !== undefined) {
        warnings.push(
          reached === provider
            ? `${REATTACH_VARIABLE} names "${provider.name}", which is no plugin: it stays as it is`
            : `"${provider.name}" is asked where ${REATTACH_VARIABLE} says it listens; its plugin is not started`,
        );
      }
      const transport = await open(reached, hooks, body, config, parts);
      transports.push(transport);
      const standing = standingOf(reached, hooks, transport, describeTimeoutMs);
      // Looked at below, unless another provider fails before.
      standing.catch(() => {});
      describing.set(provider.name, standing);
    }
    const byName = new Map<string, Startable>(plugins);
    for (const name of attachments.keys()) {
      if (!plugins.has(name) && !describing.has(name)) {
        warnings.push(`${REATTACH_VARIABLE} names ${quoted(name, 64)}, which no hook calls here`);
      }
    }
    for (const [name, standing] of describing) {
      const { reach, warning } = await standing;
      byName.set(name, { now: reach, due: false, failing: false, ready: async () => reach });
      if (warning !== null) warnings.push(warning);
    }
    return {
      byName,
      secrets: [...secrets],
      warnings: () => [...warnings, ...[...plugins.values()].flatMap(({ warning }) => warning ?? [])],
      start: (names) => start(plugins, names),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function start(
  plugins: ReadonlyMap<string, PluginSupervisor>,
  names: ReadonlySet<string> | undefined,
): Promise<readonly HookledgerError[]> {
  const wanted = [...plugins].filter(([name]) => names?.has(name) ?? true);
  await Promise.all(wanted.map(([, plugin]) => plugin.startNow()));
  return wanted.flatMap(([, { fault }]) => fault ?? []);
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
      throw new HookledgerError("HL_INTERNAL", `"${provider.name}" is to be started`);
  }
}

type Standing = { readonly reach: Reach; readonly warning: string | null };

/** Checks what a peer says of itself against the configuration; who says nothing is not checked. */
async function standingOf(
  provider: Provider,
  needed: readonly NeededHook[],
  transport: SubscriberTransport,
  describeTimeoutMs: number,
): Promise<Standing> {
  const producer: Producer = { name: provider.name, source: provider.sourceText };
  if (!(transport instanceof GrpcSubscriber)) return { reach: { transport, producer }, warning: null };
  const description = await transport.describe(describeTimeoutMs);
  if (description === "absent") {
    const warning = `provider "${provider.name}": nobody answers at ${provider.sourceText}; until somebody does, its hooks fail`;
    return { reach: { transport, producer }, warning };
  }
  if (description === null) return { reach: { transport, producer }, warning: uncheckedVersion(provider) };
  checkPeer(provider, needed, description);
  return { reach: { transport, producer: toldBy(description, producer) }, warning: null };
}
