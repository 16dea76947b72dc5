/** Those who observe are told how it ended, once a payload; nobody waits for them. */

import { thrownText } from "../../subscribers/fault.js";
import type { MessageSentEvent } from "../types.js";
import type { Delivery } from "./options.js";
import { type Ended, receiptsOf } from "./outcome.js";

type TellingOf = Pick<Delivery, "runs" | "route" | "deferred" | "warn">;

/** Nothing for what was suppressed. An aborted turn is told of as well. */
export function tellSent(outcome: Ended, content: string, { runs, route, deferred, warn }: TellingOf): void {
  if (outcome.status === "suppressed") return;
  const { context, to } = route;
  const { sessionKey, runId, trace, traceId, spanId, parentSpanId } = context;
  const messageId = receiptsOf(outcome).findLast((receipt) => receipt.messageId !== undefined)?.messageId;
  const event: MessageSentEvent = {
    to,
    content,
    success: outcome.status === "sent",
    ...(messageId === undefined ? {} : { messageId }),
    ...(sessionKey ? { sessionKey } : {}),
    ...(runId ? { runId } : {}),
    ...(trace ? { trace } : {}),
    ...(traceId ? { traceId } : {}),
    ...(spanId ? { spanId } : {}),
    ...(parentSpanId ? { parentSpanId } : {}),
    ...(outcome.status === "sent" ? {} : { error: outcome.failure.message }),
  };
  const lost = (fault: unknown): void => warn({ kind: "message-sent-lost", message: thrownText(fault) });
  try {
    runs.notify("message_sent", event, context, { deferred }).catch(lost);
  } catch (fault) {
    lost(fault);
  }
}
