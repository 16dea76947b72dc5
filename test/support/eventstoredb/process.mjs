// @ts-check
/** @import { Features } from "./types.js" */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("./serve.mjs", import.meta.url));

/**
 * The double in a process of its own, which ends with this one at the latest. `said` is the line that it prints: that it is a double.
 * @param {{ readonly port?: number, readonly features?: Partial<Features> }} [options]
 */
export async function startDoubleProcess({ port = 0, features = {} } = {}) {
  const child = spawn(process.execPath, [SCRIPT, String(port), JSON.stringify(features)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const [said] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    ended.then(([code]) => {
      throw new Error(`the double ended with ${code}`);
    }),
  ]);
  const line = String(said);
  return {
    said: line,
    url: line.slice(line.lastIndexOf(" ") + 1),
    pid: child.pid,
    /** SIGTERM, and waits for its end. */
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}
