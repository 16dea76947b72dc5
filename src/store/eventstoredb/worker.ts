/**
 * A thread in which the client runs, because it throws where nobody can catch it: a late answer, a connection that is cut while much
 * is under way. Here that ends the thread, and no more.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { HookledgerError } from "../../errors.js";
import { collectGarbage } from "./archive/collect.js";
import { ArchiveReader } from "./archive/reader.js";
import { ArchiveWriter } from "./archive/writer.js";
import { Catalogue } from "./catalogue/catalogue.js";
import { Enlister } from "./catalogue/enlist.js";
import { ClientLog } from "./client-log.js";
import { toFailure } from "./failure.js";
import { Lanes } from "./lanes.js";
import { Pages } from "./pages.js";
import { type Answer, type Call, type FromThread, sharedNow, type ThreadData, type ToThread } from "./protocol.js";
import { Subscriptions } from "./subscription.js";
import { systemTime } from "./time.js";

// Node warns on stderr of TLS to an IP address, which is none of the host's concern.
process.noDeprecation = true;
process.on("uncaughtException", () => process.exit(1));
process.on("unhandledRejection", () => process.exit(1));

if (parentPort === null) throw new HookledgerError("HL_INTERNAL", "the EventStoreDB client runs in a worker thread");
serve(parentPort, workerData);

function serve(port: MessagePort, { role, address }: ThreadData): void {
  const log = new ClientLog(address);
  const take =
    role === "append" ? appending(log) : reading(log, (id, events) => post({ kind: "progress", id, events }));
  let answers: Answer[] = [];

  port.on("message", (message: ToThread) => {
    if (message.kind === "calls") for (const call of message.calls) answerTo(call);
    else void log.close().finally(() => port.close());
  });

  function answerTo(call: Call): void {
    take(call).then(
      (value) => answer({ id: call.id, value }),
      (error: unknown) => answer({ id: call.id, failure: toFailure(error) }),
    );
  }

  /** What is answered together travels together. */
  function answer(next: Answer): void {
    answers.push(next);
    if (answers.length > 1) return;
    queueMicrotask(() => {
      post({ kind: "answers", answers });
      answers = [];
    });
  }

  function post(message: FromThread): void {
    port.postMessage(message);
  }
}

type Take = (call: Call) => Promise<Extract<Answer, { readonly value: unknown }>["value"]>;

function appending(log: ClientLog): Take {
  const archive = new ArchiveWriter(log, systemTime);
  const catalogue = new Enlister(log, systemTime);
  const lanes = new Lanes({
    log,
    time: systemTime,
    enlist: (stream, session) => catalogue.enlist(stream, session),
    keep: (blobs) => archive.store(blobs),
    isStale: (kept) => archive.isStale(kept),
  });
  return async (call) => {
    if (call.kind === "append") {
      const { request, until } = call.takes;
      return new Promise((resolve, reject) => {
        lanes.take({ request, resolve, reject, ms: Math.max(1, until - sharedNow()) });
      });
    }
    if (call.kind !== "ping") throw misdirected(call);
    await log.ping();
    return null;
  };
}

function reading(log: ClientLog, progress: (id: number, events: number) => void): Take {
  const pages = new Pages(log, new Catalogue(log));
  const archive = new ArchiveReader(log, systemTime);
  const subscriptions = new Subscriptions(log);
  return async (call) => {
    switch (call.kind) {
      case "ping":
        await log.ping();
        return null;
      case "stream":
        return pages.stream(call.takes);
      case "streams":
        return pages.streams(call.takes);
      case "heads":
        return pages.heads(call.takes);
      case "unlisted":
        return pages.unlisted(call.takes.after);
      case "events":
        return pages.events(call.takes.after);
      case "blob":
        return archive.read(call.takes);
      case "news":
        return subscriptions.next(call.takes.subscription, call.takes.after);
      case "unsubscribe":
        subscriptions.end(call.takes.subscription);
        return null;
      case "collect":
        return collectGarbage(log, systemTime, call.takes, (events) => progress(call.id, events));
      case "append":
        throw misdirected(call);
    }
  };
}

function misdirected({ kind }: Call): HookledgerError {
  return new HookledgerError("HL_INTERNAL", `a ${kind} was asked of the thread that is not for it`);
}
