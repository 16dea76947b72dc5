/**
 * Plays a script through the machine as a dispatcher would, on a virtual clock: it does what `next` asks for, acts the
 * subscribers, and records what happens. Pure. Wherever a dispatcher's own timing decides what is recorded first (a settlement
 * that is due, the rest of a run still to be invoked, the conclusion), the schedule picks, so that a test owns every race.
 */
import type { Category, DispatchEvent, Outcome, Ref, Settlement, Subscriber } from "#src/core/events.js";
import { evolve, next } from "#src/core/machine.js";
import { type Verdict, verdictOf } from "#src/core/result.js";
import { type Begun, inFlight, NEW, type State } from "#src/core/state.js";
import { aborted, chain, invoked, started, timeout } from "./given.js";
import type { Call, Conduct, End, Expected, Marks, Role, Script } from "./oracle.js";

/** One number for each race; modulo how many could come first. All 0 when it is used up: in chain order, settlements first. */
export type Schedule = readonly number[];

export type Play = {
  readonly log: readonly DispatchEvent[];
  readonly state: Begun;
  readonly verdict: Verdict;
  /** The play in the oracle's terms. */
  readonly result: Expected;
};

/** After a cancellation nobody is waited for; `late` says whether observers' settlements are recorded all the same. */
export function play(script: Script, schedule: Schedule = [], late: "unheard" | "recorded" = "unheard"): Play {
  return new Player(script, schedule).play(late);
}

/** The digest that stands for a payload, for tests that look into a log. */
export function refOf(marks: Marks): Ref {
  return { digest: `sha256:${marks.join("+")}`, size: marks.length, encoding: "json" };
}

export function startedBy(script: Script): DispatchEvent {
  return started(script.roles.map(subscriberOf), {
    point: script.vetoBearing ? "plan-ready" : "pre-model-call",
    vetoBearing: script.vetoBearing,
    observe: script.observe,
    budgetMs: script.budgetMs,
    input: refOf([]),
  });
}

function subscriberOf(role: Role, index: number): Subscriber {
  return {
    ...chain(`${role.mode}:${role.id}@${role.timeoutMs}`)[0]!,
    index,
    ...(role.skipped ? { skip: "skipped" } : {}),
    ...(role.shadow ? { shadow: true } : {}),
  };
}

type Running = {
  readonly saw: Marks;
  readonly calledAtMs: number;
  readonly dueAtMs: number;
  readonly settlement: Settlement;
};
type Action = { readonly act: "invoke" | "settle" | "conclude"; readonly index: number };

class Player {
  readonly #script: Script;
  readonly #schedule: Schedule;
  readonly #log: DispatchEvent[] = [];
  readonly #running = new Map<number, Running>();
  readonly #calls = new Map<number, Call>();
  readonly #payloads = new Map<string, Marks>([[refOf([]).digest, []]]);
  #state: State = NEW;
  #races = 0;
  #nowMs = 0;
  #concludedAtMs = 0;

  constructor(script: Script, schedule: Schedule) {
    this.#script = script;
    this.#schedule = schedule;
  }

