/**
 * Looks after the host from a thread of its own: a handler that blocks the plugin's thread must not keep the process alive for
 * ever once nobody is left to end it.
 */

import { rmSync } from "node:fs";
import { Worker, workerData } from "node:worker_threads";

type Guarded = {
  /** Process that started the plugin. */
  readonly ppid: number;
  /** Folder of the socket, removed with the process. */
  readonly folder: string;
};

/** ms between looks */
const LOOK_MS = 500;
/** ms in which the plugin's own thread ends the process, where it can */
const GRACE_MS = 1000;

/** Costs the caller a millisecond or two. */
export function startGuard(guarded: Guarded): void {
  const worker = new Worker(new URL(import.meta.url), { workerData: { guard: guarded }, execArgv: [] });
  // Without it the plugin still looks for itself.
  worker.on("error", () => {});
  worker.unref();
}

function guard({ ppid, folder }: Guarded): void {
  const looking = setInterval(() => {
    if (process.ppid === ppid) return;
    clearInterval(looking);
    setTimeout(() => {
      rmSync(folder, { recursive: true, force: true });
      process.kill(process.pid, "SIGKILL");
    }, GRACE_MS);
  }, LOOK_MS);
}

if (isGuarded(workerData)) guard(workerData.guard);

function isGuarded(data: unknown): data is { readonly guard: Guarded } {
  return typeof data === "object" && data !== null && "guard" in data;
}
