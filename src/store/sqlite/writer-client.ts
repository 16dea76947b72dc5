/** The store's side of the writer's thread: a bounded queue, and a new thread when one dies. */
import { Worker } from "node:worker_threads";
import { HookledgerError } from "../../errors.js";
import { withOwnBlobs } from "../append.js";
import { Backlog } from "../backlog.js";
import type { AppendRequest, AppendResult } from "../port.js";
import { deliveryLength } from "../queue-check.js";
import { type Failure, fromFailure } from "./failure.js";
import {
  type FromWriter,
  isFailure,
  type Outcome,
  type QueueRequest,
  type ToWriter,
  type WriteRequest,
  type WriterData,
} from "./protocol.js";

/** Appends that wait for the thread's answer before they are sent: whoever then asks for durability waits for little more than that. */
const MAX_HELD = 4;
/** Appends with a barrier that are sent while more are being made: the thread writes them meanwhile. */
const MAX_TOGETHER = 16;
/** Threads that may die one after the other without answering anything in between. */
const MAX_DEATHS = 3;

type Written = Exclude<Outcome, Failure>;

type Pending = {
  readonly request: WriteRequest;
  readonly bytes: number;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: HookledgerError) => void;
};

export type SpawnWriter = (data: WriterData) => Worker;

export function spawnWriter(data: WriterData): Worker {
  return new Worker(new URL("./writer.js", import.meta.url), {
    name: "hookledger-writer",
    workerData: data,
    execArgv: [],
  });
}

export class WriterClient {
  readonly #ledger: Pick<WriterData, "path" | "busyTimeoutMs">;
  readonly #spawn: SpawnWriter;
  readonly #backlog = new Backlog();
  #worker: Worker | undefined;
  #state: "starting" | "ready" | "closing" | "failed" = "starting";
  #failure: HookledgerError | undefined;
  #deaths = 0;
  #waiting: Pending[] = [];
  #inFlight: Pending[] = [];
  #flush: "none" | "macrotask" | "microtask" = "none";
  #changed: () => void = () => {};

  private constructor(ledger: Pick<WriterData, "path" | "busyTimeoutMs">, spawn: SpawnWriter) {
    this.#ledger = ledger;
    this.#spawn = spawn;
  }

