/** What an author hands to `servePlugin`, checked: types do not hold callers in JavaScript. */

import type { HookMode } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import { APP_PROTOCOL_VERSION, type Cookie, KERNEL_COOKIE } from "../goplugin/protocol.js";
import type { NeededHook } from "../subscribers/handler-table.js";
import type { HookHandlers } from "../subscribers/handlers.js";

export type PluginOptions = {
  /** As a provider is named in agent.hcl: lower-case letters, digits, `_` and `-`, at most 64. */
  readonly name: string;
  /** Semantic version; what a constraint in agent.hcl is compared with. */
  readonly version: string;
  readonly hooks: HookHandlers;
  /** Of another go-plugin family; the kernel's by default. */
  readonly cookie?: Cookie;
  /** Application protocol version, 1 by default. */
  readonly protocolVersion?: number;
};

export type CheckedOptions = Required<PluginOptions> & {
  /** Every handler there is. */
  readonly handlers: readonly NeededHook[];
};

const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const VERSION = /^\d{1,9}\.\d{1,9}\.\d{1,9}(?:-[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?(?:\+[0-9A-Za-z.-]+)?$/;
const MODES = ["observe", "transform", "veto"] as const satisfies readonly HookMode[];
const MAX_VERSION = 256;

/** Throws HL_USAGE, naming the option. */
export function checkOptions(options: PluginOptions): CheckedOptions {
  if (!isObject(options)) throw refused("it is given no options");
  const { name, version, hooks, cookie = KERNEL_COOKIE, protocolVersion = APP_PROTOCOL_VERSION } = options;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw refused(`\`name\` is ${shown(name)}`, "A plugin is named as a provider is: ^[a-z][a-z0-9_-]{0,63}$.");
  }
  if (typeof version !== "string" || version.length > MAX_VERSION || !VERSION.test(version)) {
    throw refused(`\`version\` is ${shown(version)}`, 'A semantic version is needed, such as "1.2.0".');
  }
  if (!Number.isInteger(protocolVersion) || protocolVersion < 0 || protocolVersion > 0x7fffffff) {
    throw refused(
      `\`protocolVersion\` is ${shown(protocolVersion)}`,
      "It is a whole number, 1 unless a family says otherwise.",
    );
  }
  checkCookie(cookie);
  return { name, version, hooks, cookie, protocolVersion, handlers: handlersOf(hooks) };
}

function checkCookie(cookie: Cookie): void {
  if (isObject(cookie) && isText(cookie.key) && !cookie.key.includes("=") && isText(cookie.value)) return;
  throw refused(
    "`cookie` is not usable",
    "It has a key, the name of a variable, and a value; both are texts that are not empty.",
  );
}

function handlersOf(hooks: unknown): readonly NeededHook[] {
  if (!isObject(hooks)) throw refused(`\`hooks\` is ${shown(hooks)}`, "Handlers stand under their hook point.");
  const handlers = Object.entries(hooks).flatMap(([point, modes]) => {
    if (!isHookPoint(point)) {
      throw refused(`"${point.slice(0, 60)}" is no hook point`, `There are ${Object.keys(HOOK_POINTS).join(", ")}.`);
    }
    return modes === undefined ? [] : modesOf(point, modes);
  });
  if (handlers.length === 0) throw refused("`hooks` has no handler");
  return handlers;
}

function modesOf(point: HookPoint, modes: unknown): readonly NeededHook[] {
  if (!isObject(modes)) throw refused(`"${point}" is ${shown(modes)}, not its handlers by mode`);
  return Object.entries(modes).flatMap(([key, handler]) => {
    const mode = MODES.find((known) => known === key);
    if (mode === undefined)
      throw refused(`"${point}" has a handler for "${key.slice(0, 60)}"`, `Modes are ${MODES.join(", ")}.`);
    if (handler === undefined) return [];
    if (typeof handler !== "function") throw refused(`${point}.${mode} is ${shown(handler)}, not a function`);
    if (mode === "veto" && !HOOK_POINTS[point].vetoBearing) throw refused(`${point} bears no veto`);
    return [{ point, mode }];
  });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !value.includes("\0");
}

function shown(value: unknown): string {
  if (value === undefined) return "missing";
  if (typeof value === "string") return JSON.stringify(value.slice(0, 60));
  return typeof value === "number" || value === null ? String(value) : `a ${typeof value}`;
}

function refused(what: string, hint?: string): HookledgerError {
  // In one line: that is what a host quotes of a plugin that did not start.
  return new HookledgerError("HL_USAGE", `servePlugin: ${what}${hint === undefined ? "" : `. ${hint}`}`);
}
