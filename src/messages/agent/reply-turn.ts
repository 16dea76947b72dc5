/** Takeovers of a turn's replies: one before the model, one more behind it. */

import type { HookErrorRecord } from "../../core/result.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { HookRuns } from "../runs.js";
import type { DispatchKind, ReplyCounts, ReplyDispatchContext, ReplyDispatchEvent } from "../types.js";
import { admittingNothing, isDeliverySuppressed, trustingNothing } from "./restricted.js";
import { type DispatchTarget, dispatchKindOf } from "./target.js";

export type ReplyTurnOptions = {
  readonly runs: Pick<HookRuns, "claim">;
  /** Null: it is not known. */
  readonly target: DispatchTarget | null;
  readonly event: Omit<ReplyDispatchEvent, "isTailDispatch">;
  readonly context: Omit<ReplyDispatchContext, "dispatchKind" | "abortSignal">;
  /** Of the turn. */
  readonly signal?: AbortSignal;
  /** What the user is told where an ACP takeover failed. */
  readonly failureNotice?: string;
};

export type Takeover =
  /** The model is not to be asked. As the handler said it. */
  | {
      readonly end: "handled";
      readonly by: string;
      readonly dispatchId: string | null;
      readonly queuedFinal: boolean;
      readonly counts: ReplyCounts;
    }
  /** An ACP takeover failed, and may have begun: the model is not to be asked. `queuedFinal`: is there one, the notice included? */
  | {
      readonly end: "failed";
      readonly dispatchId: string | null;
      readonly failures: readonly HookErrorRecord[];
      readonly queuedFinal: boolean;
      readonly counts: ReplyCounts;
    }
  | { readonly end: "declined" }
  | { readonly end: "aborted" };

const FAILURE_NOTICE = "Something went wrong, and this message was not answered. Please try again.";

export class ReplyTurn {
  readonly #options: ReplyTurnOptions;
  readonly #kind: DispatchKind | undefined;
  #first: Promise<Takeover> | undefined;
  #tail: Promise<Takeover> | undefined;

  constructor(options: ReplyTurnOptions) {
    this.#options = options;
    this.#kind = dispatchKindOf(options.target);
  }

  /** Before the model. Asked once: who calls again gets the same. */
  takeover(): Promise<Takeover> {
    this.#first ??= this.#run(this.#options.event);
    return this.#first;
  }

  /** Behind the agent's own dispatch; asked once, too. */
  tail(): Promise<Takeover> {
    this.#tail ??= this.#run({ ...this.#options.event, isTailDispatch: true });
    return this.#tail;
  }

  async #run(event: ReplyDispatchEvent): Promise<Takeover> {
    const { runs, context, signal } = this.#options;
    const { dispatcher } = context;
    const run = await runs.claim(
      "reply_dispatch",
      event,
      {
        ...context,
        dispatcher: isDeliverySuppressed(event) ? admittingNothing(dispatcher) : trustingNothing(dispatcher),
        ...(this.#kind === undefined ? {} : { dispatchKind: this.#kind }),
        ...(signal === undefined ? {} : { abortSignal: signal }),
      },
      signal === undefined ? {} : { signal },
    );
    const { dispatchId, failures } = run;
    switch (run.end) {
      case "aborted":
        return { end: "aborted" };
      case "claimed":
        return { end: "handled", by: run.by, dispatchId, ...saidIn(run.result, dispatcher) };
      case "declined":
        if (this.#kind !== "acp" || failures.length === 0) return { end: "declined" };
        return { end: "failed", dispatchId, failures, ...this.#afterFailure(event) };
    }
  }

  /** One notice, unless the user gets a final anyway, or nothing at all. */
  #afterFailure(event: ReplyDispatchEvent): Said {
    const { context, failureNotice: text = FAILURE_NOTICE } = this.#options;
    const { dispatcher } = context;
    if (dispatcher.getQueuedCounts().final === 0 && !isDeliverySuppressed(event)) {
      dispatcher.sendFinalReply({ text, isError: true });
    }
    return queuedIn(dispatcher);
  }
}

type Said = { readonly queuedFinal: boolean; readonly counts: ReplyCounts };

/** What a takeover said, as it did. Of what it left out, or what cannot be read, the dispatcher knows better. */
function saidIn(result: Said, dispatcher: ReplyDispatcher): Said {
  const queued = queuedIn(dispatcher);
  try {
    const { queuedFinal = queued.queuedFinal, counts = queued.counts } = result;
    return { queuedFinal, counts };
  } catch {
    return queued;
  }
}

function queuedIn(dispatcher: ReplyDispatcher): Said {
  const counts = dispatcher.getQueuedCounts();
  return { queuedFinal: counts.final > 0, counts };
}
