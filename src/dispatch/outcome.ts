/** A subscriber's answer as the event that is recorded: redacted, and payloads by reference. */
import type { HookError, Outcome, PolicyItem, Ref } from "../core/events.js";
import type { Answer } from "../payload/answer.js";
import type { Redactor } from "../payload/redaction.js";
import { boundedMessage, boundedReason } from "../payload/text.js";
import type { PolicyAnswer } from "./chain.js";

type Transformed = Extract<Answer, { class: "transformed" }>;
type Plain = Exclude<Answer, { class: "transformed" }>;

export function outcomeOf(index: number, answer: Plain, redactor: Redactor): Outcome {
  const base = baseOf(index, answer.warnings, redactor);
  switch (answer.class) {
    case "ack":
    case "allow":
      return { ...base, class: answer.class };
    case "deny":
      return answer.reason === undefined
        ? { ...base, class: "deny" }
        : { ...base, class: "deny", reason: boundedReason(redactor.text(answer.reason)) };
    case "failed":
    case "invalid":
      return { ...base, class: answer.class, error: redactedError(answer.error, redactor) };
  }
}

export function payloadOutcomeOf(
  index: number,
  answer: Transformed | PolicyAnswer,
  payload: Ref,
  redactor: Redactor,
): Outcome {
  const base = baseOf(index, answer.warnings, redactor);
  switch (answer.class) {
    case "transformed":
      return { ...base, class: "transformed", payload };
    case "policy":
      return { ...base, class: "policy", payload, items: answer.items.map((item) => redactedItem(item, redactor)) };
  }
}

function baseOf(index: number, warnings: readonly string[] | undefined, redactor: Redactor) {
  const base = { type: "outcome" as const, index };
  return warnings === undefined || warnings.length === 0
    ? base
    : { ...base, warnings: warnings.map((warning) => redactor.text(warning)) };
}

function redactedError({ category, message }: HookError, redactor: Redactor): HookError {
  // Redacted as it was said, then escaped and cut: no pattern knows the beginning of a match, or its line breaks escaped.
  return { category, message: boundedMessage(redactor.text(message)) };
}

function redactedItem(item: PolicyItem, redactor: Redactor): PolicyItem {
  const { itemId, decision, decidedBy, reason } = item;
  const redacted = { itemId: redactor.text(itemId), decision, decidedBy: redactor.text(decidedBy) };
  return reason === undefined ? redacted : { ...redacted, reason: boundedReason(redactor.text(reason)) };
}
