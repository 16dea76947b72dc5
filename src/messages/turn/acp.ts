/** A takeover of ACP turns: the input is adopted, then submitted to a backend. */

import { thrownText } from "../../subscribers/fault.js";
import { isAcpSessionKey } from "../agent/target.js";
import type { ReplyDispatcher } from "../reply-dispatcher.js";
import type { Handler, ReplyDispatchContext, ReplyDispatchEvent } from "../types.js";
import { type TurnCustody, turnCustodyOf } from "./forwarded.js";

/** What a backend needs of a turn; the custody is the host's own, whatever became of the message context. */
export type AcpTurn = TurnCustody & {
  readonly event: ReplyDispatchEvent;
  readonly dispatcher: ReplyDispatcher;
  readonly cfg: unknown;
  readonly abortSignal?: AbortSignal;
};

export type AcpReplyDispatchOptions = {
  /** Builds the message context anew; the default leaves it as it is. */
  readonly rebuild?: (turn: AcpTurn) => ReplyDispatchEvent["ctx"] | PromiseLike<ReplyDispatchEvent["ctx"]>;
  /** Hands the turn to the backend and resolves when that is done with it. Its input is adopted by then. */
  readonly submit: (turn: AcpTurn) => unknown;
};

/**
 * A handler to be registered with `ACP_ONLY`; agent dispatches are declined. It rejects with whatever adoption or backend do, and is
 * handled otherwise, with what was queued.
 */
export function createAcpReplyDispatch({ rebuild, submit }: AcpReplyDispatchOptions): Handler<"reply_dispatch"> {
  return async (event, ctx) => {
    if (!isAcp(event, ctx)) return null;
    const { dispatcher, recordProcessed, markIdle } = ctx;
    try {
      const turn = turnOf(event, ctx);
      const made = rebuild === undefined ? turn : turnOf({ ...event, ctx: await rebuild(turn) }, ctx);
      await ctx.onReplyStart?.();
      await ctx.turnAdoption?.adopt();
      ctx.turnAdoption?.assertCurrent();
      await submit(made);
      recordProcessed("completed");
    } catch (thrown) {
      recordProcessed("error", { error: thrownText(thrown) });
      throw thrown;
    } finally {
      markIdle("acp");
    }
    const counts = dispatcher.getQueuedCounts();
    return { handled: true, queuedFinal: counts.final > 0, counts };
  };
}

export const ACP_ONLY = { eligibleDispatchKinds: ["acp"] } as const;

function isAcp({ sessionKey = "" }: ReplyDispatchEvent, { dispatchKind }: ReplyDispatchContext): boolean {
  return dispatchKind === undefined ? isAcpSessionKey(sessionKey) : dispatchKind === "acp";
}

function turnOf(event: ReplyDispatchEvent, ctx: ReplyDispatchContext): AcpTurn {
  const { dispatcher, cfg, abortSignal } = ctx;
  return {
    event,
    dispatcher,
    cfg,
    ...(abortSignal === undefined ? {} : { abortSignal }),
    ...turnCustodyOf(ctx),
  };
}
