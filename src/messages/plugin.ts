/** What a plugin author writes. */

import { HookledgerError } from "../errors.js";
import type { MessageHookName } from "./hooks.js";
import type { DispatchKind, Handler, Trigger } from "./types.js";

export type HandlerOptions = {
  /** Higher ones are called first; 0 by default. Equal ones in the order in which they were registered. */
  readonly priority?: number;
  /** ms, > 0, at most 600 000; anything else counts as not set. */
  readonly timeoutMs?: number;
  /** For `reply_dispatch`. */
  readonly eligibleDispatchKinds?: readonly DispatchKind[];
  /** For `before_agent_reply`. */
  readonly eligibleTriggers?: readonly Trigger[];
};

export interface PluginApi {
  /** Returns what takes the handler out again. Throws HL_PLUGIN, naming the plugin: an unknown hook, a handler that is none. */
  on<H extends MessageHookName>(hook: H, handler: Handler<H>, options?: HandlerOptions): () => void;
}

export type MessagePlugin = {
  /** `^[a-z][a-z0-9_-]{0,63}$` */
  readonly id: string;
  readonly version?: string;
  register(api: PluginApi): void;
};

/** Checks the shape; see `MessagePlugin`. Throws HL_PLUGIN. */
export function definePlugin(plugin: MessagePlugin): MessagePlugin {
  requirePlugin(plugin);
  return plugin;
}

const ID = /^[a-z][a-z0-9_-]{0,63}$/;
/** Stands before the ids of what is no plugin. */
const KERNEL = "kernel";

/** Callers in JavaScript are not held by the type. */
export function requirePlugin(plugin: unknown): asserts plugin is MessagePlugin {
  if (typeof plugin !== "object" || plugin === null) throw pluginError(undefined, "it is no object");
  const id: unknown = Reflect.get(plugin, "id");
  if (typeof id !== "string" || !ID.test(id) || id === KERNEL) {
    throw pluginError(undefined, `${JSON.stringify(String(id).slice(0, 80))} is no id: it must match ${ID.source}`);
  }
  const version: unknown = Reflect.get(plugin, "version");
  if (version !== undefined && (typeof version !== "string" || version.length > 256 || !version.isWellFormed())) {
    throw pluginError(id, "its version is no well-formed text of at most 256 characters");
  }
  if (typeof Reflect.get(plugin, "register") !== "function") throw pluginError(id, "it has no function register");
}

export function pluginError(id: string | undefined, what: string, cause?: unknown): HookledgerError {
  return new HookledgerError("HL_PLUGIN", `plugin${id === undefined ? "" : ` "${id}"`}: ${what}`, { cause });
}
