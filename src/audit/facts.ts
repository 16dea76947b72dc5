/** Recorded events as audit facts. */
import type { Aborted, Decided, DispatchEvent, Outcome, RewriteSet, TimedOut } from "../core/events.js";
import { failureOf } from "../core/state.js";
import type { RecordedEvent } from "../store/port.js";
import type { DispatchContext } from "./dispatch-context.js";
import type { AuditFact } from "./record.js";

/** What the metadata adds. */
export type EventMoment = Pick<AuditFact, "at" | "session">;

const NOTHING = {
  subscriber: null,
  mode: null,
  category: null,
  message: null,
  decision: null,
  decidedBy: null,
  payloadDigest: null,
} as const;

/**
 * The facts of an event that `context` has taken already, in a fixed order: none for what merely started, one for all else,
 * and for policy's answer one a plan item.
 */
export function factsOf(
  recorded: RecordedEvent,
  event: DispatchEvent,
  moment: EventMoment,
  context: DispatchContext,
): readonly AuditFact[] {
  const base = { ...placeOf(recorded), ...moment, point: context.point };
  switch (event.type) {
    case "started":
    case "subscriber-invoked":
      return [];
    case "outcome":
      return outcomeFacts(event, context).map((fact) => ({ ...base, type: "outcome", ...fact }));
    case "timeout":
      return [{ ...base, type: "timeout", ...timeoutFact(event, context) }];
    case "aborted":
      return [{ ...base, type: "aborted", ...abortedFact(event, context) }];
    case "decided":
      return [{ ...base, type: "decided", ...decidedFact(event, context) }];
  }
}

/** An event that this version cannot read is said, not passed over. */
export function undecodableFact(recorded: RecordedEvent, why: string, moment: EventMoment): AuditFact {
  return { ...placeOf(recorded), type: "undecodable", ...moment, point: null, ...NOTHING, message: why };
}

function placeOf({ stream, revision }: RecordedEvent): Pick<AuditFact, "dispatchId" | "revision"> {
  return { dispatchId: stream.slice("hookdispatch-".length), revision };
}

type Said = Omit<AuditFact, "dispatchId" | "revision" | "type" | "at" | "session" | "point">;

function called(index: number, context: DispatchContext): Said {
  const subscriber = context.subscriber(index);
  return {
    ...NOTHING,
    subscriber: subscriber?.id ?? null,
    mode: subscriber?.mode ?? null,
    payloadDigest: context.saw(index),
  };
}

function outcomeFacts(event: Outcome, context: DispatchContext): readonly Said[] {
  const base = called(event.index, context);
  const note = context.subscriber(event.index)?.shadow === true ? SHADOW : null;
  switch (event.class) {
    case "policy":
      if (event.items.length === 0) return [base];
      return event.items.map(({ itemId, decision, decidedBy, reason }) => ({
        ...base,
        message: sentence(`item ${itemId}`, reason),
        decision,
        decidedBy,
      }));
    case "allow":
      return [{ ...base, decision: "allow", message: note }];
    case "deny":
      return [{ ...base, decision: "deny", message: sentence(note, event.reason) }];
    case "failed":
    case "invalid":
      return [{ ...base, category: event.error.category, message: event.error.message }];
    case "cancelled":
      return [{ ...base, message: sentence("cancelled", context.cancelReasonOf(event)) }];
    case "rewritten":
      return [{ ...base, message: sentence("rewritten", fieldsOf(event.set)) }];
    case "claimed":
    case "declined":
      return [{ ...base, message: event.class }];
    case "lost":
      return [{ ...base, message: "lost: the process ended before an answer was recorded" }];
    case "ack":
    case "transformed":
      return [base];
  }
}

/** What a handler of a rewrite defined, in the order in which it is recorded. */
function fieldsOf(set: RewriteSet | undefined): string | undefined {
  if (set === undefined) return undefined;
  return (["content", "cancelReason", "metadata"] as const).filter((field) => set[field] !== undefined).join(", ");
}

/** Called and recorded, and without a say: its allow or deny decided nothing. */
const SHADOW = "shadow, not counted";

function timeoutFact(event: TimedOut, context: DispatchContext): Said {
  return { ...called(event.index, context), ...failureOf(event) };
}

function abortedFact({ cause, index, error, inFlight = [] }: Aborted, context: DispatchContext): Said {
  const base = index === undefined ? NOTHING : called(index, context);
  const running = inFlight.map((place) => context.subscriber(place)?.id ?? `#${place}`);
  const also = running.length === 0 ? undefined : `in flight: ${running.join(", ")}`;
  return { ...base, category: error?.category ?? null, message: sentence(sentence(cause, error?.message), also, "; ") };
}

function decidedFact({ decision, decidedBy, payload }: Decided, context: DispatchContext): Said {
  const base = { ...NOTHING, decision, decidedBy, payloadDigest: payload };
  if (decision === "allow") return base;
  const denier = context.named(decidedBy);
  return { ...base, subscriber: decidedBy, mode: denier?.mode ?? null, ...context.denialBy(decidedBy) };
}

function sentence(first: string | null, second: string | undefined, between = ": "): string | null {
  return second === undefined ? first : first === null ? second : `${first}${between}${second}`;
}
