/** From registered handlers to the frozen chain of one run. */

import type { Subscriber } from "../core/events.js";
import type { ChainTransport, Link } from "../dispatch/chain.js";
import { type Fault, failed, thrownText } from "../subscribers/fault.js";
import type { Invocation } from "../subscribers/port.js";
import { claimAnswer, type HandlerAnswer, rewriteAnswer, waterfallAnswer } from "./answers.js";
import { clone } from "./clone.js";
import { contextCopy, type Given } from "./document.js";
import { whyIneligible } from "./eligibility.js";
import { type MessageHookName, rulesOf } from "./hooks.js";
import { isTimeout, type Registered } from "./registry.js";
import { hookCall } from "./turn/hook-call.js";

export type HandlerLink = Link<Given, HandlerAnswer | Fault, MessageHookName>;

/** What the operator says of handlers' time. A value that is no timeout counts as not set. */
export type OperatorTimeouts = {
  /** ms, for all hooks */
  readonly timeoutMs?: number;
  /** ms, by hook */
  readonly timeouts?: { readonly [H in MessageHookName]?: number };
};

/** The event that one handler is given: its own copy. `plugin`: whose handler it is. */
export type Dress = (event: object, plugin: string) => object;

export type ChainParts = {
  readonly timeouts: OperatorTimeouts;
  readonly dress: Dress;
};

/** Those who are not meant for this run stand in it with why. */
export function linksOf(
  handlers: readonly Registered[],
  context: object,
  { timeouts, dress }: ChainParts,
): HandlerLink[] {
  return handlers.map((handler, index): HandlerLink => {
    const { plugin, version, id, hook, eligible } = handler;
    const skip = whyIneligible(hook, eligible, context);
    const subscriber: Subscriber = {
      index,
      id,
      provider: plugin,
      mode: "handler",
      timeoutMs: timeoutOf(handler, timeouts),
      ...(id === plugin ? {} : { subscriptionId: id.slice(plugin.length + 1) }),
      ...(skip === null ? {} : { skip }),
      producer: { name: plugin, source: "plugin", ...(version === undefined ? {} : { version }) },
    };
    return { subscriber, transport: new HandlerTransport(handler, dress), recording: "barrier" };
  });
}

/** Whole ms, as the ledger has them, or null: none. The operator's word for the hook, for all hooks, the handler's own, the hook's. */
function timeoutOf(
  { hook, timeoutMs }: Registered,
  { timeouts = {}, timeoutMs: all }: OperatorTimeouts,
): number | null {
  const forHook = Object.hasOwn(timeouts, hook) ? timeouts[hook] : undefined;
  const ms = [forHook, all, timeoutMs].find(isTimeout) ?? rulesOf(hook).timeoutMs;
  return ms === null ? null : Math.ceil(ms);
}

class HandlerTransport implements ChainTransport<Given, HandlerAnswer | Fault, MessageHookName> {
  readonly #handler: Registered;
  readonly #dress: Dress;

  constructor(handler: Registered, dress: Dress) {
    this.#handler = handler;
    this.#dress = dress;
  }

  async invoke({ payload, onAbort }: Invocation<Given, MessageHookName>): Promise<HandlerAnswer | Fault> {
    const { handler, plugin, hook } = this.#handler;
    const call = hookCall(contextCopy(payload), onAbort);
    try {
      return read(hook, await handler(this.#dress(clone(payload.event), plugin), call.context));
    } catch (error) {
      return failed("observe", thrownText(error));
    } finally {
      call.end();
    }
  }
}

function read(hook: MessageHookName, returned: unknown): HandlerAnswer | Fault {
  switch (rulesOf(hook).composition) {
    case "notify":
      return { class: "ack" };
    case "claim":
      return claimAnswer(returned);
    case "rewrite":
      return rewriteAnswer(returned);
    case "waterfall":
      return waterfallAnswer(returned);
  }
}