  /** Resolves once the ledger is open for writing; throws as the port says. */
  static async open(
    ledger: Pick<WriterData, "path" | "busyTimeoutMs">,
    spawn: SpawnWriter = spawnWriter,
  ): Promise<WriterClient> {
    const client = new WriterClient(ledger, spawn);
    client.#start(false);
    await client.#until(() => client.#state !== "starting");
    if (client.#failure !== undefined) throw client.#failure;
    return client;
  }

  /** Of appends that wait or are under way. */
  get pendingBytes(): number {
    return this.#backlog.bytes;
  }

  /** Queues the append. Rejects as the port says; HL_STORE_BACKLOG before anything of it is copied. */
  append(request: AppendRequest): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) throw this.#failure;
      const bytes = this.#backlog.admit(request);
      this.#wait({
        request: withOwnBlobs(request),
        bytes,
        resolve: (written) => ("changed" in written ? reject(mixedUp()) : resolve(written)),
        reject,
      });
    });
  }

  /** The same for what concerns the queue of deliveries, whose parts nobody else may change. Resolves with whether it changed anything. */
  queue(request: QueueRequest): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) throw this.#failure;
      this.#wait({
        request,
        bytes: this.#backlog.admitBytes(queueBytes(request)),
        resolve: (written) => ("changed" in written ? resolve(written.changed) : reject(mixedUp())),
        reject,
      });
    });
  }

  /**
   * Answers everything, makes it durable and ends the thread. Nothing may follow.
   * Throws if the writer has failed: what it acknowledged without a barrier may then be lost.
   */
  async close(): Promise<void> {
    await this.#until(() => this.#waiting.length === 0 && this.#inFlight.length === 0 && this.#state !== "starting");
    const worker = this.#worker;
    if (worker !== undefined) {
      this.#state = this.#state === "failed" ? "failed" : "closing";
      worker.ref();
      // However it ends: one that fails meanwhile has ended, too.
      const ended = new Promise<unknown>((resolve) => worker.once("exit", resolve));
      this.#post({ kind: "close" });
      await ended;
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #wait(pending: Pending): void {
    this.#waiting.push(pending);
    this.#worker?.ref();
    this.#schedule(pending.request.barrier);
  }

  /**
   * A barrier goes out as soon as the microtasks at hand are done, or in company of enough others. Anything else at the end of the
   * macrotask, or while the thread has something to answer, a few at a time: nobody waits for it, and waking the thread is what costs.
   */
  #schedule(barrier: boolean): void {
    if (barrier) {
      if (this.#waiting.length >= MAX_TOGETHER) this.#send();
      if (this.#flush === "microtask" || this.#waiting.length === 0) return;
      this.#flush = "microtask";
      queueMicrotask(() => this.#send());
    } else if (this.#flush === "none" && (this.#inFlight.length === 0 || this.#waiting.length >= MAX_HELD)) {
      this.#flush = "macrotask";
      setImmediate(() => this.#send());
    }
  }

  #send(): void {
    this.#flush = "none";
    if (this.#state !== "ready" || this.#waiting.length === 0) return;
    const batch = this.#waiting.splice(0);
    for (const pending of batch) this.#inFlight.push(pending);
    const requests = batch.map(({ request }) => request);
    this.#post({ kind: "write", requests }, requests.flatMap(transferable));
  }

  /** What cannot be posted leaves a thread that has not seen it: end that, and let its successor go on. */
  #post(message: ToWriter, transfer: readonly ArrayBuffer[] = []): void {
    try {
      this.#worker?.postMessage(message, transfer);
    } catch {
      void this.#worker?.terminate();
    }
  }

  #start(resumed: boolean): void {
    this.#state = "starting";
    const worker = this.#spawn({ ...this.#ledger, resumed });
    this.#worker = worker;
    worker.on("message", (message: FromWriter) => this.#receive(message));
    worker.on("error", () => {});
    worker.once("exit", (code) => this.#exited(code));
  }

  #receive(message: FromWriter): void {
    switch (message.kind) {
      case "ready":
        this.#state = "ready";
        this.#send();
        break;
      case "outcomes":
        this.#deaths = 0;
        this.#settle(message.outcomes);
        this.#send();
        break;
      case "failed":
        this.#fail(fromFailure(message.failure));
        break;
    }
    if (this.#inFlight.length === 0 && this.#waiting.length === 0) this.#worker?.unref();
    this.#changed();
  }

  #settle(outcomes: readonly Outcome[]): void {
    const answered = this.#inFlight.splice(0, outcomes.length);
    answered.forEach(({ bytes, resolve, reject }, i) => {
      const outcome = outcomes[i];
      this.#backlog.release(bytes);
      if (outcome === undefined) return;
      if (isFailure(outcome)) reject(fromFailure(outcome));
      else resolve(outcome);
    });
  }

  #exited(code: number): void {
    this.#worker = undefined;
    this.#giveUp(this.#inFlight, ambiguous());
    const ended = this.#state === "closing" && code === 0;
    if (!ended && this.#failure === undefined) {
      if (this.#state === "closing" || ++this.#deaths > MAX_DEATHS) this.#fail(died());
      else this.#start(true);
    }
    this.#changed();
  }

  #fail(error: HookledgerError): void {
    this.#state = "failed";
    this.#failure = error;
    this.#giveUp(this.#waiting, error);
  }

  #giveUp(appends: Pending[], error: HookledgerError): void {
    for (const { bytes, reject } of appends.splice(0)) {
      this.#backlog.release(bytes);
      reject(error);
    }
  }

  async #until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }
}

function transferable(request: WriteRequest): ArrayBuffer[] {
  const { blobs = [] } = "kind" in request ? {} : request;
  return blobs.flatMap(({ bytes: { buffer } }) => (buffer instanceof ArrayBuffer ? [buffer] : []));
}

/** As for appends, a UTF-16 unit of text counts as one byte. */
function queueBytes(request: QueueRequest): number {
  if (request.kind === "change") return deliveryLength(request.to);
  let bytes = 0;
  for (const delivery of request.deliveries) bytes += deliveryLength(delivery);
  return bytes;
}

function ambiguous(): HookledgerError {
  return new HookledgerError(
    "HL_STORE_AMBIGUOUS",
    "the ledger's writer ended before it acknowledged what it was to write",
    {
      hint: "It may or may not have been written: read the stream back, or repeat the identical append.",
    },
  );
}

function mixedUp(): HookledgerError {
  return new HookledgerError("HL_INTERNAL", "the ledger's writer answered another question");
}

function died(): HookledgerError {
  return new HookledgerError("HL_STORE_UNAVAILABLE", "the ledger's writer has ended and could not be replaced");
}
