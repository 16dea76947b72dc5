/** Waits that end early. */

import type { Clock } from "../../dispatch/clock.js";

/** Resolves as soon as `work` settles or one of the signals is aborted; whoever waits looks at which it was. Never rejects. */
export function settledOrCut(work: Promise<unknown>, signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      for (const signal of signals) signal?.removeEventListener("abort", end);
      resolve();
    };
    for (const signal of signals) signal?.addEventListener("abort", end, { once: true });
    work.then(end, end);
    if (signals.some((signal) => signal?.aborted)) end();
  });
}

/** The same after `ms`. */
export async function elapsedOrCut(
  ms: number,
  clock: Clock,
  signals: readonly (AbortSignal | undefined)[],
): Promise<void> {
  let undo = (): void => {};
  const elapsed = new Promise<void>((resolve) => {
    undo = clock.timer(ms, resolve);
  });
  await settledOrCut(elapsed, signals);
  undo();
}
