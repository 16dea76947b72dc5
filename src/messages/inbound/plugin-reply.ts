/** What a claiming handler returned, read with care: it is the live value, and anything may stand in it. */

import type { ReplyPayload } from "../facts.js";
import { normalise } from "../outbound/payload.js";
import { withoutTrust } from "../outbound/trust.js";

/** The reply in a claim's result, normalised and trusted with nothing; null where there is none to be seen. */
export function replyIn(result: object): ReplyPayload | null {
  const reply = fieldOf(result, "reply");
  if (typeof reply !== "object" || reply === null) return null;
  try {
    const payload = normalise(reply);
    return payload === null ? null : withoutTrust(payload);
  } catch {
    return null;
  }
}

/** The text in a field of a claim's result; undefined where it is none, or empty. */
export function textIn(result: object, field: string): string | undefined {
  const text = fieldOf(result, field);
  return typeof text === "string" && text !== "" ? text : undefined;
}

function fieldOf(result: object, field: string): unknown {
  try {
    return Reflect.get(result, field);
  } catch {
    return undefined;
  }
}
