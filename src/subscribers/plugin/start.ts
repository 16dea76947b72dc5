/** From an executable to a plugin that answers. Whatever goes wrong on the way, nothing of the process is left. */

import type { Source } from "../../config/types.js";
import { type Handshake, MAX_HANDSHAKE_BYTES, parseHandshake } from "../../goplugin/handshake.js";
import type { Identity } from "../../goplugin/identity.js";
import { TLS_NAME } from "../../goplugin/protocol.js";
import { type Quote, quoted } from "../../goplugin/quote.js";
import { boundedMessage } from "../../payload/text.js";
import { type Channel, openChannel } from "../channel.js";
import { thrownText } from "../fault.js";
import { GrpcSubscriber } from "../grpc.js";
import { startEnvironment } from "./environment.js";
import { unfitExecutable } from "./executable.js";
import { type FirstLine, FirstLineReader } from "./first-line.js";
import { unhealthy } from "./health.js";
import type { PluginSpec, Started } from "./life.js";
import { type Pin, pinnedCredentials, pinTo } from "./pin.js";
import { PluginLog } from "./plugin-log.js";
import { type PluginProcess, startProcess } from "./process.js";
import { RunningPlugin } from "./running.js";
import { readStdio } from "./stdio.js";
import { GRACE_MS, killProcess } from "./stop.js";
import { type LifeClock, systemClock, within } from "./time.js";

export type StartOptions = {
  /** Gives the start up. */
  readonly signal?: AbortSignal;
  readonly clock?: LifeClock;
  /** ms for each step of `close`: an answer to Shutdown, the end after it, the end after SIGTERM. 2 000 by default. */
  readonly graceMs?: number;
};

/** ms in which a plugin that has failed may also end, and say why on stderr */
const LAST_WORDS_MS = 100;

/** Never rejects. */
export async function startPlugin(
  spec: PluginSpec,
  { signal, clock = systemClock, graceMs = GRACE_MS }: StartOptions = {},
): Promise<Started> {
  const unfit = await unfitExecutable(spec.path);
  if (unfit !== null) return refused(unfit.what);
  let started: { readonly plugin: PluginProcess; readonly log: PluginLog } | null = null;
  try {
    const identity = spec.autoMtls === "off" ? null : await makeIdentity();
    if (signal?.aborted === true) return refused("the start was given up");
    const plugin = await startProcess({
      path: spec.path,
      args: spec.args,
      environment: (folder) =>
        startEnvironment(spec.environment, {
          cookie: spec.cookie,
          protocolVersion: spec.protocolVersion,
          folder,
          certificate: identity?.certificate ?? null,
        }),
      clock,
    });
    const log = new PluginLog(spec.provider.name, spec.log, clock, spec.redact);
    started = { plugin, log };
    const attempt = new Attempt(spec, identity, plugin, log, { clock, graceMs });
    return { ok: true, life: await attempt.run(signal) };
  } catch (error) {
    const message = thrownText(error);
    if (started === null) return refused(message);
    const { plugin, log } = started;
    const rest = error instanceof Unready ? await lastWords(message, quoteFor(spec), started, clock) : "";
    await killProcess(plugin);
    log.end();
    return refused(message + rest);
  }
}

/** What a plugin that is to blame adds itself: its end, and what it said on stderr. */
async function lastWords(
  message: string,
  quote: Quote,
  { plugin, log }: { readonly plugin: PluginProcess; readonly log: PluginLog },
  clock: LifeClock,
): Promise<string> {
  await within(clock, LAST_WORDS_MS, plugin.drained);
  const { end } = plugin;
  const words = log.lastWords;
  const ended = end === null || message.includes(end) ? "" : `; it ${end}`;
  return ended + (words === null ? "" : `; on stderr: ${quote(words)}`);
}

function refused(message: string): Started {
  return { ok: false, message: boundedMessage(message) };
}

/** What making one needs costs a start of the program, not one of every program. */
async function makeIdentity(): Promise<Identity> {
  const { createIdentity } = await import("../../goplugin/identity.js");
  return createIdentity();
}

/** The plugin is to blame, and may have more to say. */
class Unready extends Error {}

class Attempt {
  readonly #spec: PluginSpec;
  readonly #identity: Identity | null;
  readonly #plugin: PluginProcess;
  readonly #log: PluginLog;
  readonly #first: FirstLineReader;
  readonly #options: { readonly clock: LifeClock; readonly graceMs: number };
  readonly #until: number;
  readonly #quote: Quote;
  #awaiting = "its handshake line";

  constructor(
    spec: PluginSpec,
    identity: Identity | null,
    plugin: PluginProcess,
    log: PluginLog,
    options: { readonly clock: LifeClock; readonly graceMs: number },
  ) {
    this.#spec = spec;
    this.#quote = quoteFor(spec);
    this.#identity = identity;
    this.#plugin = plugin;
    this.#log = log;
    this.#options = options;
    this.#until = options.clock.now() + spec.startTimeoutMs;
    this.#first = new FirstLineReader(plugin.stdout, log.stream("stdout"));
    const said = log.stream("stderr");
    plugin.stderr.on("data", (chunk: Buffer) => said.push(chunk));
    plugin.stderr.once("close", () => said.end());
  }

