/** The kernel: configuration, subscribers and a ledger, ready to dispatch. */
import type { Meter, Tracer } from "@opentelemetry/api";
import { loadConfig } from "../config/load.js";
import { configError } from "../config/report.js";
import type { Config } from "../config/types.js";
import type { HookPoint } from "../core/points.js";
import type { HookErrorRecord } from "../core/result.js";
import { HookledgerError } from "../errors.js";
import type { HookPayloadInput } from "../payload/messages.js";
import type { Payload } from "../payload/payload.js";
import { createRedactor } from "../payload/redaction.js";
import { boundedMessage, MAX_RAW_TEXT } from "../payload/text.js";
import { openStore } from "../store/open.js";
import type { EventStore } from "../store/port.js";
import type { Containment } from "../subscribers/containment.js";
import type { HookHandlers } from "../subscribers/handlers.js";
import { type LoadedProviders, loadProviders } from "../subscribers/load.js";
import type { LogSink } from "../subscribers/log.js";
import type { RestartPolicy } from "../subscribers/plugin/restart.js";
import { type Clock, systemClock } from "./clock.js";
import { recordedConfig } from "./config-record.js";
import { Dispatcher, type DispatchOptions } from "./dispatcher.js";
import { freezeChains } from "./freeze.js";
import { freshIds } from "./fresh-ids.js";
import { STORE_TIMEOUT_MS } from "./patient-store.js";
import type { DispatchResult } from "./result.js";
import { StartRecovery } from "./start-recovery.js";
import { telemetry } from "./telemetry.js";

export type KernelOptions = {
  /** A loaded configuration, or the path of an agent.hcl or of a folder of *.hcl files. */
  readonly config: Config | string;
  /** An open store, which stays the caller's, or a URL: `memory:`, `sqlite:<path>`. The kernel closes what it opened. */
  readonly store: EventStore | string;
  /** Functions for providers with `source = "host"`, by provider name. */
  readonly host?: Readonly<Record<string, HookHandlers>>;
  readonly tracer?: Tracer;
  readonly meter?: Meter;
  readonly clock?: Clock;
  /**
   * ms, 30 000 by default, at most 600 000: an append or a read that the ledger has not answered by then counts as failed, the append as
   * ambiguous, and the dispatch that waits for it fails as with any other store failure.
   */
  readonly storeTimeoutMs?: number;
  /**
   * true by default: closes in the background what crashed kernels left open, among the newest dispatches and within `storeTimeoutMs`, and
   * never allows. Only a dispatch with an `id` of its own waits for that. `recover` looks at all dispatches.
   */
  readonly recoverOnStart?: boolean;
  /** Told of every failed subscriber once, also of one that fails after the result was handed over. What it throws is dropped. */
  readonly onHookError?: (error: HookErrorRecord & { readonly dispatchId: string }) => void;
  /** Where `env("NAME")` is looked up; the process's environment by default. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Where subscribers' log lines and the kernel's warnings go, redacted; nowhere by default. */
  readonly log?: LogSink;
  /** A fresh ULID for a dispatch without an id of its own. */
  readonly newId?: () => string;
  readonly containment?: Containment;
  /** When a plugin that ended is started again: at once after a first crash, then after 100 ms to 10 s, ten times in a row at most. */
  readonly restart?: RestartPolicy;
};

/** ms */
const MAX_STORE_TIMEOUT = 600_000;

/**
 * Loads everything first, and starts no plugin: a configuration with errors, a module that does not load or a store that does not open
 * throws (HL_CONFIG, HL_SUBSCRIBER_LOAD, HL_SOURCE_UNSUPPORTED, HL_ENV_UNSET, HL_STORE_…) before anything is dispatched.
 */
export async function createKernel(options: KernelOptions): Promise<Kernel> {
  const storeTimeoutMs = requireTimeout(options.storeTimeoutMs ?? STORE_TIMEOUT_MS);
  const config = typeof options.config === "string" ? await configFrom(options.config) : options.config;
  // What `env()` stands for is known once the providers are loaded, and nothing of theirs runs before that.
  let redacted = (text: string): string => text;
  const sink = options.log ?? (() => {});
  const log: LogSink = (line) => sink({ ...line, message: boundedMessage(redacted(line.message), MAX_RAW_TEXT) });
  const providers = await loadProviders(config, {
    env: options.env ?? process.env,
    log,
    redact: (text) => redacted(text),
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(options.containment === undefined ? {} : { containment: options.containment }),
    ...(options.restart === undefined ? {} : { restart: options.restart }),
  });
  try {
    const redactor = createRedactor({ patterns: config.settings.redact, secrets: providers.secrets });
    redacted = (text) => redactor.text(text);
    const chains = freezeChains(config, providers, redactor);
    const configBlob = recordedConfig(config, redactor);
    const store = typeof options.store === "string" ? await openStore(options.store, { mode: "write" }) : options.store;
    const clock = options.clock ?? systemClock;
    const recovery = options.recoverOnStart === false ? null : new StartRecovery(store, clock, storeTimeoutMs, log);
    const meters = telemetry(options.tracer, options.meter);
    const dispatcher = new Dispatcher({
      settings: config.settings,
      configBlob,
      chains,
      redactor,
      store,
      storeTimeoutMs,
      clock,
      recovered: recovery?.done ?? null,
      telemetry: meters,
      onHookError: options.onHookError ?? (() => {}),
      newId: options.newId ?? freshIds(clock),
      log,
    });
    const unwatch = meters.watchBacklog(() => store.pendingBytes);
    const release = async (): Promise<void> => {
      unwatch();
      await recovery?.stop();
      if (typeof options.store === "string") await store.close();
    };
    return new Kernel(config, redacted, dispatcher, providers, recovery, release);
  } catch (error) {
    await providers.close();
    throw error;
  }
}

