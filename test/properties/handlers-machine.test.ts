/** What holds of every run of handlers, whatever races. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DispatchEvent, Settlement } from "#src/core/events.js";
import { next } from "#src/core/machine.js";
import { recoveryStep } from "#src/core/recovery.js";
import { verdictOf } from "#src/core/result.js";
import { definedBy } from "#src/core/rewrite.js";
import { type Begun, NEW, type State } from "#src/core/state.js";
import { playRun, startOf } from "../support/driver-handlers.js";
import { aborted, fold, folded } from "../support/given.js";
import { foretell, type Role } from "../support/oracle-handlers.js";
import { COMPOSITIONS, runScripts, scriptsOf } from "../support/oracle-handlers-scripts.js";
import { schedules } from "../support/oracle-scripts.js";

const RUNS = { numRuns: 2_000 };

describe.each(COMPOSITIONS)("a %s", (composition) => {
  it("should come to what a plain loop foretells, whatever the races", () => {
    fc.assert(
      fc.property(scriptsOf(composition), schedules, (script, schedule) => {
        expect(playRun(script, schedule).told).toStrictEqual(foretell(script));
      }),
      { numRuns: 3_000 },
    );
  });
});

describe("settlements of a notification", () => {
  it("should commute: any order of them folds to the same state and the same end", () => {
    fc.assert(
      fc.property(scriptsOf("notify"), fc.infiniteStream(fc.nat()), (script, keys) => {
        const { log } = playRun({ ...script, cancelAtMs: null });
        const calls = log.filter(({ type }) => type === "started" || type === "subscriber-invoked");
        const settled = log.filter(
          (event): event is Settlement => event.type === "outcome" || event.type === "timeout",
        );
        const shuffled = settled
          .map((event) => ({ event, key: keys.next().value }))
          .toSorted((a, b) => a.key - b.key)
          .map(({ event }) => event);
        const end = log.slice(-1);
        expect(fold([...calls, ...shuffled, ...end])).toStrictEqual(fold([...calls, ...settled, ...end]));
      }),
      RUNS,
    );
  });
});

describe("every prefix of every run", () => {
  it("should be recovered to an end that lets nothing pass, and only once", () => {
    fc.assert(
      fc.property(runScripts, schedules, (script, schedule) => {
        for (const state of prefixes(playRun(script, schedule).log)) {
          const appended: DispatchEvent[] = [];
          let closed: Begun = state;
          for (let event = recoveryStep(closed); event !== null; event = recoveryStep(closed)) {
            expect(appended.push(event)).toBe(1);
            closed = folded([event], closed);
          }
          expect(next(closed)).toStrictEqual({ kind: "settled" });
          expect(appended.some((event) => event.type === "decided" && event.decision === "allow")).toBe(false);
          expect(verdictOf(closed).allowed).toBe(state.kind === "decided" && verdictOf(state).allowed);
        }
      }),
      RUNS,
    );
  });

  it("should fold to the same in one part and in two, from frozen events and states", () => {
    fc.assert(
      fc.property(runScripts, schedules, fc.nat(), (script, schedule, at) => {
        const log = deepFreeze(structuredClone(playRun(script, schedule).log));
        const cut = at % (log.length + 1);
        const head = fold(log.slice(0, cut));
        if (head.kind === "violation") throw new Error("a prefix of a legal log is legal");
        expect(fold(log.slice(cut), deepFreeze(head))).toStrictEqual(fold(log));
      }),
      RUNS,
    );
  });

  it("should end at once with its caller, and take in nothing any more", () => {
    fc.assert(
      fc.property(runScripts, schedules, (script, schedule) => {
        const { log } = playRun(script, schedule);
        const answers = log.filter(({ type }) => type === "outcome" || type === "timeout");
        for (const state of prefixes(log)) {
          if (state.kind !== "open") continue;
          const running = state.slots.flatMap((slot, index) => (slot === "in-flight" ? [index] : []));
          const ended = folded([aborted("cancelled", ...running)], state);
          expect(next(ended)).toStrictEqual({ kind: "settled" });
          expect(verdictOf(ended)).toMatchObject({ status: "aborted", allowed: false, payload: null });
          for (const late of answers) expect(fold([late], ended).kind).toBe("violation");
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("failures and timeouts of handlers", () => {
  /** Nobody's silence and failure may be told from a handler that is not there. */
  it("should change nothing of what the others come to, unless failures block", () => {
    fc.assert(
      fc.property(runScripts, schedules, (script, schedule) => {
        const open = { ...script, blocks: false, cancelAtMs: null };
        const failed = new Set(foretell(open).failures.map(({ id }) => id));
        const without = {
          ...open,
          roles: open.roles.map((role) => (failed.has(role.id) ? { ...role, skipped: true } : role)),
        };
        expect(essence(playRun(open, schedule))).toStrictEqual(essence(playRun(without, schedule)));
      }),
      RUNS,
    );
  });

  it("should suppress a delivery where they block: the first of them that comes before any cancellation", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("rewrite" as const, "waterfall" as const).chain(scriptsOf),
        schedules,
        (script, schedule) => {
          const blocking = { ...script, blocks: true, cancelAtMs: null };
          const { told, verdict } = playRun(blocking, schedule);
          const { failures } = playRun({ ...blocking, blocks: false }, schedule).told;
          expect(told.end === "blocked").toBe(failures.length > 0);
          if (failures.length > 0)
            expect(verdict).toMatchObject({ decision: "deny", decidedBy: failures[0]!.id, allowed: false });
        },
      ),
      RUNS,
    );
  });

  it("should never turn what was kept back into what passes", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("rewrite" as const, "waterfall" as const).chain(scriptsOf),
        fc.nat(),
        (script, at) => {
          const open = { ...script, cancelAtMs: null };
          const canceller = playRun(open).told;
          fc.pre(canceller.end === "cancelled" && open.roles.length > 0);
          const spoiled = open.roles.map((role, place) =>
            place === at % open.roles.length && role.id !== canceller.by ? { ...role, conduct: THROWS } : role,
          );
          const { end } = playRun({ ...open, roles: spoiled }).told;
          expect(["cancelled", "blocked"]).toContain(end);
        },
      ),
      { numRuns: 1_000 },
    );
  });
});

