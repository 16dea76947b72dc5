/** What holds of every dispatch, in the order of the architecture page. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DispatchEvent, Settlement, Subscriber } from "#src/core/events.js";
import { evolve, next } from "#src/core/machine.js";
import { recoveryStep } from "#src/core/recovery.js";
import { type Verdict, verdictOf } from "#src/core/result.js";
import { type Begun, NEW, type State } from "#src/core/state.js";
import { play } from "../support/driver.js";
import { ack, allow, fold, folded, lost, policy, timeout, transformed } from "../support/given.js";
import type { Role, Script } from "../support/oracle.js";
import { type ScriptBounds, schedules, scripts } from "../support/oracle-scripts.js";
import { logs } from "./logs.js";

const RUNS = { numRuns: 1_000 };
const UNDISTURBED: ScriptBounds = { budget: false, cancellation: false };
describe("settlements of concurrent observers", () => {
  it("should commute: any order of a stretch of them folds to the same state", () => {
    fc.assert(
      fc.property(logs, fc.infiniteStream(fc.nat()), (log, keys) => {
        expect(fold(stretchesReordered(log, keys))).toStrictEqual(fold(log));
      }),
      RUNS,
    );
  });

  it("should leave the same slots, payload and verdict however they race with everything else", () => {
    fc.assert(
      fc.property(scripts(), schedules, schedules, (script, one, other) => {
        const a = play(script, one);
        const b = play(script, other);
        expect(a.verdict).toStrictEqual(b.verdict);
        expect(a.state.slots).toStrictEqual(b.state.slots);
        expect(a.state.payload).toBe(b.state.payload);
      }),
      RUNS,
    );
  });
});

describe("every prefix of every log", () => {
  it("should terminate, whatever the subscribers still do", () => {
    fc.assert(
      fc.property(logs, schedules, (log, schedule) => {
        for (const state of prefixes(log)) {
          const bound = 2 * state.started.subscribers.length + 1;
          expect(stepsToTheEnd(state, schedule)).toBeLessThanOrEqual(bound);
        }
      }),
      RUNS,
    );
  });

  it("should be recovered to an end that allows nothing that no decided says, and only once", () => {
    fc.assert(
      fc.property(logs, (log) => {
        for (const state of prefixes(log)) {
          const appended: DispatchEvent[] = [];
          let closed: Begun = state;
          for (let event = recoveryStep(closed); event !== null; event = recoveryStep(closed)) {
            expect(appended.push(event)).toBeLessThanOrEqual(state.started.subscribers.length + 1);
            closed = folded([event], closed);
          }
          expect(next(closed)).toStrictEqual({ kind: "settled" });
          expect(recoveryStep(closed)).toBeNull();
          expect(appended.some((event) => event.type === "decided" && event.decision === "allow")).toBe(false);
          expect(verdictOf(closed).allowed).toBe(state.kind === "decided" && verdictOf(state).allowed);
        }
      }),
      RUNS,
    );
  });
});

describe("folding", () => {
  it("should be the same at once and in two parts, from frozen events and states, as often as one likes", () => {
    fc.assert(
      fc.property(logs, fc.nat(), (log, at) => {
        const state = fold(log);
        const events = deepFreeze(structuredClone(log));
        const cut = at % (events.length + 1);
        const head = deepFreeze(fold(events.slice(0, cut)));
        if (head.kind === "violation") throw new Error("a prefix of a legal log is legal");
        expect(fold(events.slice(cut), head)).toStrictEqual(state);
        expect(fold(events.slice(cut), head)).toStrictEqual(state);
      }),
      RUNS,
    );
  });
});

describe("making one subscriber fail", () => {
  it("should never turn a deny into an allow, nor let anything pass that did not", () => {
    fc.assert(
      fc.property(scripts(), fc.nat(), fc.constantFrom("fail", "answer badly", "hang"), (script, at, how) => {
        const before = play(script).verdict;
        const after = play(spoiled(script, at, how)).verdict;
        if (before.decision === "deny") expect(after.decision).not.toBe("allow");
        if (after.allowed) expect(before.allowed).toBe(true);
      }),
      { numRuns: 3_000 },
    );
  });

  it("should end in a deny when it is a veto that everybody before it lets be reached", () => {
    fc.assert(
      fc.property(
        scripts(UNDISTURBED),
        fc.nat(),
        fc.constantFrom("fail", "answer badly", "hang"),
        (script, at, how) => {
          const before = play(script);
          fc.pre(before.verdict.decision === "allow");
          const vetoes = script.roles.flatMap((role, index) => (isGate(role) ? [index] : []));
          fc.pre(vetoes.length > 0);
          const index = vetoes[at % vetoes.length]!;
          expect(play(spoiled(script, index, how)).verdict).toMatchObject({
            decision: "deny",
            decidedBy: script.roles[index]!.id,
            allowed: false,
          });
        },
      ),
      RUNS,
    );
  });
});

describe("removing observers", () => {
  it("should change neither payload nor decision", () => {
    fc.assert(
      fc.property(scripts(UNDISTURBED), fc.infiniteStream(fc.boolean()), schedules, (script, stays, schedule) => {
        const roles = script.roles.filter((role) => hasSay(role) || stays.next().value);
        expect(essence(play({ ...script, roles }, schedule).verdict)).toStrictEqual(essence(play(script).verdict));
      }),
      RUNS,
    );
  });
});

describe("latencies within the timeouts", () => {
  it("should change neither payload nor decision", () => {
    fc.assert(
      fc.property(scripts(UNDISTURBED), fc.infiniteStream(fc.nat()), schedules, (script, latencies, schedule) => {
        const roles = script.roles.map((role) => hastened(role, latencies.next().value));
        expect(essence(play({ ...script, roles }, schedule).verdict)).toStrictEqual(essence(play(script).verdict));
      }),
      RUNS,
    );
  });
});

function prefixes(log: readonly DispatchEvent[]): readonly Begun[] {
  const states: Begun[] = [];
  let state: State = NEW;
  for (const event of log) {
    const after = folded([event], state);
    states.push(after);
    state = after;
  }
  return states;
}

function isPassiveSettlement(event: DispatchEvent, subscribers: readonly Subscriber[]): event is Settlement {
  if (event.type !== "outcome" && event.type !== "timeout") return false;
  const { mode, shadow } = subscribers[event.index]!;
  return mode === "observe" || shadow === true;
}

/** Each stretch of settlements without a say, in the order of random keys. */
function stretchesReordered(log: readonly DispatchEvent[], keys: Iterator<number>): readonly DispatchEvent[] {
  const { subscribers } = folded(log).started;
  const reordered: DispatchEvent[] = [];
  let stretch: { event: DispatchEvent; key: number }[] = [];
  for (const event of log) {
    if (isPassiveSettlement(event, subscribers)) {
      stretch.push({ event, key: keys.next().value });
      continue;
    }
    reordered.push(...inKeyOrder(stretch), event);
    stretch = [];
  }
  return [...reordered, ...inKeyOrder(stretch)];
}

