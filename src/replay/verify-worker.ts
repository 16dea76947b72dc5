/** Runs in a thread of its own: verifies the spans that it is asked for on a connection of its own. */
import { parentPort, workerData } from "node:worker_threads";
import { HookledgerError } from "../errors.js";
import { openStore } from "../store/open.js";
import { type VerifyAnswer, type VerifyPart, type VerifyTask, verifySpan } from "./verify-all.js";

const url: unknown = workerData;
const store = openStore(String(url), { mode: "read" });
// Told to whoever asks.
store.catch(() => {});

parentPort?.on("message", (task: VerifyTask) => {
  void answer(task).then((message) => parentPort?.postMessage(message));
});

async function answer(task: VerifyTask): Promise<VerifyAnswer> {
  try {
    const parts: VerifyPart[] = [];
    for await (const part of verifySpan(await store, task)) parts.push(part);
    return { parts };
  } catch (error) {
    if (error instanceof HookledgerError) return { code: error.code, message: error.message };
    return { code: "HL_INTERNAL", message: error instanceof Error ? error.message : "verification failed" };
  }
}
