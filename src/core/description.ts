import type { DispatchEvent } from "./events.js";
import type { Step } from "./state.js";

/** One event in a few words, for violations. */
export function describeEvent(event: DispatchEvent): string {
  switch (event.type) {
    case "started":
      return `started (${event.composition}, reducer ${event.reducerVersion})`;
    case "subscriber-invoked":
      return `subscriber-invoked ${event.index} seeing ${event.saw}`;
    case "outcome":
      return `outcome ${event.class} of ${event.index}`;
    case "timeout":
      return `timeout of ${event.index} after ${event.budgetMs} ms`;
    case "aborted":
      return `aborted (${event.cause}${event.index === undefined ? "" : ` by ${event.index}`}${list(" with ", event.inFlight ?? [], " in flight")})`;
    case "decided":
      return `decided ${event.decision} by ${event.decidedBy} on ${event.payload}`;
  }
}

/** What the machine asks for, in the same words. */
export function describeStep(step: Step): string {
  switch (step.kind) {
    case "invoke":
      return `subscriber-invoked ${step.indexes[0]} seeing ${step.payload}`;
    case "wait":
      return `a settlement of ${step.indexes.join(", ")}`;
    case "conclude":
      return describeEvent(step.event);
    case "settled":
      return "no further event";
  }
}

function list(before: string, items: readonly number[], after: string): string {
  return items.length === 0 ? "" : `${before}${items.join(", ")}${after}`;
}
