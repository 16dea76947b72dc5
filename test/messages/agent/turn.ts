/** Turns of the inbound gateway's sessions. */
import { ReplyTurn, type ReplyTurnOptions } from "#src/messages/agent/reply-turn.js";
import type { HookRuns } from "#src/messages/runs.js";
import type { ReplyDispatchEvent } from "#src/messages/types.js";
import { NotingDispatcher } from "../inbound/gateway.js";

export const EVENT: ReplyDispatchEvent = {
  ctx: { channelId: "telegram", sessionKey: "s-1", messageId: "m-1" },
  sessionKey: "s-1",
  runId: "r-1",
  inboundAudio: false,
  shouldRouteToOriginating: false,
  shouldSendToolSummaries: true,
  shouldSendFullToolDetails: false,
  sendPolicy: "allow",
};

export const ACP = { sessionKey: "agent:codex:acp:1" };
export const AGENT = { sessionKey: "agent:main:main" };

type Turn = {
  readonly turn: ReplyTurn;
  readonly dispatcher: NotingDispatcher;
  /** What takeovers reported to the host. */
  readonly reported: string[];
};

export function turnOf(
  runs: HookRuns,
  { event, ...more }: Partial<Omit<ReplyTurnOptions, "event">> & { readonly event?: Partial<ReplyDispatchEvent> } = {},
): Turn {
  const dispatcher = new NotingDispatcher();
  const reported: string[] = [];
  const turn = new ReplyTurn({
    runs,
    target: AGENT,
    event: { ...EVENT, ...event },
    context: {
      cfg: { secret: "the host's" },
      dispatcher,
      recordProcessed: (outcome, { reason = "" } = {}) => void reported.push(`${outcome} ${reason}`),
      markIdle: (reason) => void reported.push(`idle ${reason}`),
    },
    ...more,
  });
  return { turn, dispatcher, reported };
}
