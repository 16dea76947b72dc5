/** Subscribers in this process: functions that get the decoded view and whose returned value is admitted. */

import type { HookMode } from "../core/events.js";
import type { HookPoint } from "../core/points.js";
import { admitReturned } from "../payload/admission.js";
import type { Answer } from "../payload/answer.js";
import { type Containment, ModuleExit } from "./containment.js";
import { crashed, failed, thrownText } from "./fault.js";
import type { HandlerTable } from "./handler-table.js";
import type { HookConfig, HookContext } from "./handlers.js";
import type { Logger } from "./log.js";
import type { Invocation, SubscriberTransport } from "./port.js";

type InProcessParts = {
  readonly provider: string;
  readonly handlers: HandlerTable;
  /** Deep-frozen. */
  readonly config: HookConfig;
  readonly log: Logger;
  /** Only where the program owns the process. */
  readonly containment?: Containment;
  /** Told what a handler threw, of which the answer has no more than the message. */
  readonly onThrown?: (call: Invocation, error: unknown) => void;
};

/**
 * A handler that returns without a promise is answered in the same turn. It cannot be interrupted: one that blocks the thread
 * is judged by the clock once it returns.
 */
export function inProcess(parts: InProcessParts): SubscriberTransport {
  return new InProcess(parts);
}

class InProcess implements SubscriberTransport {
  readonly #parts: InProcessParts;

  constructor(parts: InProcessParts) {
    this.#parts = parts;
  }

  invoke(call: Invocation): Promise<Answer> {
    const { containment, provider } = this.#parts;
    if (containment === undefined) return this.#call(call);
    return containment
      .run(provider, () => this.#call(call))
      .catch((error: unknown) =>
        error instanceof ModuleExit ? crashed(error.message) : failed(call.mode, thrownText(error)),
      );
  }

  #call(call: Invocation): Promise<Answer> {
    const { mode, payload } = call;
    const { handlers, config, log } = this.#parts;
    const handler = handlers.get(call.point)?.[mode];
    if (handler === undefined) return Promise.resolve(failed(mode, `there is no handler ${call.point}.${mode}`));
    try {
      const returned: unknown = handler(payload.view, new Context(call, config, log));
      const then = thenOf(returned);
      if (then === undefined) return Promise.resolve(this.#admit(call, returned));
      return settledOnce(then, call.extra).then(
        (value) => this.#admit(call, value),
        (error: unknown) => this.#thrown(call, error),
      );
    } catch (error) {
      return Promise.resolve(this.#thrown(call, error));
    }
  }

  #thrown(call: Invocation, error: unknown): Answer {
    this.#parts.onThrown?.(call, error);
    return failed(call.mode, thrownText(error));
  }

  /** Whatever throws while the result is read counts as thrown by the handler. */
  #admit(call: Invocation, returned: unknown): Answer {
    try {
      return admitReturned(call.mode, call.payload, returned);
    } catch (error) {
      return this.#thrown(call, error);
    }
  }

  async close(): Promise<void> {}
}

/** The first call of either function settles, whatever the thenable does after that. */
function settledOnce(then: Then, extra: Invocation["extra"]): Promise<unknown> {
  let settled = false;
  const once =
    <T>(settle: (value: T) => void) =>
    (value: T) => {
      if (settled) extra?.();
      settled = true;
      settle(value);
    };
  return new Promise((resolve, reject) => then(once(resolve), once(reject)));
}

type Then = (resolve: (value: unknown) => void, reject: (reason: unknown) => void) => unknown;

/** `then`, read once; throws what its getter throws. */
function thenOf(value: unknown): Then | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  const then: unknown = "then" in value ? value.then : undefined;
  return isFunction(then) ? (resolve, reject) => Reflect.apply(then, value, [resolve, reject]) : undefined;
}

function isFunction(value: unknown): value is (...args: unknown[]) => unknown {
  return typeof value === "function";
}

/** Getters, so that a signal is only made for a handler that reads it. */
class Context implements HookContext {
  readonly #call: Invocation;
  readonly config: HookConfig;
  readonly log: Logger;

  constructor(call: Invocation, config: HookConfig, log: Logger) {
    this.#call = call;
    this.config = config;
    this.log = log;
  }
  get point(): HookPoint {
    return this.#call.point;
  }
  get mode(): HookMode {
    return this.#call.mode;
  }
  get subscriptionId(): string | undefined {
    return this.#call.subscriptionId;
  }
  get session(): string | undefined {
    return this.#call.session;
  }
  get turn(): string | undefined {
    return this.#call.turn;
  }
  get signal(): AbortSignal {
    return this.#call.signal;
  }
  get remainingMs(): () => number {
    return this.#call.remainingMs;
  }
}
