/** What a plugin's process lives and dies by. */

import type { Logger } from "../subscribers/log.js";

/** ms between looks; a plugin outlives its host by that much */
const LOOK_MS = 500;

/** Calls `gone` when `ppid`, which started this process, is dead, as far as this one can tell. */
export function watchHost(ppid: number, gone: () => void): void {
  setInterval(() => {
    if (process.ppid !== ppid) gone();
  }, LOOK_MS).unref();
  // Nobody reads what is written any more.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", gone);
}

/** Ctrl-C goes to the whole group of a terminal, and is the host's to understand. */
export function ignoreInterrupts(): void {
  process.on("SIGINT", () => {});
}

/** Code that threw with nobody to catch it is in no state to judge anything: the process ends with code 2. */
export function endOnStrayFaults(log: Logger): void {
  process.on("uncaughtException", (error, origin) => {
    const what = origin === "unhandledRejection" ? "a rejection was not handled" : "an exception was not caught";
    for (const line of stackLines(what, error)) log.error(line);
    process.exit(2);
  });
}

/**
 * For whoever reads the log; no answer ever carries it. The message stays whole, so that a host finds in it what it redacts, and each
 * frame is a line.
 */
export function stackLines(what: string, error: unknown): readonly string[] {
  return `${what}: ${stackOf(error)}`.split(/\n(?= +at )/);
}

function stackOf(error: unknown): string {
  try {
    return error instanceof Error && typeof error.stack === "string" ? error.stack : String(error);
  } catch {
    return "a value that cannot be read";
  }
}
