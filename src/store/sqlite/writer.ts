/** The writer's thread: everything that has arrived goes into one transaction, and then again. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import Database from "better-sqlite3";
import { HookledgerError } from "../../errors.js";
import type { AppendRequest } from "../port.js";
import { Appender } from "./appender.js";
import { storeError, toFailure } from "./failure.js";
import type { FromWriter, ToWriter, WriterData } from "./protocol.js";

/** ms without work after which the write-ahead log is emptied. */
const IDLE = 500;
/** Appends after which a transaction takes in no more, so that it does not hold the write lock for long. */
const MAX_BATCH = 1024;

if (parentPort === null) throw new HookledgerError("HL_INTERNAL", "the ledger's writer runs in a worker thread");
serve(parentPort, workerData);

function serve(port: MessagePort, data: WriterData): void {
  guarded(() => {
    const db = new Database(data.path, { fileMustExist: true, timeout: 0 });
    const appender = new Appender(db, data);
    const idle = setTimeout(() => guarded(() => appender.emptyLog()), IDLE);
    port.on("message", (message: ToWriter) => guarded(() => take(message)));
    post({ kind: "ready" });

    function take(message: ToWriter): void {
      const requests: AppendRequest[] = [];
      let next: ToWriter | undefined = message;
      while (next?.kind === "append") {
        for (const request of next.requests) requests.push(request);
        next = requests.length < MAX_BATCH ? arrived(port) : undefined;
      }
      if (requests.length > 0) {
        post({ kind: "outcomes", outcomes: appender.commit(requests) });
        appender.trimLog();
        idle.refresh();
      }
      if (next?.kind === "close") {
        clearTimeout(idle);
        appender.sync();
        db.close();
        port.close();
      }
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
