/** The store's side of a thread in which the client runs. A thread that dies is replaced, and its successor is asked what was left unanswered. */
import { Worker } from "node:worker_threads";
import { HookledgerError } from "../../errors.js";
import { closed, fromFailure } from "./failure.js";
import type { Answer, Call, Calls, FromThread, Kind, ThreadData, ToThread } from "./protocol.js";

/** Threads that may die one after the other without answering anything in between; with the pauses that takes some seconds. */
const MAX_DEATHS = 8;
/** ms before the second of them is replaced, doubled each time. */
const FIRST_PAUSE = 25;
const LAST_PAUSE = 1000;
/** ms that a thread has to end. */
const CLOSING = 3000;

export type SpawnThread = (data: ThreadData) => Worker;

export function spawnThread(data: ThreadData): Worker {
  return new Worker(new URL("./worker.js", import.meta.url), {
    name: `hookledger-${data.role}`,
    workerData: data,
    execArgv: [],
  });
}

type Pending = {
  readonly call: Call;
  // Methods, so that each may take what its own kind of call gives.
  resolve(value: Calls[Kind]["gives"]): void;
  reject(error: HookledgerError): void;
  progress(events: number): void;
};

export class ClientThread {
  readonly #data: ThreadData;
  readonly #spawn: SpawnThread;
  /** In the order of the calls. */
  readonly #pending = new Map<number, Pending>();
  #unsent: Call[] = [];
  #worker: Worker | undefined;
  #state: "open" | "closing" | "closed" = "open";
  #restart: NodeJS.Timeout | undefined;
  #deaths = 0;
  #lastId = 0;
  #settled: () => void = () => {};

  constructor(data: ThreadData, spawn: SpawnThread = spawnThread) {
    this.#data = data;
    this.#spawn = spawn;
  }

  /** Asks the thread, which is started if there is none. Rejects with a HookledgerError. */
  ask<K extends Kind>(
    kind: K,
    takes: Calls[K]["takes"],
    progress: (events: number) => void = () => {},
  ): Promise<Calls[K]["gives"]> {
    if (this.#state !== "open") return Promise.reject(closed());
    return new Promise((resolve, reject) => {
      const call = { id: ++this.#lastId, kind, takes } as Call;
      this.#pending.set(call.id, { call, resolve, reject, progress });
      this.#unsent.push(call);
      if (this.#unsent.length === 1) queueMicrotask(() => this.#flush());
    });
  }

  /** Waits for the calls of the kinds that `finish` names, refuses the others with HL_STORE_CLOSED, and ends the thread. */
  async close(finish: readonly Kind[]): Promise<void> {
    this.#state = "closing";
    for (const [id, { call, reject }] of this.#pending) {
      if (finish.includes(call.kind)) continue;
      this.#pending.delete(id);
      reject(closed());
    }
    while (this.#pending.size > 0) {
      await new Promise<void>((resolve) => {
        this.#settled = resolve;
      });
    }
    this.#state = "closed";
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.ref();
    // However it ends: one that fails meanwhile has ended, too.
    const ended = new Promise<unknown>((resolve) => worker.once("exit", resolve));
    const timer = setTimeout(() => void worker.terminate(), CLOSING);
    worker.postMessage({ kind: "close" } satisfies ToThread);
    await ended;
    clearTimeout(timer);
  }

  #flush(): void {
    // What was refused meanwhile starts no thread.
    const calls = this.#unsent.splice(0).filter(({ id }) => this.#pending.has(id));
    if (calls.length === 0) return;
    if (this.#worker === undefined) {
      // Whoever is started asks for everything that is pending.
      if (this.#restart === undefined) this.#start();
      return;
    }
    this.#send(this.#worker, calls);
  }

  #send(worker: Worker, calls: readonly Call[]): void {
    if (calls.length === 0) return;
    worker.ref();
    try {
      worker.postMessage({ kind: "calls", calls } satisfies ToThread);
    } catch {
      for (const call of calls) this.#sendAlone(worker, call);
    }
  }

  /** What cannot be handed to another thread is refused, and nothing else. */
  #sendAlone(worker: Worker, call: Call): void {
    try {
      worker.postMessage({ kind: "calls", calls: [call] } satisfies ToThread);
    } catch {
      this.#settle({ id: call.id, failure: { code: "HL_USAGE", message: `a ${call.kind} takes plain values` } });
      if (this.#pending.size === 0) worker.unref();
      this.#settled();
    }
  }

  #start(): void {
    this.#restart = undefined;
    this.#unsent = [];
    const worker = this.#spawn(this.#data);
    this.#worker = worker;
    worker.on("message", (message: FromThread) => this.#receive(message));
    worker.on("error", () => {});
    worker.once("exit", () => this.#exited());
    this.#send(
      worker,
      Array.from(this.#pending.values(), ({ call }) => call),
    );
  }

  #receive(message: FromThread): void {
    if (message.kind === "progress") {
      this.#pending.get(message.id)?.progress(message.events);
      return;
    }
    this.#deaths = 0;
    for (const answer of message.answers) this.#settle(answer);
    if (this.#pending.size === 0) this.#worker?.unref();
    this.#settled();
  }

  #settle(answer: Answer): void {
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    if ("failure" in answer) pending?.reject(fromFailure(answer.failure));
    else pending?.resolve(answer.value);
  }

  #exited(): void {
    this.#worker = undefined;
    if (this.#state === "closed") return;
    if (++this.#deaths > MAX_DEATHS) {
      this.#deaths = 0;
      for (const { call, reject } of this.#pending.values()) reject(lost(call));
      this.#pending.clear();
      this.#settled();
    }
    // Without calls the next one starts it.
    if (this.#pending.size === 0) return;
    const pause = this.#deaths <= 1 ? 0 : Math.min(FIRST_PAUSE * 2 ** (this.#deaths - 1), LAST_PAUSE);
    this.#restart = setTimeout(() => this.#start(), pause);
  }
}

function lost({ kind }: Call): HookledgerError {
  if (kind === "append") {
    return new HookledgerError("HL_STORE_AMBIGUOUS", "the EventStoreDB client died again and again during an append", {
      hint: "It may or may not have been written: read the stream back, or repeat the identical append.",
    });
  }
  return new HookledgerError("HL_STORE_UNAVAILABLE", "the EventStoreDB client died again and again");
}
