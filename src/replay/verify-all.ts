/** Verifies a whole ledger, or a session of it: in this thread, or in several that share the ledger's ranges. */
import { Worker } from "node:worker_threads";
import { HookledgerError } from "../errors.js";
import type { EventStore, StreamEvents, StreamFilter, StreamName } from "../store/port.js";
import { type Divergence, Verifier } from "./verify.js";

/** What a stretch of the ledger came to. */
export type VerifyPart = { readonly checked: number; readonly open: number; readonly diverged: readonly Divergence[] };

/** Streams behind `after` up to and including `upto`, by name. */
type StreamSpan = { readonly after?: StreamName; readonly upto?: StreamName };

export type VerifyTask = { readonly session?: string | null; readonly span: StreamSpan };

/** Verifies one stretch, a page at a time. */
export async function* verifySpan(store: EventStore, { session, span }: VerifyTask): AsyncGenerator<VerifyPart> {
  const verifier = new Verifier(store);
  const filter: StreamFilter = {
    order: "oldest",
    ...(session === undefined ? {} : { session }),
    ...(span.after === undefined ? {} : { after: span.after }),
  };
  for await (const page of store.readStreams(filter)) {
    const { upto } = span;
    const inSpan = upto === undefined ? page : page.filter(({ stream }) => !comesAfter(stream, upto));
    yield await partOf(verifier, inSpan);
    if (inSpan.length < page.length) return;
  }
}

async function partOf(verifier: Verifier, streams: readonly StreamEvents[]): Promise<VerifyPart> {
  let open = 0;
  const diverged: Divergence[] = [];
  for (const stream of streams) {
    const verification = await verifier.verify(stream);
    if (verification.open) open++;
    if (verification.diverged !== null) diverged.push(verification.diverged);
  }
  return { checked: streams.length, open, diverged };
}

/** As the stores order names that are no ULIDs, too: by their bytes. */
function comesAfter(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) > 0;
}

/**
 * Yields parts as they are done, in no particular order with several jobs; without a session, what the store's own index does not
 * name comes last. `jobs` > 1 opens the store again in each thread, by `url`: needed where the store's own leaves out a password. A
 * store that lives in this process only is verified here.
 */
export async function* verifyAll(
  store: EventStore,
  session: string | null | undefined,
  jobs: number,
  url: string = store.url,
): AsyncGenerator<VerifyPart> {
  if (jobs <= 1 || url === "memory:") {
    yield* verifySpan(store, { ...(session === undefined ? {} : { session }), span: {} });
  } else yield* verifyInThreads(store, session, jobs, url);
  if (session === undefined) yield* verifyUnlisted(store);
}

async function* verifyUnlisted(store: EventStore): AsyncGenerator<VerifyPart> {
  const verifier = new Verifier(store);
  for await (const page of store.readUnlisted()) yield await partOf(verifier, page);
}

async function* verifyInThreads(
  store: EventStore,
  session: string | null | undefined,
  jobs: number,
  url: string,
): AsyncGenerator<VerifyPart> {
  const scope = session === undefined ? {} : { session };
  const spans = spansOf(store, session);
  const done: VerifyPart[] = [];
  let wake: () => void = () => {};
  let running = jobs;
  let failure: unknown = null;
  const drain = async (): Promise<void> => {
    const thread = new VerifyThread(url);
    try {
      for await (const span of spans) {
        done.push(...(await thread.ask({ ...scope, span })));
        wake();
      }
    } catch (error) {
      failure ??= error;
    } finally {
      running--;
      wake();
      await thread.end();
    }
  };
  const drained = Array.from({ length: jobs }, drain);
  while (running > 0 || done.length > 0) {
    const part = done.shift();
    if (part !== undefined) yield part;
    else
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (running === 0 || done.length > 0) resolve();
      });
  }
  await Promise.all(drained);
  if (failure !== null) throw failure;
}

/** One span a page of heads; the last is open, and a stream without a head falls into the span around it. */
async function* spansOf(store: EventStore, session: string | null | undefined): AsyncGenerator<StreamSpan> {
  let after: StreamName | undefined;
  for await (const heads of store.list({ order: "oldest", ...(session === undefined ? {} : { session }) })) {
    const upto = heads.at(-1)?.stream;
    if (upto === undefined) continue;
    yield { ...(after === undefined ? {} : { after }), upto };
    after = upto;
  }
  yield after === undefined ? {} : { after };
}

/** A thread that verifies. Whenever it ends, whoever asks it, then or later, is told why. */
class VerifyThread {
  readonly #worker: Worker;
  readonly #ended: Promise<never>;

  constructor(url: string) {
    const worker = new Worker(new URL("./verify-worker.js", import.meta.url), { workerData: url, execArgv: [] });
    this.#worker = worker;
    this.#ended = new Promise((_, reject) => {
      worker.once("error", reject);
      worker.once("exit", (code) =>
        reject(new HookledgerError("HL_INTERNAL", `a verifying thread ended with ${code}`)),
      );
    });
    this.#ended.catch(() => {});
  }

  async ask(task: VerifyTask): Promise<readonly VerifyPart[]> {
    const answered = new Promise<VerifyAnswer>((resolve) => this.#worker.once("message", resolve));
    this.#worker.postMessage(task);
    const answer = await Promise.race([answered, this.#ended]);
    if ("parts" in answer) return answer.parts;
    throw new HookledgerError(answer.code, answer.message);
  }

  async end(): Promise<void> {
    await this.#worker.terminate();
  }
}

export type VerifyAnswer =
  | { readonly parts: readonly VerifyPart[] }
  | { readonly code: HookledgerError["code"]; readonly message: string };
