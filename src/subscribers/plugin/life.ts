/** One plugin process, from its start to its end. */

import type { Provider } from "../../config/types.js";
import type { Cookie } from "../../goplugin/protocol.js";
import type { LogSink } from "../log.js";
import type { PeerTransport } from "../peer.js";

/** Everything that a start needs; nothing is read from this process's environment. */
export type PluginSpec = {
  /** For names and places in messages. */
  readonly provider: Provider;
  /** Absolute, without links. */
  readonly path: string;
  readonly args: readonly string[];
  /** What the operator lets through: PATH, HOME, what `env` names, producer attributes, provider config. */
  readonly environment: Readonly<Record<string, string>>;
  readonly cookie: Cookie;
  readonly protocolVersion: number;
  readonly autoMtls: "auto" | "require" | "off";
  /** ms until the handshake and the health check must be done */
  readonly startTimeoutMs: number;
  /** bytes; bounds requests and answers. */
  readonly maxMessageBytes: number;
  readonly log: LogSink;
  /** Takes out of a text what must not be shown. */
  readonly redact: (text: string) => string;
};

export interface PluginLife extends PeerTransport {
  readonly pid: number;
  /** How it ended ("exited with code 2", "was killed by SIGKILL"), once it has: also by `close`. Never rejects. */
  readonly ended: Promise<string>;
  /** Null while it runs. */
  readonly end: string | null;
}

/** `message`: one bounded line, what was seen escaped and quoted. Nothing of the process is left. */
export type Started =
  | { readonly ok: true; readonly life: PluginLife }
  | { readonly ok: false; readonly message: string };
