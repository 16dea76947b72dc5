/** The plugins that are loaded, and their handlers in the order in which they are called. */

import { HookledgerError } from "../errors.js";
import { thrownText } from "../subscribers/fault.js";
import { type LogSink, loggerFor } from "../subscribers/log.js";
import { restrictionOf } from "./eligibility.js";
import { isMessageHook, MESSAGE_HOOKS, type MessageHookName, rulesOf } from "./hooks.js";
import { type HandlerOptions, type MessagePlugin, pluginError, requirePlugin } from "./plugin.js";

/** A handler as its plugin registered it. */
export type Registered = {
  readonly plugin: string;
  readonly version: string | undefined;
  /** `<plugin>`, or `<plugin>:<n>` from its second handler for the hook on. */
  readonly id: string;
  readonly hook: MessageHookName;
  readonly handler: AnyHandler;
  readonly priority: number;
  /** ms, or null: not set. */
  readonly timeoutMs: number | null;
  /** What it is restricted to; null: nothing. */
  readonly eligible: readonly string[] | null;
};

export type AnyHandler = (event: object, context: object) => unknown;

/** Its place among those of the same priority. */
type Placed = Registered & { readonly place: number };

type Loaded = { readonly plugin: MessagePlugin; handlers: readonly Placed[] };

const MAX_TIMEOUT_MS = 600_000;

export class MessagePlugins {
  readonly #log: LogSink;
  readonly #plugins = new Map<string, Loaded>();
  readonly #lists = new Map<MessageHookName, readonly Placed[]>();
  #places = 0;

  constructor(log: LogSink = () => {}) {
    this.#log = log;
  }

  /**
   * Registers a plugin's handlers. Those of a plugin of the same id are replaced, in the places that they had; they stay when the new
   * one cannot be registered. An asynchronous `register()` that rejects later is told to the log. Throws HL_PLUGIN, naming the plugin.
   */
  load(plugin: MessagePlugin): void {
    requirePlugin(plugin);
    this.#load(withFixedId(plugin));
  }

