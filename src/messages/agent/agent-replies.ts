/** Replies that a plugin gives in the agent's place. */

import { systemClock } from "../../dispatch/clock.js";
import { replyIn, textIn } from "../inbound/plugin-reply.js";
import { Recent } from "../inbound/recent.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { HookRuns } from "../runs.js";
import type { AgentContext, BeforeAgentReplyEvent } from "../types.js";

export type AgentRepliesOptions = {
  readonly runs: Pick<HookRuns, "claim">;
  /** Runs that are remembered to have been asked for, 10 000 by default; those being asked for come on top. */
  readonly entries?: number;
};

export type AgentReplyOptions = {
  readonly dispatcher: ReplyDispatcher;
  readonly signal?: AbortSignal;
};

export type AgentReply =
  /** The model is not to be asked. Without a reply that can be seen, nothing is delivered. */
  | {
      readonly end: "handled";
      readonly by: string;
      readonly dispatchId: string | null;
      readonly queuedFinal: boolean;
      readonly reason?: string;
    }
  | { readonly end: "declined" }
  | { readonly end: "aborted" };

const ENTRIES = 10_000;

export class AgentReplies {
  readonly #runs: Pick<HookRuns, "claim">;
  readonly #asking = new Map<string, Promise<AgentReply>>();
  readonly #asked: Recent<AgentReply>;

  constructor({ runs, entries = ENTRIES }: AgentRepliesOptions) {
    this.#runs = runs;
    this.#asked = new Recent({ entries, ms: Number.POSITIVE_INFINITY }, systemClock.now);
  }

  /**
   * Asks once a run id, whichever model the run falls back to: who asks again is told what came of it, and nothing more is delivered.
   * A run without an id is asked for each time.
   */
  ask(event: BeforeAgentReplyEvent, context: AgentContext, options: AgentReplyOptions): Promise<AgentReply> {
    const { runId = "" } = context;
    if (runId === "") return this.#ask(event, context, options);
    const known = this.#asked.get(runId);
    if (known !== undefined) return Promise.resolve(known);
    return this.#asking.get(runId) ?? this.#askFirst(runId, event, context, options);
  }

  #askFirst(
    runId: string,
    event: BeforeAgentReplyEvent,
    context: AgentContext,
    options: AgentReplyOptions,
  ): Promise<AgentReply> {
    const asking = this.#ask(event, context, options);
    const over = (reply: AgentReply): void => {
      // The message of an aborted turn may come again.
      if (reply.end !== "aborted") this.#asked.set(runId, reply);
      this.#asking.delete(runId);
    };
    this.#asking.set(runId, asking);
    // A fault of ours says nothing; who was asked before it is not asked again.
    asking.then(over, () => over({ end: "declined" }));
    return asking;
  }

  async #ask(
    event: BeforeAgentReplyEvent,
    context: AgentContext,
    { dispatcher, signal }: AgentReplyOptions,
  ): Promise<AgentReply> {
    const run = await this.#runs.claim("before_agent_reply", event, context, signal === undefined ? {} : { signal });
    switch (run.end) {
      case "aborted":
      case "declined":
        return { end: run.end };
      case "claimed": {
        const { by, dispatchId, result } = run;
        const reply = replyIn(result);
        const queuedFinal = reply !== null && dispatcher.sendFinalReply(reply);
        const reason = textIn(result, "reason");
        return { end: "handled", by, dispatchId, queuedFinal, ...(reason === undefined ? {} : { reason }) };
      }
    }
  }
}