  /** Rejects with what went wrong. */
  async run(signal: AbortSignal | undefined): Promise<RunningPlugin> {
    const { clock } = this.#options;
    let stop = (): void => {};
    const stopped = new Promise<never>((_, reject) => {
      const cancel = clock.timer(this.#spec.startTimeoutMs, () => reject(this.#late()));
      const giveUp = () => reject(new Error("the start was given up"));
      signal?.addEventListener("abort", giveUp, { once: true });
      stop = () => {
        cancel();
        signal?.removeEventListener("abort", giveUp);
      };
      if (signal?.aborted === true) giveUp();
      // Not before all that it wrote has been read: that says more.
      void this.#plugin.drained.then(() => reject(new Unready(`it ${this.#plugin.end} before ${this.#awaiting}`)));
    });
    stopped.catch(() => {});
    try {
      const handshake = this.#accept(await Promise.race([this.#first.line, stopped]));
      this.#awaiting = "its health check was answered";
      return await this.#connect(handshake, stopped);
    } finally {
      stop();
    }
  }

  #late(): Unready {
    const { startTimeoutMs } = this.#spec;
    const { soFar } = this.#first;
    if (this.#awaiting !== "its handshake line") {
      return new Unready(`its health check was not answered within ${startTimeoutMs} ms of its start`);
    }
    const seen = soFar === "" ? "" : `, only ${this.#quote(soFar)} on stdout`;
    return new Unready(`it wrote no handshake line within ${startTimeoutMs} ms${seen}`);
  }

  #accept(line: FirstLine): Handshake {
    const { protocolVersion, autoMtls } = this.#spec;
    if (line.found === "overlong") {
      throw new Unready(`its first line is longer than ${MAX_HANDSHAKE_BYTES} bytes: ${this.#quote(line.text)}`);
    }
    if (line.found === "unended") throw new Unready(`its handshake line has no end: ${this.#quote(line.text)}`);
    const parsed = parseHandshake(line.text, this.#quote);
    if (!parsed.ok) throw new Unready(parsed.fault);
    const { handshake } = parsed;
    const { appVersion, network, certificate } = handshake;
    if (appVersion !== protocolVersion) {
      throw new Unready(
        `it speaks protocol version ${appVersion}, and ${protocolVersion} is asked for: ${this.#quote(line.text)}`,
      );
    }
    if (certificate === null) {
      if (network === "tcp")
        throw new Unready(`it listens on plain TCP, which anybody here can reach: ${this.#quote(line.text)}`);
      if (autoMtls === "require")
        throw new Unready(`it answers without TLS, which auto_mtls requires: ${this.#quote(line.text)}`);
    } else if (this.#identity === null) {
      throw new Unready(`it answers with a certificate although auto_mtls is off: ${this.#quote(line.text)}`);
    }
    return handshake;
  }

  async #connect(handshake: Handshake, stopped: Promise<never>): Promise<RunningPlugin> {
    const { provider, maxMessageBytes } = this.#spec;
    const { clock } = this.#options;
    const pin = this.#pin(handshake);
    const channel = openChannel(sourceOf(handshake, pin), {
      maxMessageBytes,
      ...(pin === null ? {} : { credentials: pinnedCredentials(pin) }),
    });
    try {
      const leftMs = Math.max(1, this.#until - clock.now());
      const fault = await Promise.race([unhealthy(channel, leftMs, this.#quote), stopped]);
      if (fault !== null) throw new Unready(tlsFault(pin, fault));
      return this.#running(handshake, pin, channel, new GrpcSubscriber(provider, channel, maxMessageBytes));
    } catch (error) {
      channel.close();
      throw error;
    }
  }

  #running(handshake: Handshake, pin: Pin | null, channel: Channel, subscriber: GrpcSubscriber): RunningPlugin {
    const out = this.#log.stream("stdout");
    const err = this.#log.stream("stderr");
    const stdio = readStdio(handshake, pin, ({ channel: name, data }) => {
      (name === "stdout" ? out : err).push(Buffer.from(data));
    });
    return new RunningPlugin({
      process: this.#plugin,
      log: this.#log,
      channel,
      subscriber,
      stdio,
      stop: this.#options,
    });
  }

  #pin({ certificate }: Handshake): Pin | null {
    if (certificate === null || this.#identity === null) return null;
    return pinTo(certificate, this.#identity);
  }
}

function sourceOf({ network, address }: Handshake, pin: Pin | null): Extract<Source, { kind: "grpc" }> {
  return {
    kind: "grpc",
    transport: network,
    target: address,
    insecure: false,
    ...(pin === null ? {} : { tls: { serverName: TLS_NAME } }),
  };
}

/** The same words for what each version of the TLS library says in its own. */
function tlsFault(pin: Pin | null, fault: string): string {
  if (pin === null) return fault;
  if (/certificate/i.test(fault)) return `it has another certificate than its handshake names: ${fault}`;
  if (/TLS|SSL|EPROTO|ECONNRESET/.test(fault)) return `it does not speak the TLS that its handshake names: ${fault}`;
  return fault;
}

/** Secrets are taken out of the whole of what was said, before any of it is cut. */
function quoteFor({ redact }: PluginSpec): Quote {
  return (text, maxChars) => quoted(redact(text), maxChars);
}
