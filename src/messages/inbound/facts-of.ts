/** The facts of a message that several events and contexts share. */

import type { ProviderUpdate, ReplyFacts, TraceFacts } from "../facts.js";
import { firstNonBlank, known } from "./known.js";
import type { InboundMessage, Quote } from "./message.js";

export function contentOf({ commandBody, rawBody, body }: InboundMessage): string {
  return firstNonBlank(commandBody, rawBody, body) ?? "";
}

/** Only of a quote of which the channel has taken out what may not be seen. */
export function replyFacts(quote: Quote | undefined): ReplyFacts {
  if (quote?.visibilityFiltered !== true) return {};
  const { replyToId, replyToIdFull, replyToBody, replyToSender, replyToIsQuote } = quote;
  return known({ replyToId, replyToIdFull, replyToBody, replyToSender, replyToIsQuote });
}

export function traceFacts({ trace, traceId, spanId, parentSpanId }: TraceFacts = {}): TraceFacts {
  return known({ trace, traceId, spanId, parentSpanId });
}

/** An update that cannot be told from others is none. */
export function providerUpdateOf(given: ProviderUpdate | undefined): ProviderUpdate | undefined {
  if (given === undefined || given.id === "" || given.kind === "") return undefined;
  const { id, kind, messageId, messageTimestamp, editedTimestamp } = given;
  return { id, kind, ...known({ messageId, messageTimestamp, editedTimestamp }) };
}
