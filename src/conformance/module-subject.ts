/** A module, checked in a thread of its own, which is made again where the module ended it. */

import { Worker } from "node:worker_threads";
import type { Provider } from "../config/types.js";
import { HookledgerError } from "../errors.js";
import type { Answer } from "../payload/answer.js";
import { crashed } from "../subscribers/fault.js";
import { loadError } from "../subscribers/handler-table.js";
import type { HookConfig } from "../subscribers/handlers.js";
import type { LogSink } from "../subscribers/log.js";
import type { Invocation, SubscriberTransport } from "../subscribers/port.js";
import type { Stand } from "./ask.js";
import { type FromThread, received, type ThreadData, type ToThread } from "./module-messages.js";
import type { Subject } from "./subject.js";

/** ms: more than the loader itself waits for an import that does not block. */
const LOAD_MS = 12_000;
/** ms after a deadline at which a thread that says nothing counts as blocked, and that it then has to answer a ping */
const BLOCKED = { afterMs: 400, pingMs: 400 } as const;

/** Throws HL_SUBSCRIBER_LOAD as the loading of modules does, and for one that blocks its thread while it is imported. */
export async function moduleSubject(provider: Provider, config: HookConfig, log: LogSink): Promise<Subject> {
  const start = () => ModuleThread.start({ provider, config }, log);
  let thread = await start();
  let isClosed = false;
  return {
    stands: thread.handlers,
    isExplicit: true,
    async reach() {
      if (thread.hasEnded && !isClosed) thread = await start();
      return thread;
    },
    exchange: null,
    close() {
      isClosed = true;
      return thread.close();
    },
  };
}

type Waiting = { readonly call: Invocation; readonly settle: (answer: Answer) => void };

class ModuleThread implements SubscriberTransport {
  readonly handlers: readonly Stand[];
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #pinged: (() => void) | null = null;
  #next = 0;
  #end: string | null = null;

  private constructor(worker: Worker, handlers: readonly Stand[], log: LogSink) {
    this.#worker = worker;
    this.handlers = handlers;
    worker.on("message", (message: FromThread) => this.#hear(message, log));
    worker.on("error", (error) => this.#ended(`its thread broke: ${error.message}`));
    worker.on("exit", () => this.#ended("its thread ended"));
  }

  static async start(data: ThreadData, log: LogSink): Promise<ModuleThread> {
    const worker = new Worker(new URL("./module-thread.js", import.meta.url), { workerData: data });
    // Only who waits for something of it keeps the process.
    worker.unref();
    try {
      return new ModuleThread(worker, await loaded(worker, data.provider, log), log);
    } catch (error) {
      await worker.terminate();
      throw error;
    }
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  invoke(call: Invocation): Promise<Answer> {
    if (this.#end !== null) return Promise.resolve(crashed(this.#end));
    const id = this.#next++;
    const { point, mode, payload, session, turn, timeoutMs } = call;
    return new Promise<Answer>((resolve) => {
      const timer = setTimeout(() => this.#ping(), timeoutMs + BLOCKED.afterMs);
      this.#waiting.set(id, {
        call,
        settle: (answer) => {
          clearTimeout(timer);
          this.#waiting.delete(id);
          resolve(answer);
        },
      });
      call.onAbort(() => this.#tell({ kind: "abort", id }));
      this.#tell({ kind: "call", id, point, mode, payload: payload.bytes, session, turn, timeoutMs });
    });
  }

  async close(): Promise<void> {
    this.#ended("its thread was ended");
    await this.#worker.terminate();
  }

  #tell(message: ToThread): void {
    this.#worker.postMessage(message);
  }

  #hear(message: FromThread, log: LogSink): void {
    switch (message.kind) {
      case "answer": {
        const waiting = this.#waiting.get(message.id);
        waiting?.settle(received(message.answer, waiting.call.payload));
        return;
      }
      case "pong":
        this.#pinged?.();
        return;
      case "log":
        log(message.line);
        return;
      case "loaded":
      case "refused":
    }
  }

  /** A thread that runs answers at once. */
  #ping(): void {
    if (this.#pinged !== null || this.#end !== null) return;
    const timer = setTimeout(() => {
      this.#ended("it blocked its thread beyond the deadline; a kernel would have stood still with it");
      void this.#worker.terminate();
    }, BLOCKED.pingMs);
    this.#pinged = () => {
      clearTimeout(timer);
      this.#pinged = null;
    };
    this.#tell({ kind: "ping" });
  }

  #ended(how: string): void {
    this.#end ??= how;
    this.#pinged?.();
    for (const { settle } of [...this.#waiting.values()]) settle(crashed(this.#end));
  }
}

function loaded(worker: Worker, provider: Provider, log: LogSink): Promise<readonly Stand[]> {
  return new Promise<readonly Stand[]>((resolve, reject) => {
    const settle = <T>(how: (value: T) => void, value: T) => {
      clearTimeout(timer);
      worker.off("message", hear);
      worker.off("exit", ended);
      how(value);
    };
    const refuse = (error: HookledgerError) => settle(reject, error);
    const ended = () => refuse(loadError(provider, "its import ended its thread"));
    const hear = (message: FromThread) => {
      if (message.kind === "loaded") settle(resolve, message.handlers);
      else if (message.kind === "refused") refuse(refused(message, provider));
      else if (message.kind === "log") log(message.line);
    };
    const timer = setTimeout(
      () => refuse(loadError(provider, "its import blocks the thread and does not end")),
      LOAD_MS,
    );
    worker.on("message", hear);
    worker.on("exit", ended);
    // Stays: an error that nobody hears of would be thrown.
    worker.on("error", (error) => refuse(loadError(provider, `its import failed: ${error.message}`)));
  });
}

function refused(
  { code, message, hint }: Extract<FromThread, { kind: "refused" }>,
  { place }: Provider,
): HookledgerError {
  return new HookledgerError(code, message, { place, ...(hint === undefined ? {} : { hint }) });
}
