/** What of a turn's custody goes along wherever the turn goes. */

import type { ReplyDispatchContext } from "../types.js";

const FORWARDED = [
  "turnAdoption",
  "userTurnTranscriptRecorder",
  "prepareAssistantTranscriptMessage",
  "onPreparedAgentRunStart",
  "onAgentRunStart",
] as const satisfies readonly (keyof ReplyDispatchContext)[];

export type TurnCustody = Pick<ReplyDispatchContext, (typeof FORWARDED)[number]>;

/** For adapters and rebuilt contexts: the same handles, and none that the caller did not give. */
export function turnCustodyOf(context: TurnCustody): TurnCustody {
  const given = FORWARDED.filter((key) => context[key] !== undefined);
  return Object.fromEntries(given.map((key) => [key, context[key]]));
}
