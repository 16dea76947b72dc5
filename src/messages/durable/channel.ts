/** A channel whose answers are waited for so long and no longer. */

import type { Clock } from "../../dispatch/clock.js";
import type { ChannelAdapter, SendReceipt } from "../outbound/adapter.js";
import { SendTimeout } from "./not-sent.js";

/** Beyond this, a channel that says of every part that it was sent is not believed. */
const MAX_PARTS = 1000;

/** The same channel; a send that has no answer after `ms` throws SendTimeout, and goes on. */
export function timed(adapter: ChannelAdapter, clock: Clock, ms: number): ChannelAdapter {
  return {
    channelId: adapter.channelId,
    ...(adapter.beforeDeliver === undefined ? {} : { beforeDeliver: adapter.beforeDeliver }),
    send: (request) => answered(async () => adapter.send(request), clock, ms),
  };
}

/**
 * `receipts`, and one for each part behind them that the channel says it has: what it has no recorded acknowledgement of. Null where the
 * channel cannot tell. Never rejects.
 */
export async function sentAccordingTo(
  adapter: ChannelAdapter,
  idempotencyKey: string,
  receipts: readonly SendReceipt[],
  clock: Clock,
  ms: number,
): Promise<readonly SendReceipt[] | null> {
  if (adapter.wasSent === undefined) return null;
  const sent = [...receipts];
  try {
    while (sent.length < MAX_PARTS) {
      const key = `${idempotencyKey}:${sent.length}`;
      const was = await answered(async () => adapter.wasSent?.(key), clock, ms);
      if (was === false) return sent;
      if (was !== true) return null;
      sent.push({});
    }
  } catch {
    return null;
  }
  return null;
}

function answered<T>(ask: () => Promise<T>, clock: Clock, ms: number): Promise<T> {
  const answer = ask();
  return new Promise((resolve, reject) => {
    let undo = clock.timer(ms, () => {
      undo = clock.defer(() => reject(new SendTimeout(ms, answer)));
    });
    answer.then(
      (value) => {
        undo();
        resolve(value);
      },
      (error: unknown) => {
        undo();
        reject(error);
      },
    );
  });
}
