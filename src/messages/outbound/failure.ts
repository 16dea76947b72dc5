/** Why a delivery failed, and how far it had come. */

import { boundedMessage } from "../../payload/text.js";
import { thrownText } from "../../subscribers/fault.js";

export type DeliveryFailure = {
  /** `aborted`: the turn was, between two steps; `before-send`: ours or a stage's failure; `send`: the channel's. */
  readonly at: "aborted" | "before-send" | "send";
  /** One line, at most 2 048 UTF-16 units. */
  readonly message: string;
  /** What was thrown. */
  readonly cause: unknown;
};

export function failureOf(at: DeliveryFailure["at"], thrown: unknown, context = ""): DeliveryFailure {
  return { at, message: boundedMessage(context + thrownText(thrown)), cause: thrown };
}

export function abortOf(signal: AbortSignal | undefined): DeliveryFailure {
  return { at: "aborted", message: "the turn was aborted", cause: signal?.reason };
}
