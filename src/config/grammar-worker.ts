/**
 * Runs HashiCorp's grammar (Go, compiled to wasm) in a thread of its own: it occupies the thread while it parses, puts
 * names on the global object, and ends with an uncaught exception where a text exhausts it. None of that reaches the
 * program that reads a configuration.
 */
import fs from "node:fs";
import { parentPort } from "node:worker_threads";
import { parse } from "@cdktn/hcl2json";

export type GrammarReply = { readonly values: unknown } | { readonly error: string };

/** As the grammar's errors name the text. */
const SOURCE_NAME = "hookledger-source";

await parse(SOURCE_NAME, "");
// What Go's runtime prints when it dies is of no use to anybody here.
Object.defineProperty(globalThis, "fs", {
  value: { ...fs, writeSync: (_file: number, bytes: Uint8Array) => bytes.length },
});

parentPort?.on("message", (text: string) => {
  parse(SOURCE_NAME, text).then(
    (values) => reply({ values }),
    (error: unknown) => reply({ error: error instanceof Error ? error.message : String(error) }),
  );
});

function reply(message: GrammarReply): void {
  parentPort?.postMessage(message);
}
