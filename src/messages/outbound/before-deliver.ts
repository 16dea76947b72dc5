/** A channel's own stages, between the hooks and the send. */

import type { Clock } from "../../dispatch/clock.js";
import type { BeforeDeliverStage, ChannelMessage, StageContext } from "./adapter.js";
import { abortOf, type DeliveryFailure, failureOf } from "./failure.js";

/** ms */
export const STAGE_TIMEOUT_MS = 15_000;
export const MAX_STAGE_TIMEOUT_MS = 600_000;

export type StageOptions = Omit<StageContext, "signal"> & {
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
};

export type Staged =
  | { readonly end: "ready"; readonly message: ChannelMessage }
  | { readonly end: "cancelled"; readonly by: string }
  | { readonly end: "failed"; readonly failure: DeliveryFailure };

/** Throws a RangeError on a `timeoutMs` that is not > 0 and at most 600 000. */
export function requireStages(stages: readonly BeforeDeliverStage[]): void {
  for (const [at, { timeoutMs = STAGE_TIMEOUT_MS, name }] of stages.entries()) {
    if (!(timeoutMs > 0 && timeoutMs <= MAX_STAGE_TIMEOUT_MS)) {
      throw new RangeError(`timeoutMs of ${nameOf(name, at)} is ${timeoutMs}: it must be > 0 and at most 600000`);
    }
  }
}

/** Each stage sees what the one before it returned. Never rejects. */
export async function runStages(
  stages: readonly BeforeDeliverStage[],
  message: ChannelMessage,
  options: StageOptions,
): Promise<Staged> {
  let latest = message;
  for (const [at, stage] of stages.entries()) {
    const name = nameOf(stage.name, at);
    const said = await runStage(stage, latest, options);
    if (options.signal?.aborted) return { end: "failed", failure: abortOf(options.signal) };
    if ("thrown" in said) return { end: "failed", failure: failureOf("before-send", said.thrown, `${name}: `) };
    if (said.returned === null) return { end: "cancelled", by: name };
    latest = said.returned;
  }
  return { end: "ready", message: latest };
}

type Said = { readonly returned: ChannelMessage | null } | { readonly thrown: unknown };

/** Settled once: by the stage, its deadline or the abort signal. What the stage does later is nobody's business. */
function runStage(stage: BeforeDeliverStage, message: ChannelMessage, options: StageOptions): Promise<Said> {
  const { clock, signal, ...context } = options;
  const timeoutMs = stage.timeoutMs ?? STAGE_TIMEOUT_MS;
  const ending = new AbortController();
  return new Promise((resolve) => {
    const end = (said: Said): void => {
      disarm();
      signal?.removeEventListener("abort", onAbort);
      resolve(said);
    };
    const giveUp = (reason: unknown): void => {
      ending.abort(reason);
      end({ thrown: reason });
    };
    const onAbort = (): void => giveUp(signal?.reason);
    const disarm = clock.timer(timeoutMs, () => giveUp(new Error(`no answer within ${timeoutMs} ms`)));
    signal?.addEventListener("abort", onAbort, { once: true });
    const run = async (): Promise<ChannelMessage | null> =>
      answerIn(await stage.run(message, { ...context, signal: ending.signal }));
    run().then(
      (returned) => end({ returned }),
      (thrown: unknown) => end({ thrown }),
    );
  });
}

/** Read once, here, and nowhere after it. Stages in JavaScript are not held by the type. Throws a TypeError. */
function answerIn(returned: ChannelMessage | null): ChannelMessage | null {
  if (returned === null) return null;
  const message = { ...returned };
  if (!Array.isArray(message.media)) throw new TypeError("returned no message and no null");
  return { ...message, media: [...message.media] };
}

function nameOf(name: string | undefined, at: number): string {
  return name === undefined ? `before-deliver stage ${at + 1}` : `before-deliver stage "${name}"`;
}