export class Kernel {
  readonly #dispatcher: Dispatcher;
  readonly #providers: LoadedProviders;
  readonly #recovery: StartRecovery | null;
  readonly #release: () => Promise<void>;
  readonly #config: Config;
  readonly #redacted: (text: string) => string;
  #unstarted: readonly string[] = [];
  #closed: Promise<void> | null = null;

  constructor(
    config: Config,
    redacted: (text: string) => string,
    dispatcher: Dispatcher,
    providers: LoadedProviders,
    recovery: StartRecovery | null,
    release: () => Promise<void>,
  ) {
    this.#config = config;
    this.#redacted = redacted;
    this.#dispatcher = dispatcher;
    this.#providers = providers;
    this.#recovery = recovery;
    this.#release = release;
  }

  /** Ids of the dispatches that this kernel's start has closed after a crash, once it has looked for them. Never rejects. */
  get recovered(): Promise<readonly string[]> {
    return this.#recovery?.done ?? Promise.resolve([]);
  }

  /** What loading had to say, for a person. */
  get warnings(): readonly string[] {
    return [...this.#providers.warnings(), ...this.#unstarted].map((warning) => this.#redacted(warning));
  }

  /**
   * Starts the plugins that hooks name, side by side, also those that had been given up; without it each is started by the first
   * dispatch that needs it. A plugin that does not come up is one of the `warnings`: until it does, its hooks fail, so that its vetoes deny.
   * Throws HL_SUBSCRIBER_LOAD for one that is not what the configuration asks for (version, hook points), HL_KERNEL_CLOSED.
   */
  async start(options: { readonly points?: readonly HookPoint[] } = {}): Promise<void> {
    if (this.#closed !== null) throw closed();
    const { points } = options;
    const faults = await this.#providers.start(points && providersAt(this.#config, points));
    const refused = faults.find(({ code }) => code === "HL_SUBSCRIBER_LOAD");
    if (refused !== undefined) throw this.#redactedError(refused);
    this.#unstarted = faults.map(({ message }) => `${message}; until it runs, its hooks fail`);
  }

  /**
   * Dispatches one hook point, the payload's variant. Resolves once the decision is durable. Rejects, and records nothing,
   * on an argument error: HL_PAYLOAD, HL_LIMIT_PAYLOAD, HL_LIMIT_DEPTH, HL_LIMIT_ID, HL_DISPATCH_ID, HL_KERNEL_CLOSED; with an `id` that is
   * taken, HL_DISPATCH_CONFLICT (another payload, or a redacted record) or HL_DISPATCH_OPEN, and HL_STORE_… where the ledger cannot
   * tell. HL_INTERNAL: a fault of the kernel itself; nothing is allowed.
   */
  async dispatch(
    payload: HookPayloadInput | Payload | Uint8Array,
    options: DispatchOptions = {},
  ): Promise<DispatchResult> {
    if (this.#closed !== null) throw closed();
    return this.#dispatcher.dispatch(payload, options);
  }

  /**
   * Waits for dispatches under way and for detached observers, each bounded by its timeout, and `storeTimeoutMs` for what the ledger has
   * left unanswered; then lets go. Idempotent.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** What a plugin says of itself, and what it said when it failed, may hold what it was given. */
  #redactedError({ code, message, place, hint }: HookledgerError): HookledgerError {
    return new HookledgerError(code, this.#redacted(message), {
      ...(place === undefined ? {} : { place }),
      ...(hint === undefined ? {} : { hint }),
    });
  }

  async #close(): Promise<void> {
    await this.#dispatcher.idle();
    try {
      await this.#providers.close();
    } finally {
      await this.#release();
    }
  }
}

function providersAt({ hooks }: Config, points: readonly HookPoint[]): ReadonlySet<string> {
  return new Set(hooks.filter(({ point }) => points.includes(point)).map(({ provider }) => provider));
}

function closed(): HookledgerError {
  return new HookledgerError("HL_KERNEL_CLOSED", "the kernel is closed");
}

function requireTimeout(ms: number): number {
  if (Number.isSafeInteger(ms) && ms > 0 && ms <= MAX_STORE_TIMEOUT) return ms;
  throw new HookledgerError("HL_USAGE", `storeTimeoutMs is a whole number from 1 to ${MAX_STORE_TIMEOUT}`);
}

async function configFrom(path: string): Promise<Config> {
  const loaded = await loadConfig(path);
  if (!loaded.ok) throw configError(path, loaded.errors);
  return loaded.config;
}
