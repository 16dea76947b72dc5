/** What the operator of a gateway says of all handlers. */

import { HookledgerError } from "../errors.js";
import type { Json } from "../payload/canonical-json.js";
import type { OperatorTimeouts } from "./handler-chain.js";
import { isMessageHook, type MESSAGE_HOOKS, type MessageHookName, rulesOf } from "./hooks.js";

type Blockable = {
  [H in MessageHookName]: (typeof MESSAGE_HOOKS)[H]["blockable"] extends true ? H : never;
}[MessageHookName];

export type OperatorOptions = OperatorTimeouts & {
  /** What a handler of a sending hook that fails or hangs comes to; "continue" by default. */
  readonly onFailure?: { readonly [H in Blockable]?: "continue" | "block" };
};

/**
 * Our own copy. A number that is no timeout counts as not set. Throws HL_CONFIG for a hook that there is not and for an `onFailure` that says
 * nothing: whoever wants a delivery blocked is not to learn of a slip by what was sent.
 */
export function operatorOptions({ timeoutMs, timeouts, onFailure }: OperatorOptions): OperatorOptions {
  for (const hook of Object.keys(timeouts ?? {})) {
    if (!isMessageHook(hook)) throw refused(`timeouts: ${quoted(hook)} is no hook`);
  }
  for (const [hook, says] of Object.entries<unknown>(onFailure ?? {})) {
    if (!isMessageHook(hook) || !rulesOf(hook).blockable)
      throw refused(`onFailure: ${quoted(hook)} is no sending hook`);
    if (says !== undefined && says !== "continue" && says !== "block") {
      throw refused(`onFailure: ${hook} is neither "continue" nor "block"`);
    }
  }
  return {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    timeouts: { ...timeouts },
    onFailure: { ...onFailure },
  };
}

export function blocksOn(hook: MessageHookName, { onFailure = {} }: OperatorOptions): boolean {
  return Object.hasOwn(onFailure, hook) && Reflect.get(onFailure, hook) === "block";
}

/** As it is recorded. */
export function operatorJson({ timeoutMs, timeouts = {}, onFailure = {} }: OperatorOptions): Json {
  return {
    ...(typeof timeoutMs === "number" && Number.isFinite(timeoutMs) ? { timeoutMs } : {}),
    timeouts: Object.fromEntries(Object.entries(timeouts).filter(([, ms]) => Number.isFinite(ms))),
    onFailure: { ...onFailure },
  };
}

function refused(what: string): HookledgerError {
  return new HookledgerError("HL_CONFIG", `hooks.${what}`);
}

function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}