  #load(plugin: MessagePlugin): void {
    const before = this.#plugins.get(plugin.id);
    const loaded: Loaded = { plugin, handlers: [] };
    const registration = new Registration(plugin, this.#log, before?.handlers ?? [], () => this.#places++);
    try {
      const registering: unknown = plugin.register({
        on: (hook, handler, options) => this.#on(loaded, registration, hook, handler, options),
      });
      Promise.resolve(registering).catch((error: unknown) => {
        loggerFor(plugin.id, this.#log).error(`plugin "${plugin.id}": register() rejected: ${thrownText(error)}`);
      });
    } catch (error) {
      if (error instanceof HookledgerError) throw error;
      throw pluginError(plugin.id, `register() threw: ${thrownText(error)}`, error);
    }
    this.#plugins.set(plugin.id, loaded);
    this.#lists.clear();
  }

  /** Leaves none of its handlers behind; runs under way go on with those they began with. false: it was not loaded. */
  unload(id: string): boolean {
    this.#lists.clear();
    return this.#plugins.delete(id);
  }

  isLoaded(id: string): boolean {
    return this.#plugins.has(id);
  }

  /** Ids, in the order in which they were loaded first. */
  get ids(): readonly string[] {
    return [...this.#plugins.keys()];
  }

  /** By descending priority, then as they were registered. Never changed afterwards: another list takes its place. */
  handlers(hook: MessageHookName): readonly Registered[] {
    const known = this.#lists.get(hook);
    if (known !== undefined) return known;
    const list = [...this.#plugins.values()]
      .flatMap(({ handlers }) => handlers)
      .filter((handler) => handler.hook === hook)
      .sort((a, b) => b.priority - a.priority || a.place - b.place);
    this.#lists.set(hook, list);
    return list;
  }

  /** Also after `register()` has returned, as long as this very plugin is loaded. */
  #on(loaded: Loaded, registration: Registration, hook: unknown, handler: unknown, options: unknown): () => void {
    this.#requireRoom(loaded, hook);
    const placed = registration.take(hook, handler, options, loaded.handlers);
    const put = (handlers: readonly Placed[]): void => {
      loaded.handlers = handlers;
      this.#lists.clear();
    };
    put([...loaded.handlers, placed]);
    return () => put(loaded.handlers.filter((other) => other !== placed));
  }

  /** A run names all of them in one event. */
  #requireRoom(loaded: Loaded, hook: unknown): void {
    const { id } = loaded.plugin;
    const others = [...this.#plugins.values()].filter(({ plugin }) => plugin.id !== id);
    const count = [loaded, ...others].flatMap(({ handlers }) => handlers).filter((other) => other.hook === hook).length;
    if (count >= MAX_HANDLERS_A_HOOK)
      throw pluginError(id, `there are ${MAX_HANDLERS_A_HOOK} handlers of ${String(hook)} already`);
  }
}

/** What the plugin's author does to the object later changes neither its name nor what is recorded of it. */
function withFixedId(plugin: MessagePlugin): MessagePlugin {
  const { id, version } = plugin;
  return { id, ...(version === undefined ? {} : { version }), register: (api) => plugin.register(api) };
}

/** What one `register()` makes of what it is given. */
class Registration {
  readonly #plugin: MessagePlugin;
  readonly #log: LogSink;
  /** Places of the handlers that are replaced, by hook. */
  readonly #free: Map<MessageHookName, number[]>;
  readonly #nextPlace: () => number;
  readonly #counts = new Map<MessageHookName, number>();

  constructor(plugin: MessagePlugin, log: LogSink, before: readonly Placed[], nextPlace: () => number) {
    this.#plugin = plugin;
    this.#log = log;
    this.#nextPlace = nextPlace;
    this.#free = new Map();
    for (const { hook, place } of before) this.#free.set(hook, [...(this.#free.get(hook) ?? []), place]);
  }

  take(hook: unknown, handler: unknown, options: unknown, others: readonly Registered[]): Placed {
    const { id: plugin, version } = this.#plugin;
    if (typeof hook !== "string" || !isMessageHook(hook)) {
      const known = Object.keys(MESSAGE_HOOKS).join(", ");
      throw pluginError(plugin, `${JSON.stringify(String(hook).slice(0, 80))} is no hook: there are ${known}`);
    }
    if (!isHandler(handler)) throw pluginError(plugin, `its handler for ${hook} is no function`);
    const given = this.#options(hook, options);
    const { values, dropped } = restrictionOf(hook, given);
    if (dropped) {
      const { eligibility } = rulesOf(hook);
      this.#warn(`${hook}: ${eligibility?.option ?? ""} is no list of known values, and restricts nothing`);
    }
    const count = (this.#counts.get(hook) ?? 0) + 1;
    this.#counts.set(hook, count);
    if (others.length === MAX_HANDLERS) throw pluginError(plugin, `it has more than ${MAX_HANDLERS} handlers`);
    return {
      plugin,
      version,
      id: count === 1 ? plugin : `${plugin}:${count}`,
      hook,
      handler,
      priority: this.#number(hook, "priority", given.priority, isFiniteNumber) ?? 0,
      timeoutMs: this.#number(hook, "timeoutMs", given.timeoutMs, isTimeout) ?? null,
      eligible: values,
      place: this.#free.get(hook)?.shift() ?? this.#nextPlace(),
    };
  }

  #options(hook: MessageHookName, options: unknown): HandlerOptions {
    if (options === undefined) return {};
    if (typeof options === "object" && options !== null && !Array.isArray(options)) {
      for (const name of Object.keys(options)) this.#known(hook, name);
      return { ...options };
    }
    this.#warn(`${hook}: its options are no object, and count for nothing`);
    return {};
  }

  #known(hook: MessageHookName, name: string): void {
    const { eligibility } = rulesOf(hook);
    if (name === "priority" || name === "timeoutMs" || name === eligibility?.option) return;
    this.#warn(`${hook} has no option ${JSON.stringify(name.slice(0, 80))}`);
  }

  #number(hook: MessageHookName, name: string, value: unknown, fits: (value: number) => boolean): number | undefined {
    if (value === undefined || (typeof value === "number" && fits(value))) return value;
    this.#warn(`${hook}: ${name} is no number that it may be, and counts as not set`);
    return undefined;
  }

  #warn(message: string): void {
    loggerFor(this.#plugin.id, this.#log).warn(message);
  }
}

/** Of one plugin, for all hooks. */
const MAX_HANDLERS = 256;
/** Of all plugins. */
const MAX_HANDLERS_A_HOOK = 256;

function isHandler(value: unknown): value is AnyHandler {
  return typeof value === "function";
}

function isFiniteNumber(value: number): boolean {
  return Number.isFinite(value);
}

/** ms that an operator or a handler may set. */
export function isTimeout(ms: unknown): ms is number {
  return typeof ms === "number" && ms > 0 && ms <= MAX_TIMEOUT_MS;
}
