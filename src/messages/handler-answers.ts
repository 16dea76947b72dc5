/** Answers of handlers, as they are recorded; what the host goes on with is kept beside them as it is. */

import type { Outcome, RewriteSet, Subscriber } from "../core/events.js";
import type { Answers, RecordedAnswer } from "../dispatch/live.js";
import { outcomeOf } from "../dispatch/outcome.js";
import type { Attachment } from "../dispatch/recorder.js";
import { attachmentOf, type Version } from "../dispatch/version.js";
import type { Redactor } from "../payload/redaction.js";
import { boundedReason } from "../payload/text.js";
import type { Fault } from "../subscribers/fault.js";
import type { HandlerAnswer } from "./answers.js";
import { attachmentTo, documentOf, type Given, handlesOf, recordedJson } from "./document.js";

/** Of one run. */
export class HandlerAnswers implements Answers<Given, HandlerAnswer> {
  readonly #redactor: Redactor;
  readonly #answers = new Map<number, HandlerAnswer>();

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** What a handler answered, as it did; undefined where it failed or was not asked. */
  of(index: number | null): HandlerAnswer | undefined {
    return index === null ? undefined : this.#answers.get(index);
  }

  recorded({ index }: Subscriber, answer: HandlerAnswer | Fault, seen: Version<Given>): RecordedAnswer<Given> {
    const base = { type: "outcome", index } as const;
    switch (answer.class) {
      case "failed":
      case "invalid":
        return plain(outcomeOf(index, answer, this.#redactor));
      case "ack":
        return plain({ ...base, class: "ack" });
      case "declined":
        return plain({ ...base, class: "declined", ...warningsOf(answer, this.#redactor) });
      case "claimed": {
        this.#answers.set(index, answer);
        const result = recordedJson(answer.result, this.#redactor, handlesOf(seen.payload));
        return withBytes({ ...base, class: "claimed", payload: result.ref }, [attachmentTo(result)]);
      }
      case "replaced": {
        this.#answers.set(index, answer);
        const made = documentOf(withPayload(seen.payload, answer.payload), this.#redactor);
        const outcome: Outcome = { ...base, class: "rewritten", payload: made.ref };
        return { outcome, made, attachments: [attachmentOf(made)] };
      }
      case "cancelled": {
        this.#answers.set(index, answer);
        const { reason, payload } = answer;
        const kept = payload === undefined ? null : documentOf(withPayload(seen.payload, payload), this.#redactor);
        const outcome: Outcome = {
          ...base,
          class: "cancelled",
          ...(reason === undefined ? {} : { reason: boundedReason(this.#redactor.text(reason)) }),
          ...(kept === null ? {} : { payload: kept.ref }),
        };
        return withBytes(outcome, kept === null ? [] : [attachmentOf(kept)]);
      }
      case "defined":
        this.#answers.set(index, answer);
        return this.#defined(base, answer);
    }
  }

  #defined(
    base: { readonly type: "outcome"; readonly index: number },
    answer: Extract<HandlerAnswer, { class: "defined" }>,
  ): RecordedAnswer<Given> {
    const attachments: Attachment[] = [];
    const set: { -readonly [Field in keyof RewriteSet]: RewriteSet[Field] } = {};
    for (const field of ["content", "cancelReason", "metadata"] as const) {
      if (answer.set[field] === undefined) continue;
      const value = recordedJson(answer.set[field], this.#redactor);
      set[field] = value.ref;
      attachments.push(attachmentTo(value));
    }
    const warnings = warningsOf(answer, this.#redactor);
    if (!answer.cancel) return withBytes({ ...base, class: "rewritten", set, ...warnings }, attachments);
    const kept = attachments.length === 0 ? {} : { set };
    return withBytes({ ...base, class: "cancelled", ...kept, ...warnings }, attachments);
  }
}

function withPayload({ event, context }: Given, payload: object): Given {
  return { event: { ...event, payload }, context };
}

function plain(outcome: Outcome): RecordedAnswer<Given> {
  return withBytes(outcome, []);
}

function withBytes(outcome: Outcome, attachments: readonly Attachment[]): RecordedAnswer<Given> {
  return { outcome, made: null, attachments };
}

function warningsOf({ warnings }: { readonly warnings?: readonly string[] }, redactor: Redactor) {
  return warnings === undefined ? {} : { warnings: warnings.map((warning) => redactor.text(warning)) };
}
