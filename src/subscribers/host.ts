/** `source = "host"`: functions that the embedding program hands over, bound by provider name. */

import type { Provider } from "../config/types.js";
import { handlerTable, loadError, type NeededHook } from "./handler-table.js";
import type { HookConfig, HookHandlers } from "./handlers.js";
import { inProcess } from "./in-process.js";
import { type LogSink, loggerFor } from "./log.js";
import type { SubscriberTransport } from "./port.js";

type BindOptions = { readonly config: HookConfig; readonly log: LogSink };

/** Throws HL_SUBSCRIBER_LOAD when nothing is bound to the provider's name or a handler that a hook needs is missing. */
export function bindHost(
  provider: Provider,
  needed: readonly NeededHook[],
  host: Readonly<Record<string, HookHandlers>>,
  options: BindOptions,
): SubscriberTransport {
  if (!Object.hasOwn(host, provider.name)) {
    throw loadError(provider, "the program binds nothing to it", {
      hint: `Pass handlers for it: host: { "${provider.name}": { … } }.`,
    });
  }
  return inProcess({
    provider: provider.name,
    handlers: handlerTable(provider, needed, host[provider.name]),
    config: options.config,
    log: loggerFor(provider.name, options.log),
  });
}
