/** `hookledger/plugin`: a go-plugin plugin from Node in ten lines. */

import { PLUGIN_ENV } from "../goplugin/protocol.js";
import { holdStdout } from "./stdout.js";

// What other modules of a plugin print while they load would stand before the handshake.
if (process.env[PLUGIN_ENV.protocolVersions] !== undefined) holdStdout();

export type { HookConfig, HookContext, HookHandlers, PointHandlers, Verdict } from "../subscribers/handlers.js";
export type { Logger } from "../subscribers/log.js";
export { type PluginOptions, type ServedPlugin, servePlugin } from "./serve.js";
