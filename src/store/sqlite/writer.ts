/** The writer's thread: everything that has arrived goes into one transaction, and then again. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import { Appender } from "./appender.js";
import { storeError, toFailure } from "./failure.js";
import {
  type FromWriter,
  isFailure,
  type Outcome,
  type ToWriter,
  type WriteRequest,
  type WriterData,
} from "./protocol.js";

/** Frames (pages) in the write-ahead log from which on it is copied back even under load. */
const MAX_LOG_FRAMES = 4096;
/** ms without work after which the log is emptied, if it holds more than a little: the first write after that costs a sync more. */
const IDLE = 500;
const IDLE_LOG_FRAMES = 256;
/**
 * ms after which appends that nobody waits for are acknowledged, unless a barrier's acknowledgement takes them along: waking the
 * other thread costs more than the append.
 */
const ACKNOWLEDGE = 1;
/** Acknowledgements that are held back at most. */
const MAX_UNACKNOWLEDGED = 256;
/** Requests in one transaction, so that it does not hold the write lock for long. */
const MAX_BATCH = 1024;

if (parentPort === null) throw new HookledgerError("HL_INTERNAL", "the ledger's writer runs in a worker thread");
serve(parentPort, workerData);

function serve(port: MessagePort, data: WriterData): void {
  guarded(() => {
    const db = new Database(data.path, { fileMustExist: true, timeout: 0 });
    const appender = new Appender(db, data);
    const idle = setTimeout(() => guarded(() => appender.trimLog(IDLE_LOG_FRAMES, "TRUNCATE")), IDLE);
    port.on("message", (message: ToWriter) => guarded(() => take(message)));
    let held: Outcome[] = [];
    let acknowledging: NodeJS.Timeout | undefined;
    post({ kind: "ready" });

    function take(message: ToWriter): void {
      const requests: WriteRequest[] = [];
      let next: ToWriter | undefined = message;
      while (next?.kind === "write") {
        for (const request of next.requests) requests.push(request);
        next = requests.length < MAX_BATCH ? arrived(port) : undefined;
      }
      for (let start = 0; start < requests.length; start += MAX_BATCH) {
        acknowledge(requests.slice(start, start + MAX_BATCH));
        appender.trimLog(MAX_LOG_FRAMES, "PASSIVE");
        idle.refresh();
      }
      if (next?.kind === "close") {
        release();
        clearTimeout(idle);
        appender.sync();
        db.close();
        port.close();
      }
    }

    function acknowledge(batch: readonly WriteRequest[]): void {
      const outcomes = appender.commit(batch);
      for (const outcome of outcomes) held.push(outcome);
      const awaited =
        batch.some(({ barrier }) => barrier) || outcomes.some(isFailure) || held.length > MAX_UNACKNOWLEDGED;
      if (awaited) release();
      else acknowledging ??= setTimeout(release, ACKNOWLEDGE);
    }

    function release(): void {
      clearTimeout(acknowledging);
      acknowledging = undefined;
      if (held.length === 0) return;
      post({ kind: "outcomes", outcomes: held });
      held = [];
    }
  });

  /** An error ends the thread; the database is closed with it. */
  function guarded(action: () => void): void {
    try {
      action();
    } catch (error) {
      post({ kind: "failed", failure: toFailure(storeError(error, data.path)) });
      process.exit(1);
    }
  }

  function post(message: FromWriter): void {
    port.postMessage(message);
  }
}

function arrived(port: MessagePort): ToWriter | undefined {
  const envelope: { readonly message: ToWriter } | undefined = receiveMessageOnPort(port);
  return envelope?.message;
}