describe("latencies within the timeouts", () => {
  it("should change nothing of what a run comes to", () => {
    fc.assert(
      fc.property(runScripts, fc.infiniteStream(fc.nat()), schedules, (script, latencies, schedule) => {
        const patient = { ...script, cancelAtMs: null };
        const roles = patient.roles.map((role) => hastened(role, latencies.next().value));
        expect(essence(playRun({ ...patient, roles }, schedule))).toStrictEqual(essence(playRun(patient)));
      }),
      RUNS,
    );
  });
});

describe("what a rewrite defines", () => {
  it("should be merged field by field: the content of whoever defined it last, and the same of the others", () => {
    fc.assert(
      fc.property(scriptsOf("rewrite"), (script) => {
        const patient = { ...script, cancelAtMs: null };
        const { state, told } = playRun(patient);
        for (const field of ["content", "cancelReason", "metadata"] as const) {
          const by = definedBy(state, field);
          const heard = told.calls.map(({ id }) => patient.roles.find((role) => role.id === id)!);
          const last = heard.findLast(({ id, conduct }) => {
            const failed = told.failures.some((failure) => failure.id === id);
            return (
              !failed && conduct.does === "answer" && conduct.means.says === "define" && field in conduct.means.fields
            );
          });
          expect(by === null ? undefined : patient.roles[by]!.id).toBe(last?.id);
        }
      }),
      RUNS,
    );
  });
});

describe("a waterfall", () => {
  it("should show each handler the latest payload, made by the last before it that made one", () => {
    fc.assert(
      fc.property(scriptsOf("waterfall"), (script) => {
        const { log, state } = playRun({ ...script, cancelAtMs: null });
        let latest = startOf(script).input.digest;
        for (const event of log) {
          if (event.type === "subscriber-invoked") expect(event.saw).toBe(latest);
          if (event.type === "outcome" && event.class === "rewritten") latest = event.payload!.digest;
        }
        expect(state.payload).toBe(latest);
      }),
      RUNS,
    );
  });
});

const THROWS = { does: "throw", afterMs: 0 } as const;

/** The same conduct, after some other time within the timeout; whoever comes too late stays too late. */
function hastened(role: Role, anyMs: number): Role {
  const { conduct, timeoutMs } = role;
  const limit = timeoutMs ?? 20;
  if (conduct.does === "hang" || (timeoutMs !== null && conduct.afterMs >= timeoutMs)) return role;
  return { ...role, conduct: { ...conduct, afterMs: anyMs % limit } };
}

function essence({ verdict, told }: ReturnType<typeof playRun>) {
  const { decision, decidedBy, payload, reason } = verdict;
  const { end, by, result, fields } = told;
  return { decision, decidedBy, payload, reason: told.end === "blocked" ? null : reason, end, by, result, fields };
}

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

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(deepFreeze);
  }
  return value;
}
