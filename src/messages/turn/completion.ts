/** The one completion of a turn whose runtime left it to the host: made of what was delivered. */

import { thrownText } from "../../subscribers/fault.js";
import type { ReplyKind, ReplyPayload } from "../facts.js";
import { type DeliveryOutcome, isVisible } from "../outbound/outcome.js";
import { withoutTrust } from "../outbound/trust.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { TurnLife } from "./life.js";
import { ACCEPTED, leave, type OnPreparedAgentRunStart, type PreparedRunStart, type RunResult } from "./run-start.js";

/** Of a runtime's event stream. Type "completion" tells that the chat is complete; all others are its lifecycle, or its own. */
export type RuntimeEvent = { readonly type: string; readonly runId: string; readonly [key: string]: unknown };

export type DeliveredReply = {
  readonly kind: ReplyKind;
  /** As the hooks left it. */
  readonly payload: ReplyPayload;
  /** Parts of it are missing. */
  readonly partial?: true;
};

export type ChatCompletion = RunResult & {
  readonly type: "completion";
  readonly source: "reply-dispatch";
  readonly runId: string;
  readonly replies: readonly DeliveredReply[];
};

export type ReplyCompletionOptions = {
  readonly emit: (event: RuntimeEvent | ChatCompletion) => void;
  /** A turn that is over takes no completion. */
  readonly life?: TurnLife;
  readonly warn?: (message: string) => void;
};

/** Of one turn. */
export class ReplyCompletion {
  readonly #options: ReplyCompletionOptions;
  /** Runs whose completion is the host's; where a turn falls back from one to the next, the last one's result counts. */
  readonly #owned = new Map<string, () => RunResult>();
  /** Who completed the chat; nobody yet: null. */
  #completedBy: "runtime" | "dispatch" | null = null;
  readonly #replies: DeliveredReply[] = [];
  #settling: Promise<ChatCompletion | null> | undefined;

  constructor(options: ReplyCompletionOptions) {
    this.#options = options;
  }

  /** For the context of `reply_dispatch`. */
  readonly onPreparedAgentRunStart: OnPreparedAgentRunStart = (notification) => {
    const getResult = this.#offered(notification);
    if (getResult === null) return undefined;
    this.#owned.delete(notification.runId);
    this.#owned.set(notification.runId, getResult);
    return ACCEPTED;
  };

  /** For the dispatcher of the turn's replies. */
  readonly onOutcome = (kind: ReplyKind, outcome: DeliveryOutcome): void => {
    if (outcome.payload === null || !isVisible(outcome)) return;
    const payload = withoutTrust(outcome.payload);
    this.#replies.push({ kind, payload, ...(outcome.status === "partial_failed" ? { partial: true } : {}) });
  };

  /** The runtimes' events on their way to whoever watches the chat: all of them, but completions that are the host's. */
  forward(event: RuntimeEvent): void {
    if (event.type === "completion") {
      if (this.#owned.has(event.runId) || this.#completedBy === "dispatch") return;
      this.#completedBy = "runtime";
    }
    this.#options.emit(event);
  }

  /** The dispatch is over. Waits for its replies and emits the completion, once; null where that is not the host's. */
  settle(dispatcher: Pick<ReplyDispatcher, "waitForIdle">): Promise<ChatCompletion | null> {
    this.#settling ??= this.#settle(dispatcher);
    return this.#settling;
  }

  #offered({ runId, options, transcriptStart }: PreparedRunStart): (() => RunResult) | null {
    if (this.#settling !== undefined || (this.#options.life?.over ?? null) !== null) return null;
    if (typeof runId !== "string" || runId === "" || typeof transcriptStart !== "object") return null;
    if (options?.completionSource !== ACCEPTED || this.#completedBy !== null) return null;
    const { getResult } = options;
    return typeof getResult === "function" ? () => getResult.call(options) : null;
  }

  async #settle(dispatcher: Pick<ReplyDispatcher, "waitForIdle">): Promise<ChatCompletion | null> {
    await dispatcher.waitForIdle();
    const last = [...this.#owned].at(-1);
    if (last === undefined || this.#completedBy === "runtime") return null;
    this.#completedBy = "dispatch";
    const [runId, getResult] = last;
    const completion: ChatCompletion = {
      type: "completion",
      source: "reply-dispatch",
      runId,
      replies: this.#replies,
      ...this.#resultOf(getResult),
    };
    this.#options.emit(completion);
    return completion;
  }

  #resultOf(getResult: () => RunResult): RunResult {
    try {
      const result = getResult();
      leave(result);
      const { terminalOutcome, assistantTranscript } = result ?? {};
      return {
        ...(terminalOutcome === undefined ? {} : { terminalOutcome }),
        ...(assistantTranscript === undefined ? {} : { assistantTranscript }),
      };
    } catch (thrown) {
      this.#options.warn?.(`a run's result cannot be had: ${thrownText(thrown)}`);
      return {};
    }
  }
}
