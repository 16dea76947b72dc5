/** Which event may stand where. Every function answers with what was expected instead, or null: legal. */

import type { Composition } from "./composition.js";
import { describeStep } from "./description.js";
import type { Aborted, Decided, DispatchEvent, Settlement, Started, Subscriber, SubscriberInvoked } from "./events.js";
import { BLOCKS_ON_FAILURE } from "./handlers.js";
import { type Begun, inFlight, type State, type Step } from "./state.js";

export const REDUCER_VERSION = 1;
/** What `started.flags` may say. `redacted`: the recorded payloads are redacted copies, and digests speak of those. */
const KNOWN_FLAGS: ReadonlySet<string> = new Set(["redacted", BLOCKS_ON_FAILURE]);

export function startObjection(state: State, started: Started, rules: Composition): string | null {
  if (state.kind !== "new") return "one started, at revision 0";
  if (started.reducerVersion !== REDUCER_VERSION) return `reducer version ${REDUCER_VERSION}`;
  const flag = started.flags.find((name) => !KNOWN_FLAGS.has(name));
  if (flag !== undefined) return `no flag ${flag}`;
  if (started.subscribers.some(({ index }, place) => index !== place)) return "subscribers numbered by their place";
  if (new Set(started.subscribers.map(({ id }) => id)).size < started.subscribers.length) return "each subscriber once";
  const why = rules.rejects(started);
  return why === null ? null : `another chain: ${why}`;
}

/** `ask` tells what the machine asks for in `state`. */
export function objection(state: Begun, event: Exclude<DispatchEvent, Started>, ask: () => Step): string | null {
  return isLegal(state, event, ask) ? null : describeStep(ask());
}

function isLegal(state: Begun, event: Exclude<DispatchEvent, Started>, ask: () => Step): boolean {
  switch (event.type) {
    case "subscriber-invoked":
      return isAskedFor(event, ask());
    case "outcome":
    case "timeout":
      return maySettle(state, event);
    case "decided":
      return concludes(ask(), event);
    case "aborted":
      return mayAbort(state, event, ask());
  }
}

function concludes(step: Step, event: Decided | Aborted): boolean {
  return step.kind === "conclude" && sameConclusion(step.event, event);
}

function isAskedFor(event: SubscriberInvoked, step: Step): boolean {
  return step.kind === "invoke" && step.indexes[0] === event.index && step.payload === event.saw;
}

function maySettle(state: Begun, event: Settlement): boolean {
  const subscriber = state.started.subscribers[event.index];
  if (subscriber === undefined || state.slots[event.index] !== "in-flight") return false;
  if (state.kind !== "open" && !state.rules.passive(subscriber)) return false;
  if (event.type === "outcome")
    return (event.class !== "lost" || state.kind !== "open") && state.rules.accepts(subscriber, event);
  return mayTimeOut(state, subscriber, event.budgetMs);
}

/** A call is given its own timeout, or what was left of the chain budget if that was less. */
function mayTimeOut({ started, rules }: Begun, subscriber: Subscriber, givenMs: number): boolean {
  const { timeoutMs } = subscriber;
  if (timeoutMs === null) return false;
  const budgetMs = rules.detached(started, subscriber) ? null : started.budgetMs;
  return budgetMs === null ? givenMs === timeoutMs : givenMs >= 0 && givenMs <= timeoutMs && givenMs <= budgetMs;
}

/** The machine's own aborts are concluded; the others come from outside and name who was in flight. */
function mayAbort(state: Begun, event: Aborted, step: Step): boolean {
  if (event.inFlight?.length === 0) return false;
  if (event.cause === "hook_error") return concludes(step, event);
  if (event.index !== undefined || event.error !== undefined) return false;
  if (!sameIndexes(event.inFlight ?? [], inFlight(state))) return false;
  switch (event.cause) {
    case "cancelled":
    case "store_unavailable":
      return state.kind === "open";
    case "recovered":
      return state.kind === "open" && !concludesWithoutAllow(step);
    case "unconfirmed":
      return state.kind === "decided";
  }
}

/** Would the machine end this dispatch with a deny or an abort of its own? Then recovery records that. */
export function concludesWithoutAllow(step: Step): step is Extract<Step, { kind: "conclude" }> {
  return step.kind === "conclude" && !(step.event.type === "decided" && step.event.decision === "allow");
}

function sameConclusion(a: Decided | Aborted, b: Decided | Aborted): boolean {
  if (a.type === "decided")
    return b.type === "decided" && a.decision === b.decision && a.decidedBy === b.decidedBy && a.payload === b.payload;
  return (
    b.type === "aborted" &&
    a.cause === b.cause &&
    a.index === b.index &&
    a.error?.category === b.error?.category &&
    a.error?.message === b.error?.message &&
    sameIndexes(a.inFlight ?? [], b.inFlight ?? [])
  );
}

function sameIndexes(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((index, place) => index === b[place]);
}
