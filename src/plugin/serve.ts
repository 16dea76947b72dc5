/** Serves hooks as a plugin subprocess. */

import type { Cookie } from "../goplugin/protocol.js";
import type { HookHandlers } from "../subscribers/handlers.js";

export type PluginOptions = {
  readonly name: string;
  /** Semantic version; what a constraint in agent.hcl is compared with. */
  readonly version: string;
  readonly hooks: HookHandlers;
  /** Of another go-plugin family; the kernel's by default. */
  readonly cookie?: Cookie;
  /** Application protocol version, 1 by default. */
  readonly protocolVersion?: number;
};

export type ServedPlugin = {
  /** Ends the server; the process ends when nothing else keeps it. Idempotent. */
  close(): Promise<void>;
};
