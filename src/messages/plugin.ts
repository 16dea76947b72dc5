/** What a plugin author writes. */

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
  return plugin;
}
