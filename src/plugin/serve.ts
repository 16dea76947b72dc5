/** `servePlugin`: from the author's options to a process that a host can use, and to its end. */

import type { Socket } from "node:net";
import { dirname } from "node:path";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import type { Provider } from "../config/types.js";
import { HookledgerError } from "../errors.js";
import { messageType } from "../payload/schema.js";
import { MAX_PAYLOAD_BYTES } from "../payload/wire.js";
import { handlerTable } from "../subscribers/handler-table.js";
import type { HookConfig } from "../subscribers/handlers.js";
import { inProcess } from "../subscribers/in-process.js";
import { type Logger, loggerFor } from "../subscribers/log.js";
import { encodeDescription } from "./description.js";
import { HookService } from "./dispatch-hook.js";
import { startGuard } from "./guard.js";
import { handshakeLine, launchOf, reattachLine } from "./launch.js";
import { endOnStrayFaults, ignoreInterrupts, stackLines, watchHost } from "./lifetime.js";
import { type Listener, listen } from "./listen.js";
import { hclogSink, textSink } from "./log.js";
import { type CheckedOptions, checkOptions, type PluginOptions } from "./options.js";
import { Printed } from "./printed.js";
import { Services } from "./services.js";
import { handStdoutTo, printOnStdout, releaseStdout } from "./stdout.js";

export type { PluginOptions };

export type ServedPlugin = {
  /** Ends the server; the process ends when nothing else keeps it. Idempotent. */
  close(): Promise<void>;
};

/** ms that running calls have when the plugin is told to end; a Go host kills it 2 s after it asked. */
const GRACE_MS = 1500;
/** ms for what was answered to get out */
const DRAIN_MS = 200;
/** ms in which a host that dies closes all that it had open */
const LINGER_MS = 100;
/** bytes: the largest payload, and room for what surrounds it */
const MAX_MESSAGE_BYTES = MAX_PAYLOAD_BYTES + 64 * 1024;

let served = false;

/**
 * Serves `hooks` to the host that started this process, until it says so, dies, or sends SIGTERM; the process then ends. Started
 * with `--debug` it serves whoever reattaches, until Ctrl-C. Started by hand it explains itself on stderr and ends the process
 * with code 1. Throws HL_USAGE for options that are not usable and for a second call in one process.
 */
export async function servePlugin(options: PluginOptions): Promise<ServedPlugin> {
  const checked = checkOptions(options);
  if (served) throw new HookledgerError("HL_USAGE", "servePlugin: one process serves one plugin, once");
  served = true;
  const launch = launchOf(checked, process.argv.slice(2), process.env);
  if (launch.by === "hand") {
    process.stderr.write(launch.message);
    process.exit(1);
  }
  const hosted = launch.by === "host";
  const plugin = new Plugin(checked, launch.config, hosted);
  const listener = await listen({
    folder: hosted ? launch.socketFolder : undefined,
    hostCertificate: hosted ? launch.hostCertificate : null,
    connected: plugin.connected,
  });
  plugin.serve(listener);
  return plugin;
}

class Plugin implements ServedPlugin {
  readonly #options: CheckedOptions;
  readonly #hosted: boolean;
  readonly #server = new Server({
    "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
    "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
    "grpc.enable_channelz": 0,
  });
  readonly #injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
  readonly #hooks: HookService;
  readonly #services: Services;
  readonly #printed: Printed;
  readonly #log: Logger;
  #connections = 0;
  #listener: Listener | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: CheckedOptions, config: HookConfig, hosted: boolean) {
    const { name, hooks } = options;
    const log = loggerFor(name, hosted ? hclogSink : textSink);
    const handlers = handlerTable(self(name), options.handlers, hooks);
    this.#options = options;
    this.#hosted = hosted;
    this.#log = log;
    this.#printed = new Printed(loggerFor(`${name}.stdout`, hosted ? hclogSink : textSink));
    const subscriber = inProcess({
      provider: name,
      handlers,
      config,
      log,
      onThrown: ({ point, mode }, error) => {
        for (const line of stackLines(`${point}.${mode}`, error)) log.debug(line);
      },
    });
    this.#hooks = new HookService({ handlers, log, subscriber });
    this.#services = new Services({
      hooks: this.#hooks,
      printed: this.#printed,
      description: encodeDescription(options),
      // Several hosts may come and go while somebody debugs.
      shutdown: hosted ? this.#exit : () => {},
    });
  }

  /** Of a socket that has proven who it is. */
  readonly connected = (socket: Socket): void => {
    this.#connections += 1;
    socket.once("close", this.#disconnected);
    this.#injector.injectConnection(socket);
  };

  serve(listener: Listener): void {
    const { ppid } = process;
    this.#listener = listener;
    endOnStrayFaults(this.#log);
    this.#services.register(this.#server);
    process.on("SIGTERM", this.#exit);
    process.once("exit", () => this.#printed.flush());
    if (this.#hosted) {
      ignoreInterrupts();
      watchHost(ppid, () => process.exit());
      handStdoutTo((bytes) => this.#printed.take(bytes));
      const { address, certificate } = listener;
      const appVersion = this.#options.protocolVersion;
      printOnStdout(handshakeLine({ appVersion, network: "unix", address, certificate }));
    } else {
      process.on("SIGINT", this.#exit);
      releaseStdout();
      printOnStdout(reattachLine(this.#options, listener.address));
    }
    // While the host connects: the first hook would have to wait for it.
    messageType("pluggableharness.hook.v1.HookPayload");
    if (this.#hosted) startGuard({ ppid, folder: dirname(listener.address) });
  }

  close(): Promise<void> {
    this.#closed ??= this.#end();
    return this.#closed;
  }

  readonly #disconnected = (): void => {
    this.#connections -= 1;
    if (this.#connections > 0 || this.#closed !== undefined) return;
    // A parent that is not the host outlives it; but then nobody reads what is logged, which ends the process.
    setTimeout(() => this.#log.debug("no host is connected"), LINGER_MS).unref();
  };

  readonly #exit = (): void => {
    void this.close().then(() => process.exit(0));
  };

  async #end(): Promise<void> {
    this.#listener?.close();
    await this.#hooks.end(GRACE_MS);
    this.#services.end();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, DRAIN_MS);
      this.#server.tryShutdown(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.#server.forceShutdown();
  }
}

/** The plugin as its own provider, for messages. */
function self(name: string): Provider {
  const file = process.argv[1] ?? "";
  const place = { file, line: 1, col: 1 };
  return { name, sourceText: file, source: { kind: "host" }, sensitive: [], place };
}
