/**
 * The machine: it reads a dispatch's events and says what comes next. The live dispatcher and replay both ask it, so there
 * is no second account of the semantics. Pure and total: an event that is not legal where it stands is a Violation.
 */
import { compositionNamed } from "./compositions.js";
import { describeEvent } from "./description.js";
import type { DispatchEvent } from "./events.js";
import { objection, startObjection } from "./legality.js";
import { type Begun, inFlight, isAbandoned, type Slot, type State, type Step, type Violation } from "./state.js";

/** Folds one event into the state. */
export function evolve(state: State, event: DispatchEvent): Begun | Violation {
  if (event.type === "started") {
    const rules = compositionNamed(event.composition);
    if (rules === undefined) return violation(state, event, "a composition that this version knows");
    const expected = startObjection(state, event, rules);
    if (expected !== null) return violation(state, event, expected);
    const slots = event.subscribers.map(() => "idle" as const);
    return {
      kind: "open",
      revision: 1,
      started: event,
      rules,
      slots,
      payload: event.input.digest,
      author: null,
      items: null,
      halt: null,
    };
  }
  if (state.kind === "new") return violation(state, event, "started");
  const expected = objection(state, event, () => next(state));
  if (expected !== null) return violation(state, event, expected);
  const revision = state.revision + 1;
  switch (event.type) {
    case "subscriber-invoked":
      return { ...state, revision, slots: filled(state.slots, event.index, "in-flight") };
    case "outcome":
    case "timeout": {
      const settled = { ...state, revision, slots: filled(state.slots, event.index, event) };
      const subscriber = state.started.subscribers[event.index];
      return settled.kind !== "open" || subscriber === undefined
        ? settled
        : state.rules.settle(settled, subscriber, event);
    }
    case "decided":
      return { ...state, revision, kind: "decided", decided: event };
    case "aborted":
      return { ...state, revision, kind: "aborted", aborted: event };
  }
}

/** What is to be done now. Asked again after every event until it answers "settled". */
export function next(state: Begun): Step {
  if (state.kind === "open") return state.rules.next(state);
  const late = isAbandoned(state) ? [] : inFlight(state);
  return late.length === 0 ? { kind: "settled" } : { kind: "wait", indexes: late };
}

function filled(slots: readonly Slot[], index: number, slot: Slot): readonly Slot[] {
  const copy = slots.slice();
  copy[index] = slot;
  return copy;
}

function violation(state: State, event: DispatchEvent, expected: string): Violation {
  return { kind: "violation", revision: state.revision, expected, found: describeEvent(event) };
}
