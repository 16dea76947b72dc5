/** `hookledger/messages`: hooks of a chat gateway on the kernel's machine and ledger. */

export { createMessageHooks, type MessageHooks, type MessageHooksOptions } from "./create.js";
export type * from "./facts.js";
export { MESSAGE_HOOKS, type MessageHookName } from "./hooks.js";
export { definePlugin, type HandlerOptions, type MessagePlugin, type PluginApi } from "./plugin.js";
export type { OperatorOptions } from "./recorded-runs.js";
export type { MessagePlugins } from "./registry.js";
export type { DispatchReceipt, LaneCounts, ReplyDispatcher } from "./reply-dispatcher.js";
export type * from "./runs.js";
export type * from "./types.js";
