/** Takeovers of a turn's replies: one before the model, one more behind it. */

import type { HookErrorRecord } from "../../core/result.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { ClaimRun, HookRuns } from "../runs.js";
import type { Ingress, TurnAdoption } from "../turn/adoption.js";
import { InputCustody } from "../turn/custody.js";
import { observingRunStart } from "../turn/run-start.js";
import type { DispatchKind, ReplyCounts, ReplyDispatchContext, ReplyDispatchEvent } from "../types.js";
import { admittingNothing, isDeliverySuppressed, trustingNothing } from "./restricted.js";
import { type DispatchTarget, dispatchKindOf } from "./target.js";

export type ReplyTurnOptions = {
  readonly runs: Pick<HookRuns, "claim">;
  /** Null: it is not known. */
  readonly target: DispatchTarget | null;
  readonly event: Omit<ReplyDispatchEvent, "isTailDispatch">;
  readonly context: Omit<ReplyDispatchContext, "dispatchKind" | "abortSignal" | "turnAdoption">;
  /** Of the turn. */
  readonly signal?: AbortSignal;
  /** The input, so that takeovers can adopt it. */
  readonly ingress?: Ingress;
  /** What the user is told where a takeover failed that may have begun. */
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
  /** A takeover of an ACP turn, or one that had adopted the input, failed, and may have begun: the model is not to be asked. `queuedFinal`: is there one, the notice included? */
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
  readonly #custody: InputCustody | null;
  #first: Promise<Takeover> | undefined;
  #tail: Promise<Takeover> | undefined;

  constructor(options: ReplyTurnOptions) {
    this.#options = options;
    this.#kind = dispatchKindOf(options.target);
    this.#custody = options.ingress === undefined ? null : new InputCustody(options.ingress, options.signal);
  }

  /**
   * Before the model. Asked once: who calls again gets the same. Rejects with HL_ADOPTION or HL_TURN_STALLED where the input was not
   * handed over: it was given back then, whatever handlers said.
   */
  takeover(): Promise<Takeover> {
    this.#first ??= this.#run(this.#options.event);
    return this.#first;
  }

  /** Behind the agent's own dispatch; asked once, too, and rejects alike. */
  tail(): Promise<Takeover> {
    this.#tail ??= this.#run({ ...this.#options.event, isTailDispatch: true });
    return this.#tail;
  }

  async #run(event: ReplyDispatchEvent): Promise<Takeover> {
    if (this.#custody === null) return this.#takeoverOf(event, await this.#ask(event, this.#options.signal, {}));
    const custody = this.#custody;
    const handle = custody.begin();
    const run = await this.#ask(event, custody.signal, { turnAdoption: handle }).finally(() => handle.end());
    if (custody.failure !== null) {
      custody.giveBack();
      throw custody.failure;
    }
    const takeover = this.#takeoverOf(event, run);
    if (takeover.end !== "declined") custody.begun();
    return takeover;
  }

  async #ask(
    event: ReplyDispatchEvent,
    signal: AbortSignal | undefined,
    adoption: { readonly turnAdoption?: TurnAdoption },
  ): Promise<ClaimRun<"reply_dispatch">> {
    const { runs, context } = this.#options;
    const { dispatcher } = context;
    return runs.claim(
      "reply_dispatch",
      event,
      {
        ...context,
        ...observingRunStart(context, () => this.#custody?.begun()),
        ...adoption,
        dispatcher: isDeliverySuppressed(event) ? admittingNothing(dispatcher) : trustingNothing(dispatcher),
        ...(this.#kind === undefined ? {} : { dispatchKind: this.#kind }),
        ...(signal === undefined ? {} : { abortSignal: signal }),
      },
      signal === undefined ? {} : { signal },
    );
  }

  #takeoverOf(event: ReplyDispatchEvent, run: ClaimRun<"reply_dispatch">): Takeover {
    const { dispatchId, failures } = run;
    switch (run.end) {
      case "aborted":
        return { end: "aborted" };
      case "claimed":
        return { end: "handled", by: run.by, dispatchId, ...saidIn(run.result, this.#options.context.dispatcher) };
      case "declined":
        if (failures.length === 0 || !this.#mayHaveBegun) return { end: "declined" };
        return { end: "failed", dispatchId, failures, ...this.#afterFailure(event) };
    }
  }

  get #mayHaveBegun(): boolean {
    return this.#kind === "acp" || this.#custody?.adopted === true;
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
