/** Answers of kernel hooks, as they are recorded. */
import type { PolicyItem, Subscriber } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { Payload } from "../payload/payload.js";
import type { Redactor } from "../payload/redaction.js";
import { type Fault, failed, invalid } from "../subscribers/fault.js";
import type { ChainAnswer } from "./chain.js";
import type { Answers, RecordedAnswer } from "./live.js";
import { outcomeOf, payloadOutcomeOf } from "./outcome.js";
import { isRecordable } from "./recorder.js";
import { attachmentOf, type Version, versionOf } from "./version.js";

const UNRECORDABLE = "the payload is too large to be recorded (HL_LIMIT_PAYLOAD)";
const UNRECORDABLE_ITEMS = "the verdicts are too large to be recorded (HL_LIMIT_EVENT)";

/** Of one dispatch. */
export class ChainAnswers implements Answers<Payload, ChainAnswer> {
  readonly #redactor: Redactor;
  #items: readonly PolicyItem[] | null = null;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  /** Policy's verdicts as they were given, before redaction; null until policy has spoken. */
  get items(): readonly PolicyItem[] | null {
    return this.#items;
  }

  recorded({ index }: Subscriber, answer: ChainAnswer | Fault, seen: Version): RecordedAnswer<Payload> {
    const redactor = this.#redactor;
    const plain = (said: Parameters<typeof outcomeOf>[1]): RecordedAnswer<Payload> => ({
      outcome: outcomeOf(index, said, redactor),
      made: null,
      attachments: [],
    });
    if (answer.class !== "transformed" && answer.class !== "policy") return plain(answer);
    const made = answer.payload === seen.payload ? seen : this.#versionOf(answer.payload);
    if (made === null) return plain(answer.class === "policy" ? failed("veto", UNRECORDABLE) : invalid(UNRECORDABLE));
    const outcome = payloadOutcomeOf(index, answer, made.ref, redactor);
    if (answer.class === "policy") {
      if (!isRecordable(outcome)) return plain(failed("veto", UNRECORDABLE_ITEMS));
      this.#items = answer.items;
    }
    return { outcome, made, attachments: [attachmentOf(made)] };
  }

  /** null: the redacted copy would be over the bound of a payload. */
  #versionOf(payload: Payload): Version | null {
    try {
      return versionOf(payload, this.#redactor);
    } catch (error) {
      if (error instanceof HookledgerError) return null;
      throw error;
    }
  }
}
