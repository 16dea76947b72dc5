import { Worker } from "node:worker_threads";
import type { GrammarReply } from "./grammar-worker.js";

/** What HCL's own grammar makes of a text. Lines and columns are 1-based, columns in grapheme clusters. */
export type Verdict =
  | { readonly kind: "valid"; readonly values: unknown }
  | {
      readonly kind: "invalid";
      readonly line: number;
      readonly column: number;
      /** What is wrong, in a few words. */
      readonly summary: string;
      /** What the grammar adds to it, whole sentences. */
      readonly detail: string;
    }
  /** Valid, but of a shape that the grammar's JSON cannot hold; `values` of single expressions always exist. */
  | { readonly kind: "shapeless" }
  | { readonly kind: "exhausted" };

const MAX_PARSE_MS = 10_000;
const IDLE_MS = 2_000;
const ERROR = /^parse config: \[[^\s:]+:(\d+),(\d+)[^:]*: ([^;]*)(?:; ([\s\S]*))?\]$/;
const NEXT_ERROR = / hookledger-source:\d+,\d+-/;

/** One at a time, in a worker thread that is started on demand and stopped when it has been idle for a while. */
let worker: Worker | undefined;
let idle: NodeJS.Timeout | undefined;
let last: Promise<unknown> = Promise.resolve();

/** Parses `text`, which must nest no deeper than the scanner allows. Never rejects. */
export function parseGrammar(text: string): Promise<Verdict> {
  // The grammar drops a byte-order mark at the start. A text's own is dropped already: another one is not to be.
  const verdict = last.then(() => ask(text.startsWith("\ufeff") ? `\ufeff${text}` : text));
  last = verdict;
  return verdict;
}

async function ask(text: string): Promise<Verdict> {
  clearTimeout(idle);
  const asked = worker ?? start();
  asked.ref();
  const reply = await replyOf(asked, text);
  if (reply === undefined) {
    worker = undefined;
    await asked.terminate();
    return { kind: "exhausted" };
  }
  asked.unref();
  idle = setTimeout(() => {
    worker = undefined;
    void asked.terminate();
  }, IDLE_MS).unref();
  return verdictOf(reply);
}

function start(): Worker {
  const started = new Worker(new URL("./grammar-worker.js", import.meta.url), {
    stderr: true,
    stdout: true,
    execArgv: [],
  });
  const forget = () => {
    if (worker === started) worker = undefined;
  };
  // One that dies while nobody asks it anything is missed by nobody.
  started.on("error", forget).on("exit", forget);
  worker = started;
  return started;
}

/** Undefined when the worker died or took too long. */
function replyOf(asked: Worker, text: string): Promise<GrammarReply | undefined> {
  return new Promise((resolve) => {
    const settle = (reply: GrammarReply | undefined) => {
      clearTimeout(timer);
      asked.off("message", settle).off("error", fail).off("exit", fail);
      resolve(reply);
    };
    const fail = () => settle(undefined);
    const timer = setTimeout(fail, MAX_PARSE_MS);
    asked.on("message", settle).on("error", fail).on("exit", fail);
    asked.postMessage(text);
  });
}

function verdictOf(reply: GrammarReply): Verdict {
  if ("values" in reply) return { kind: "valid", values: reply.values };
  const match = ERROR.exec(reply.error);
  if (match !== null) {
    const [, line, column, summary = "", detail = ""] = match;
    const end = NEXT_ERROR.exec(detail)?.index;
    return {
      kind: "invalid",
      line: Number(line),
      column: Number(column),
      summary,
      detail: detail.slice(0, end),
    };
  }
  return { kind: reply.error.startsWith("convert to HCL") ? "shapeless" : "exhausted" };
}
