/**
 * Given what has happened, when this happens, then that is asked for: dispatches told event by event, every statement tied
 * to its revision. Payloads are told by a word: `"p1"` stands for the digest `sha256:p1`, the input is `"input"`.
 */
import { expect } from "vitest";
import type {
  AbortCause,
  Aborted,
  Category,
  Decided,
  Digest,
  DispatchEvent,
  HookError,
  Mode,
  Outcome,
  PolicyItem,
  Ref,
  RewriteSet,
  Started,
  Subscriber,
  SubscriberInvoked,
  TimedOut,
} from "#src/core/events.js";
import { evolve, next } from "#src/core/machine.js";
import { type Verdict, verdictOf } from "#src/core/result.js";
import { type Begun, NEW, type State, type Step, type Violation } from "#src/core/state.js";

/** ms that a subscriber is given unless its chain says otherwise. */
export const TIMEOUT_MS = 1000;

export function digest(word: string): Digest {
  return `sha256:${word}`;
}

export function ref(word: string): Ref {
  return { digest: digest(word), size: word.length, encoding: "json" };
}

export function hookError(category: Category, message = "it broke"): HookError {
  return { category, message };
}

/**
 * A chain in a few words, one a subscriber: `mode[:id][@timeoutMs][~shadow|~skip]`. Without an id, the mode names it, with
 * its place when it stands at 1 or later: `chain("policy", "observe", "veto:gate@200")`.
 */
export function chain(...links: readonly string[]): readonly Subscriber[] {
  return links.map(link);
}

const LINK = /^(policy|observe|transform|veto|handler)(?::([^@~]+))?(?:@(\d+|none))?(?:~(shadow|skip))?$/;

function link(text: string, index: number): Subscriber {
  const parts = LINK.exec(text);
  if (parts === null) throw new Error(`no link of a chain: ${text}`);
  const [, mode, named, timeout, role] = parts;
  const id = named ?? (mode === "policy" ? "kernel:policy" : `${mode}${index === 0 ? "" : index}`);
  return {
    index,
    id,
    provider: id,
    mode: mode as Mode,
    timeoutMs: timeout === "none" ? null : timeout === undefined ? TIMEOUT_MS : Number(timeout),
    ...(role === "skip" ? { skip: "switched off" } : {}),
    ...(role === "shadow" ? { shadow: true } : {}),
    producer: { name: id, source: "host" },
  };
}

/** At a veto-bearing point, concurrent observers, no budget, unless told otherwise. */
export function started(subscribers: readonly Subscriber[], told: Partial<Started> = {}): Started {
  return {
    type: "started",
    dispatchId: "01K0000000000000000000000A",
    point: "pre-tool-call",
    composition: "chain",
    reducerVersion: 1,
    flags: [],
    vetoBearing: true,
    observe: "concurrent",
    budgetMs: null,
    subscribers,
    configDigest: digest("config"),
    descriptorDigest: digest("descriptor"),
    input: ref("input"),
    ...told,
  };
}

/** A run of handlers, told like a chain: `handlers("claim", "a", "b@none", "c~skip")`. */
export function handlers(composition: string, links: readonly string[], told: Partial<Started> = {}): Started {
  const subscribers = chain(...links.map((link) => `handler:${link}`));
  const point = HOOKS.get(composition) ?? "message_sent";
  return started(subscribers, { point, composition, vetoBearing: false, observe: "sequential", ...told });
}

/** A hook for each composition. */
const HOOKS: ReadonlyMap<string, string> = new Map([
  ["claim", "before_dispatch"],
  ["rewrite", "message_sending"],
  ["waterfall", "reply_payload_sending"],
  ["notify", "message_sent"],
]);

export function invoked(index: number, saw = "input"): SubscriberInvoked {
  return { type: "subscriber-invoked", index, saw: digest(saw) };
}

export function ack(index: number): Outcome {
  return { type: "outcome", index, class: "ack" };
}

export function transformed(index: number, into: string): Outcome {
  return { type: "outcome", index, class: "transformed", payload: ref(into) };
}

export function allow(index: number): Outcome {
  return { type: "outcome", index, class: "allow" };
}

export function deny(index: number, reason?: string): Outcome {
  return { type: "outcome", index, class: "deny", ...(reason === undefined ? {} : { reason }) };
}

/** Policy's answer: one word an item (`allow`, `ask`, `deny`), items called `i0`, `i1`, …; the plan is stamped. */
export function policy(...decisions: readonly PolicyItem["decision"][]): Outcome {
  const items = decisions.map((decision, at) => ({ itemId: `i${at}`, decision, decidedBy: "policy:default" }));
  return { type: "outcome", index: 0, class: "policy", payload: ref("stamped"), items };
}

export function claimed(index: number, result: string): Outcome {
  return { type: "outcome", index, class: "claimed", payload: ref(result) };
}

export function declined(index: number): Outcome {
  return { type: "outcome", index, class: "declined" };
}