  play(late: "unheard" | "recorded"): Play {
    let state = this.#record(startedBy(this.#script));
    for (;;) {
      if (state.kind === "open" && this.#isCancelled()) {
        state = this.#cancel(state);
        break;
      }
      const actions = this.#actions(state);
      const action = actions[this.#pick(actions.length)];
      if (action !== undefined) state = this.#do(state, action);
      else if (this.#running.size === 0) break;
      else this.#wait(state.kind === "open");
    }
    const result = this.#result(verdictOf(state));
    if (late === "recorded") {
      for (const [index, { settlement }] of this.#running) {
        if (hasNoSay(this.#script.roles[index]!)) state = this.#record(settlement);
      }
    }
    return { log: this.#log, state, verdict: verdictOf(state), result };
  }

  /** What could be recorded at this instant. */
  #actions(state: Begun): readonly Action[] {
    const due: Action[] = [...this.#running]
      .filter(([, { dueAtMs }]) => dueAtMs <= this.#nowMs)
      .map(([index]) => ({ act: "settle", index }));
    const step = next(state);
    switch (step.kind) {
      case "invoke":
        return [...due, { act: "invoke", index: step.indexes[0]! }];
      case "conclude":
        return [...due, { act: "conclude", index: -1 }];
      case "wait":
      case "settled":
        return due;
    }
  }

  #do(state: Begun, { act, index }: Action): Begun {
    switch (act) {
      case "settle":
        return this.#settle(index);
      case "invoke":
        return this.#invoke(state, index);
      case "conclude": {
        const step = next(state);
        if (step.kind !== "conclude") throw new Error("nothing to conclude");
        this.#concludedAtMs = this.#nowMs;
        return this.#record(step.event);
      }
    }
  }

  /** Calls, unless nothing is left of the budget. */
  #invoke(state: Begun, index: number): Begun {
    const role = this.#script.roles[index]!;
    const saw = this.#payloads.get(state.payload)!;
    const leftMs = this.#isDetached(role) ? null : this.#leftMs();
    const givenMs = leftMs === null ? role.timeoutMs : Math.min(role.timeoutMs, leftMs);
    const after = this.#record(invoked(index, state.payload.slice("sha256:".length)));
    const settlesInTime = role.conduct.does !== "hang" && role.conduct.afterMs < givenMs;
    this.#running.set(index, {
      saw,
      calledAtMs: this.#nowMs,
      dueAtMs: this.#nowMs + (settlesInTime ? afterMs(role.conduct) : givenMs),
      settlement: settlesInTime ? acted(role, index, saw) : timeout(index, givenMs),
    });
    return givenMs > 0 ? after : this.#settle(index);
  }

  #settle(index: number): Begun {
    const { saw, calledAtMs, dueAtMs, settlement } = this.#running.get(index)!;
    this.#running.delete(index);
    const role = this.#script.roles[index]!;
    const neverCalled = settlement.type === "timeout" && settlement.budgetMs === 0;
    this.#calls.set(index, {
      index,
      atMs: calledAtMs,
      saw: neverCalled ? null : saw,
      end: endOf(settlement, dueAtMs),
    });
    if (settlement.type === "outcome" && (settlement.class === "transformed" || settlement.class === "policy")) {
      this.#payloads.set(settlement.payload.digest, marksLeftBy(role, saw));
    }
    return this.#record(settlement);
  }

  #cancel(state: Begun): Begun {
    for (const [index, { saw, calledAtMs }] of this.#running) {
      this.#calls.set(index, { index, atMs: calledAtMs, saw, end: { how: "abandoned", atMs: this.#nowMs } });
    }
    this.#concludedAtMs = this.#nowMs;
    return this.#record(aborted("cancelled", ...inFlight(state)));
  }

  /** Lets time pass until something is due. */
  #wait(open: boolean): void {
    const due = [...this.#running.values()].map(({ dueAtMs }) => dueAtMs);
    const { cancelAtMs } = this.#script;
    this.#nowMs = Math.min(...due, ...(open && cancelAtMs !== null ? [cancelAtMs] : []));
  }

  #record(event: DispatchEvent): Begun {
    const after = evolve(this.#state, event);
    if (after.kind === "violation")
      throw new Error(`the machine refused what it had asked for: ${JSON.stringify(after)}`);
    this.#log.push(event);
    this.#state = after;
    return after;
  }

  #pick(choices: number): number {
    return choices < 2 ? 0 : (this.#schedule[this.#races++] ?? 0) % choices;
  }

  #isCancelled(): boolean {
    return this.#script.cancelAtMs !== null && this.#script.cancelAtMs <= this.#nowMs;
  }

  #isDetached(role: Role): boolean {
    return this.#script.observe === "detached" && hasNoSay(role);
  }

  #leftMs(): number | null {
    return this.#script.budgetMs === null ? null : Math.max(0, this.#script.budgetMs - this.#nowMs);
  }

  #result({ status, abortCause, decision, decidedBy, allowed, payload, planDecisions, hookErrors }: Verdict): Expected {
    if (status === "open") throw new Error("the play has no end");
    const conclusion = this.#log.find((event) => event.type === "aborted");
    const by = conclusion?.index;
    return {
      status,
      cause: abortCause === "hook_error" || abortCause === "cancelled" ? abortCause : null,
      abortedBy: by === undefined ? null : this.#script.roles[by]!.id,
      decision,
      decidedBy,
      allowed,
      payload: payload === null ? null : this.#payloads.get(payload)!,
      plan: planDecisions.map((item) => ({
        itemId: item.itemId,
        decision: item.decision,
        policyDecision: item.policyDecision,
      })),
      concludedAtMs: this.#concludedAtMs,
      calls: [...this.#calls.values()].sort((a, b) => a.index - b.index),
      hookErrors: hookErrors.map(({ subscriber, mode, category }) => ({
        subscriber,
        mode: mode as Expected["hookErrors"][number]["mode"],
        category: category as Expected["hookErrors"][number]["category"],
      })),
    };
  }
}

function hasNoSay(role: Role): boolean {
  return role.mode === "observe" || role.shadow === true;
}

function afterMs(conduct: Conduct): number {
  return conduct.does === "hang" ? Number.POSITIVE_INFINITY : conduct.afterMs;
}

/** What this role's answer leaves as the payload. */
function marksLeftBy(role: Role, saw: Marks): Marks {
  if (role.mode === "policy") return [...saw, "policy"];
  if (role.mode !== "transform" || role.rewrite === "keep") return saw;
  return role.rewrite === "clear" ? [] : [...saw, role.rewrite.add];
}

/** What this role says, in time. */
function acted(role: Role, index: number, saw: Marks): Outcome {
  const base = { type: "outcome", index } as const;
  switch (role.conduct.does) {
    case "fail":
      return { ...base, class: "failed", error: { category: failureCategory(role), message: `${role.id} threw` } };
    case "answer badly":
      return { ...base, class: "invalid", error: { category: "INVALID_RESPONSE", message: `${role.id} babbled` } };
    case "hang":
      throw new Error("it never answers");
    case "answer":
      break;
  }
  switch (role.mode) {
    case "observe":
      return { ...base, class: "ack" };
    case "transform":
      return { ...base, class: "transformed", payload: refOf(marksLeftBy(role, saw)) };
    case "veto":
      return { ...base, class: role.says };
    case "policy":
      return {
        ...base,
        class: "policy",
        payload: refOf(marksLeftBy(role, saw)),
        items: role.items.map((item) => ({ ...item, decidedBy: "policy:rule" })),
      };
  }
}

function failureCategory({ mode }: Role): Category {
  switch (mode) {
    case "observe":
      return "UNKNOWN";
    case "transform":
      return "TRANSFORM_FAILED";
    case "veto":
    case "policy":
      return "VETO_FAILED";
  }
}

function endOf(settlement: Settlement, atMs: number): End {
  if (settlement.type === "timeout") return { how: "timed out", atMs, allowedMs: settlement.budgetMs };
  if (settlement.class === "failed") return { how: "failed", atMs };
  return { how: settlement.class === "invalid" ? "answered badly" : "answered", atMs };
}
