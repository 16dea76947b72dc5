/** `hookledger/plugin`: a go-plugin plugin from Node in ten lines. */
export type { HookConfig, HookContext, HookHandlers, PointHandlers, Verdict } from "../subscribers/handlers.js";
export type { Logger } from "../subscribers/log.js";
export type { PluginOptions, ServedPlugin } from "./serve.js";