/** Of a waterfall. */
export function replaced(index: number, by: string): Outcome {
  return { type: "outcome", index, class: "rewritten", payload: ref(by) };
}

type Fields = { readonly content?: string; readonly cancelReason?: string; readonly metadata?: string };

/** Of a rewrite: fields by words. */
export function defined(index: number, fields: Fields): Outcome {
  return { type: "outcome", index, class: "rewritten", set: setOf(fields) };
}

/** Of a rewrite, if there are fields. */
export function cancelled(index: number, fields?: Fields): Outcome {
  return { type: "outcome", index, class: "cancelled", ...(fields === undefined ? {} : { set: setOf(fields) }) };
}

export function setOf(fields: Fields): RewriteSet {
  return Object.fromEntries(Object.entries(fields).map(([field, word]) => [field, ref(word)]));
}

export function failed(index: number, category: Category = "UNKNOWN", message?: string): Outcome {
  return { type: "outcome", index, class: "failed", error: hookError(category, message) };
}

export function invalid(index: number, message?: string): Outcome {
  return { type: "outcome", index, class: "invalid", error: hookError("INVALID_RESPONSE", message) };
}

export function lost(index: number): Outcome {
  return { type: "outcome", index, class: "lost" };
}

export function timeout(index: number, budgetMs = TIMEOUT_MS): TimedOut {
  return { type: "timeout", index, budgetMs };
}

export function timeoutError(budgetMs = TIMEOUT_MS): HookError {
  return hookError("TIMEOUT", `no answer within ${budgetMs} ms`);
}

export function decided(decision: "allow" | "deny", decidedBy: string, payload = "input"): Decided {
  return { type: "decided", decision, decidedBy, payload: digest(payload) };
}

export function aborted(cause: AbortCause, ...inFlight: readonly number[]): Aborted {
  return { type: "aborted", cause, ...(inFlight.length === 0 ? {} : { inFlight }) };
}

export function brokenBy(index: number, error: HookError, ...inFlight: readonly number[]): Aborted {
  return { type: "aborted", cause: "hook_error", index, error, ...(inFlight.length === 0 ? {} : { inFlight }) };
}

export function invoke(indexes: readonly number[], payload = "input"): Step {
  return { kind: "invoke", indexes, payload: digest(payload) };
}

export function wait(...indexes: readonly number[]): Step {
  return { kind: "wait", indexes };
}

export function conclude(event: Decided | Aborted): Step {
  return { kind: "conclude", event };
}

export const SETTLED: Step = { kind: "settled" };

/** Folds a log; a violation ends the fold. */
export function fold(events: readonly DispatchEvent[], from: State = NEW): State | Violation {
  let state = from;
  for (const event of events) {
    const after = evolve(state, event);
    if (after.kind === "violation") return after;
    state = after;
  }
  return state;
}

/** Like `fold`, for a log that begins and is legal. */
export function folded(events: readonly DispatchEvent[], from: State = NEW): Begun {
  const state = fold(events, from);
  if (state.kind === "new" || state.kind === "violation") throw new Error(`no legal log: ${JSON.stringify(state)}`);
  return state;
}

/** A dispatch as far as it has come. */
export class Dispatch {
  readonly state: State;

  constructor(state: State) {
    this.state = state;
  }

  /** These happen, one after the other, and each is legal. */
  when(...events: readonly DispatchEvent[]): Dispatch {
    let state: State = this.state;
    for (const event of events) {
      const after = evolve(state, event);
      expect(after, `revision ${state.revision}`).toMatchObject({ revision: state.revision + 1 });
      if (after.kind === "violation") throw new Error("unreachable: a violation names the revision it would have had");
      state = after;
    }
    return new Dispatch(state);
  }

  /** The machine asks for exactly this. */
  asks(step: Step): Dispatch {
    expect(next(this.#begun()), `revision ${this.state.revision}`).toStrictEqual(step);
    return this;
  }

  /** This event is a violation here, and is told so; the dispatch stays where it is. */
  refuses(event: DispatchEvent, expected: string, found: string): Dispatch {
    const violation: Violation = { kind: "violation", revision: this.state.revision, expected, found };
    expect(evolve(this.state, event)).toStrictEqual(violation);
    return this;
  }

  /** The machine concludes so; it is recorded, and nothing is left to do. */
  ends(event: Decided | Aborted): Dispatch {
    return this.asks(conclude(event)).when(event).asks(SETTLED);
  }

  /** What the caller is told, as far as it is stated here. */
  comesTo(verdict: Partial<Verdict>): Dispatch {
    expect(verdictOf(this.#begun())).toMatchObject(verdict);
    return this;
  }

  verdict(): Verdict {
    return verdictOf(this.#begun());
  }

  #begun(): Begun {
    if (this.state.kind === "new") throw new Error("nothing has happened yet");
    return this.state;
  }
}

export function given(...events: readonly DispatchEvent[]): Dispatch {
  return new Dispatch(NEW).when(...events);
}