function inKeyOrder(stretch: readonly { event: DispatchEvent; key: number }[]): readonly DispatchEvent[] {
  return stretch.toSorted((a, b) => a.key - b.key).map(({ event }) => event);
}

/** Does what the machine asks for, with any legal settlement, until nothing is left to do. */
function stepsToTheEnd(from: Begun, schedule: readonly number[]): number {
  let state = from;
  for (let steps = 0; ; steps++) {
    const event = anyEvent(state, schedule[steps] ?? 0);
    if (event === null) return steps;
    state = folded([event], state);
  }
}

function anyEvent(state: Begun, pick: number): DispatchEvent | null {
  const step = next(state);
  switch (step.kind) {
    case "settled":
      return null;
    case "conclude":
      return step.event;
    case "invoke":
      return { type: "subscriber-invoked", index: step.indexes[0]!, saw: step.payload };
    case "wait": {
      const index = step.indexes[pick % step.indexes.length]!;
      const possible = [ack, allow, lost, passing, () => policy("allow"), ownTimeout(state)].map((make) => make(index));
      const legal = possible.filter((event) => evolve(state, event).kind !== "violation");
      return legal[pick % legal.length]!;
    }
  }
}

function passing(index: number): DispatchEvent {
  return transformed(index, "elsewhere");
}

function ownTimeout({ started }: Begun): (index: number) => DispatchEvent {
  return (index) => {
    const ownMs = started.subscribers[index]!.timeoutMs!;
    const detached = started.observe === "detached";
    return timeout(index, started.budgetMs === null || detached ? ownMs : Math.min(ownMs, started.budgetMs));
  };
}

/** One subscriber that would answer fails instead: at the same instant, or by never answering. */
function spoiled(script: Script, at: number, how: "fail" | "answer badly" | "hang"): Script {
  const index = script.roles.length === 0 ? -1 : at % script.roles.length;
  return {
    ...script,
    roles: script.roles.map((role, place) => {
      if (place !== index || role.conduct.does !== "answer") return role;
      if (how === "hang") return { ...role, conduct: { does: "hang" } };
      const does = role.mode === "policy" ? "fail" : how;
      return { ...role, conduct: { does, afterMs: role.conduct.afterMs } };
    }),
  };
}

/** The same conduct, after some other time within the timeout; whoever comes too late stays too late. */
function hastened(role: Role, anyMs: number): Role {
  const { conduct } = role;
  if (conduct.does === "hang" || conduct.afterMs >= role.timeoutMs) return role;
  return { ...role, conduct: { does: conduct.does, afterMs: anyMs % role.timeoutMs } };
}

function hasSay({ mode, shadow, skipped }: Role): boolean {
  return mode !== "observe" && !shadow && !skipped;
}

function isGate(role: Role): boolean {
  return hasSay(role) && role.mode !== "transform";
}

function essence({ hookErrors: _, ...rest }: Verdict): Omit<Verdict, "hookErrors"> {
  return rest;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
