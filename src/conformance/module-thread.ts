/** A module in a thread of its own: entry point. Code that blocks this thread can be ended; in a kernel's it could not. */

import { parentPort, workerData } from "node:worker_threads";
import { HookledgerError } from "../errors.js";
import { payloadOfCanonical } from "../payload/payload.js";
import { contain } from "../subscribers/containment.js";
import { deepFreeze } from "../subscribers/deep-freeze.js";
import { failed, thrownText } from "../subscribers/fault.js";
import { loadWholeModule } from "../subscribers/module.js";
import type { SubscriberTransport } from "../subscribers/port.js";
import { type FromThread, sent, type ThreadData, type ToThread } from "./module-messages.js";

/** Lines of log that are told; who prints without an end must not fill the memory of who listens. */
const MAX_LINES = 1_000;

const port = parentPort;
if (port === null) throw new TypeError("not started as a thread");
// Bound now: what the module makes of the port is its own affair.
const post = port.postMessage.bind(port);
const calls = new Map<number, AbortController>();
let lines = 0;

function tell(message: FromThread): void {
  post(message);
}

function log(level: "info" | "warn", provider: string, message: string): void {
  lines++;
  if (lines > MAX_LINES) return;
  tell({
    kind: "log",
    line: { level, provider, message: lines === MAX_LINES ? "prints too much to be shown" : message },
  });
}

async function start({ provider, config }: ThreadData): Promise<SubscriberTransport> {
  const containment = contain({
    onStray: ({ kind, message }) => log("warn", provider.name, `left an ${kind} behind: ${message}`),
    onPrint: ({ text }) => log("info", provider.name, text.replace(/\n$/, "")),
  });
  const { handlers, transport } = await loadWholeModule(provider, {
    config: deepFreeze(config),
    containment,
    log: ({ message }) => log("info", provider.name, message),
  });
  tell({ kind: "loaded", handlers });
  return transport;
}

async function answer(transport: SubscriberTransport, call: Extract<ToThread, { kind: "call" }>): Promise<void> {
  const { id, point, mode, session, turn, timeoutMs } = call;
  const abort = new AbortController();
  calls.set(id, abort);
  const payload = payloadOfCanonical(call.payload);
  const deadline = performance.now() + timeoutMs;
  try {
    const given = await transport.invoke({
      dispatchId: String(id),
      point,
      mode,
      payload,
      session,
      turn,
      subscriptionId: undefined,
      traceparent: undefined,
      signal: abort.signal,
      onAbort: (cancel) => abort.signal.addEventListener("abort", cancel, { once: true }),
      timeoutMs,
      remainingMs: () => Math.max(0, deadline - performance.now()),
    });
    tell({ kind: "answer", id, answer: sent(given, payload) });
  } catch (error) {
    tell({ kind: "answer", id, answer: failed(mode, thrownText(error)) });
  } finally {
    calls.delete(id);
  }
}

const data: ThreadData = workerData;
const started = start(data);
port.on("message", (message: ToThread) => {
  switch (message.kind) {
    case "ping":
      tell({ kind: "pong" });
      return;
    case "abort":
      calls.get(message.id)?.abort();
      return;
    case "call":
      started.then(
        (transport) => answer(transport, message),
        () => {},
      );
  }
});
started.catch((error: unknown) => {
  const known = error instanceof HookledgerError ? error : null;
  tell({
    kind: "refused",
    code: known?.code ?? "HL_SUBSCRIBER_LOAD",
    message: known?.message ?? thrownText(error),
    hint: known?.hint,
  });
});
