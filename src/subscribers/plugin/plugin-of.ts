/** From the configuration of a plugin to one that can be started. */

import type { Provider, Source } from "../../config/types.js";
import { HookledgerError } from "../../errors.js";
import { APP_PROTOCOL_VERSION, type Cookie, KERNEL_COOKIE } from "../../goplugin/protocol.js";
import { loadError, type NeededHook } from "../handler-table.js";
import type { HookConfig } from "../handlers.js";
import type { LogSink } from "../log.js";
import { pluginEnvironment } from "./environment.js";
import { unfitExecutable } from "./executable.js";
import { RESTART_POLICY, type RestartPolicy } from "./restart.js";
import { PluginSupervisor } from "./supervisor.js";

export type PluginProvider = Provider & { readonly source: Extract<Source, { kind: "plugin" | "forge" }> };

export type PluginParts = {
  /** Body of the `provider` block, resolved. */
  readonly body: HookConfig;
  /** The configured one, resolved. */
  readonly cookie: Cookie | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: LogSink;
  readonly redact?: (text: string) => string;
  /** bytes */
  readonly maxMessageBytes: number;
  /** ms */
  readonly describeTimeoutMs: number;
  readonly restart?: RestartPolicy;
};

export function isPlugin(provider: Provider): provider is PluginProvider {
  return provider.source.kind === "plugin" || provider.source.kind === "forge";
}

/**
 * Starts nothing. Throws HL_SOURCE_UNSUPPORTED for a forge address that is not installed, and HL_SUBSCRIBER_LOAD for a file that is
 * missing or not executable.
 */
export async function pluginOf(
  provider: PluginProvider,
  needed: readonly NeededHook[],
  { body, cookie, env, log, redact = (text) => text, maxMessageBytes, describeTimeoutMs, restart }: PluginParts,
): Promise<PluginSupervisor> {
  const { launch } = provider.source;
  const path = await executable(provider, provider.source.path);
  return new PluginSupervisor({
    spec: {
      provider,
      path,
      args: launch.args,
      environment: pluginEnvironment(provider, env, body),
      cookie: cookie ?? KERNEL_COOKIE,
      protocolVersion: launch.protocolVersion ?? APP_PROTOCOL_VERSION,
      autoMtls: launch.autoMtls,
      startTimeoutMs: launch.startTimeoutMs,
      maxMessageBytes,
      log,
      redact,
    },
    environmentOf: (known) => pluginEnvironment(provider, env, body, known),
    needed,
    restart: restart ?? RESTART_POLICY,
    now: () => performance.now(),
    describeTimeoutMs,
  });
}

async function executable(provider: PluginProvider, path: string | undefined): Promise<string> {
  if (path === undefined) {
    throw new HookledgerError(
      "HL_SOURCE_UNSUPPORTED",
      `provider "${provider.name}": ${provider.sourceText} is not installed`,
      {
        place: provider.place,
        hint: `Put its executable at .agent/plugins/${provider.name}, or name a local build in settings { dev_overrides = { "${provider.sourceText}" = "./build" } }.`,
      },
    );
  }
  const unfit = await unfitExecutable(path);
  if (unfit !== null) throw loadError(provider, unfit.what, unfit.hint === undefined ? {} : { hint: unfit.hint });
  return path;
}
