/** DispatchHook, answered by the author's handlers as a kernel would have them answered in its own process. */

import { Metadata, type ServerUnaryCall, status as Status, type sendUnaryData } from "@grpc/grpc-js";
import { HookledgerError } from "../errors.js";
import type { Answer } from "../payload/answer.js";
import { boundedReason } from "../payload/text.js";
import type { HandlerTable } from "../subscribers/handler-table.js";
import type { Logger } from "../subscribers/log.js";
import type { Invocation, SubscriberTransport } from "../subscribers/port.js";
import { type DispatchRequest, decodeRequest, encodeResponse } from "./envelope.js";

export type DispatchParts = {
  readonly handlers: HandlerTable;
  readonly subscriber: SubscriberTransport;
  readonly log: Logger;
};

type HookCall = ServerUnaryCall<Buffer, Uint8Array>;
type Reply = sendUnaryData<Uint8Array>;

/**
 * bytes of a status message: header limits may drop a longer one with the whole answer. It is more than a kernel shows, so that
 * no secret is cut before the kernel has looked for it.
 */
const MAX_DETAILS = 8 * 1024;

export class HookService {
  readonly #parts: DispatchParts;
  readonly #running = new Set<RunningCall>();
  #ending = false;
  #idle: () => void = () => {};

  constructor(parts: DispatchParts) {
    this.#parts = parts;
  }

  readonly dispatchHook = (call: HookCall, reply: Reply): void => {
    const request = this.#admitted(call, reply);
    if (request === undefined) return;
    const what = nameOf(request);
    const running = new RunningCall(call, request, () => this.#parts.log.warn(`${what} settled more than once`));
    this.#running.add(running);
    // Also emitted once an answer is out, when nothing is left to abort.
    call.once("cancelled", () => {
      if (this.#running.has(running)) running.abort();
      this.#over(running);
    });
    void this.#parts.subscriber.invoke(running).then((answer) => {
      if (this.#running.has(running)) this.#answer(what, answer, reply);
      this.#over(running);
    });
  };

  /** Takes no further calls; resolves when those that run are answered or cancelled, `graceMs` later at most. */
  async end(graceMs: number): Promise<void> {
    this.#ending = true;
    if (this.#running.size === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, graceMs);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Undefined for a request that is refused here. */
  #admitted(call: HookCall, reply: Reply): DispatchRequest | undefined {
    if (this.#ending) {
      refuse(reply, Status.UNAVAILABLE, "the plugin is about to end");
      return undefined;
    }
    const request = decoded(call, reply);
    if (request === undefined) return undefined;
    if (this.#parts.handlers.get(request.payload.point)?.[request.mode] !== undefined) return request;
    refuse(reply, Status.UNIMPLEMENTED, `the plugin has no handler ${nameOf(request)}`);
    return undefined;
  }

  #over(running: RunningCall): void {
    this.#running.delete(running);
    if (this.#running.size === 0) this.#idle();
  }

  #answer(what: string, answer: Answer, reply: Reply): void {
    const { log } = this.#parts;
    for (const warning of answer.warnings ?? []) log.warn(`${what}: ${warning}`);
    if (answer.class === "failed") {
      refuse(reply, Status.UNKNOWN, answer.error.message);
      return;
    }
    if (answer.class === "invalid") log.error(`${what} gave no valid answer: ${answer.error.message}`);
    reply(null, encodeResponse(answer), reasonTrailer(reasonOf(answer)));
  }
}

function nameOf({ payload, mode }: DispatchRequest): string {
  return `${payload.point}.${mode}`;
}

function decoded(call: HookCall, reply: Reply): DispatchRequest | undefined {
  try {
    return decodeRequest(call.request);
  } catch (error) {
    if (!(error instanceof HookledgerError)) throw error;
    refuse(reply, Status.INVALID_ARGUMENT, error.message);
    return undefined;
  }
}

function refuse(reply: Reply, code: Status, details: string): void {
  reply({ code, details: boundedReason(details, MAX_DETAILS) });
}

/** Why it denies, or why it has no outcome. */
function reasonOf(answer: Answer): string | undefined {
  switch (answer.class) {
    case "deny":
      return answer.reason;
    case "invalid":
      return answer.error.message;
    case "ack":
    case "transformed":
    case "allow":
    case "failed":
      return undefined;
  }
}

function reasonTrailer(reason: string | undefined): Metadata | undefined {
  if (reason === undefined || reason === "") return undefined;
  const trailers = new Metadata();
  trailers.set("hookledger-reason", encodeURIComponent(boundedReason(reason)));
  return trailers;
}

/** One call over the wire, as the handlers' context is made from. */
class RunningCall implements Invocation {
  readonly dispatchId: string;
  readonly point: Invocation["point"];
  readonly mode: Invocation["mode"];
  readonly payload: Invocation["payload"];
  readonly subscriptionId: string | undefined;
  readonly session: string | undefined;
  readonly turn: string | undefined;
  readonly traceparent: string | undefined;
  readonly timeoutMs: number;
  readonly extra: () => void;
  readonly #startedAt = performance.now();
  #controller: AbortController | undefined;
  #aborted = false;
  #onAbort: () => void = () => {};

  constructor(call: HookCall, request: DispatchRequest, extra: () => void) {
    const { metadata } = call;
    this.dispatchId = told(metadata, "hookledger-dispatch") ?? "";
    this.session = told(metadata, "hookledger-session");
    this.turn = told(metadata, "hookledger-turn");
    this.traceparent = metadata.get("traceparent")[0]?.toString();
    this.point = request.payload.point;
    this.mode = request.mode;
    this.payload = request.payload;
    this.subscriptionId = request.subscriptionId;
    this.timeoutMs = Math.max(0, Number(call.getDeadline()) - Date.now());
    this.extra = extra;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#aborted) this.#controller.abort();
    return this.#controller.signal;
  }

  get onAbort(): Invocation["onAbort"] {
    return (cancel) => {
      if (this.#aborted) cancel();
      else this.#onAbort = cancel;
    };
  }

  /** Infinity for a host that set no deadline. */
  get remainingMs(): Invocation["remainingMs"] {
    return () => Math.max(0, this.timeoutMs - (performance.now() - this.#startedAt));
  }

  abort(): void {
    this.#aborted = true;
    this.#onAbort();
    this.#controller?.abort();
  }
}

/** What a host percent-encoded, or undefined. */
function told(metadata: Metadata, name: string): string | undefined {
  try {
    const [value] = metadata.get(name);
    return value === undefined ? undefined : decodeURIComponent(String(value));
  } catch {
    return undefined;
  }
}
