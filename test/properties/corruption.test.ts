/**
 * One event of a complete, legal log is lost, doubled, exchanged with the next, or altered. The machine refuses all of it but
 * what is listed here, and what is listed never makes up a decision. (The digest chain of the ledger refuses that as well.)
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DispatchEvent, Settlement, Started } from "#src/core/events.js";
import { verdictOf } from "#src/core/result.js";
import { digest, fold, hookError, ref } from "../support/given.js";
import { logs } from "./logs.js";

/** `refusedAt`: the revision of the violation; null: legal all the same; undefined: refused, no matter where. */
type Corruption = {
  readonly what: string;
  readonly log: readonly DispatchEvent[];
  readonly refusedAt: number | null | undefined;
};

const RUNS = { numRuns: 1_000 };

/** The mutations of every event of a log; fails with those on which the machine thinks otherwise. */
function expectFrom(corruptions: (log: readonly DispatchEvent[]) => readonly Corruption[]): void {
  fc.assert(
    fc.property(logs, (log) => {
      expect(corruptions(log).filter((corruption) => !isAsForetold(corruption, log))).toStrictEqual([]);
    }),
    RUNS,
  );
}

function isAsForetold({ log, refusedAt }: Corruption, original: readonly DispatchEvent[]): boolean {
  const state = fold(log);
  if (state.kind === "violation") return refusedAt === undefined || state.revision === refusedAt;
  if (refusedAt !== null) return false;
  if (state.kind === "new") return true;
  const { status, decision, decidedBy, payload } = verdictOf(state);
  return status !== "decided" || original.some((event) => isDecided(event, { decision, decidedBy, payload }));
}

function isDecided(event: DispatchEvent, told: { decision: unknown; decidedBy: unknown; payload: unknown }): boolean {
  return (
    event.type === "decided" &&
    event.decision === told.decision &&
    event.decidedBy === told.decidedBy &&
    event.payload === told.payload
  );
}

/** What the listing below needs to know of a log. */
class Log {
  readonly events: readonly DispatchEvent[];
  readonly started: Started;
  /** Revision of the first `decided` or `aborted`. */
  readonly conclusion: number;

  constructor(events: readonly DispatchEvent[]) {
    this.events = events;
    this.started = events[0] as Started;
    this.conclusion = events.findIndex(({ type }) => type === "decided" || type === "aborted");
  }

  passive(index: number): boolean {
    const { mode, shadow } = this.started.subscribers[index]!;
    return mode === "observe" || shadow === true;
  }

  detached(index: number): boolean {
    return this.started.observe === "detached" && this.passive(index);
  }

  ranOutOfBudget(event: Settlement): boolean {
    return event.type === "timeout" && event.budgetMs < this.started.subscribers[event.index]!.timeoutMs!;
  }

  after(revision: number): readonly DispatchEvent[] {
    return this.events.slice(revision + 1);
  }

  with(revision: number, event: DispatchEvent): readonly DispatchEvent[] {
    return this.events.with(revision, event);
  }

  /** The next event that is no settlement. */
  nextStep(revision: number): number {
    return revision + 1 + this.after(revision).findIndex((event) => !isSettlement(event));
  }
}

function isSettlement(event: DispatchEvent): event is Settlement {
  return event.type === "outcome" || event.type === "timeout";
}

function isLost(event: DispatchEvent): boolean {
  return event.type === "outcome" && event.class === "lost";
}

function isAbort(event: DispatchEvent): boolean {
  return event.type === "aborted";
}

describe("one event lost", () => {
  it("should be refused, unless what is left is an unfinished log, or one that still waits for a late observer", () => {
    expectFrom((events) => {
      const log = new Log(events);
      return events.map((event, at) => ({
        what: `lost ${at}: ${event.type}`,
        log: events.toSpliced(at, 1),
        refusedAt: mayBeLost(log, at) ? null : undefined,
      }));
    });
  });

  function mayBeLost(log: Log, at: number): boolean {
    const event = log.events[at]!;
    const later = log.after(at);
    // A tail cut off: the head of the stream, kept apart by the store, tells.
    if (later.length === 0) return true;
    switch (event.type) {
      case "started":
      case "subscriber-invoked":
        return false;
      case "outcome":
      case "timeout":
        // Nobody waited for it, and no abort names who was in flight: it is still waited for.
        return (at > log.conclusion || log.detached(event.index)) && !later.some(isAbort);
      case "decided":
        return !later.some((after) => isAbort(after) || isLost(after));
      case "aborted":
        // An unconfirmed decision without its abort reads as confirmed: only the digest chain tells.
        return event.cause === "unconfirmed" || !later.some(isLost);
    }
  }
});

describe("one event doubled", () => {
  it("should be refused right there", () => {
    expectFrom((events) =>
      events.map((event, at) => ({
        what: `doubled ${at}: ${event.type}`,
        log: events.toSpliced(at, 0, event),
        refusedAt: at + 1,
      })),
    );
  });
});

describe("two neighbours exchanged", () => {
  it("should be refused, unless they could as well have come so", () => {
    expectFrom((events) => {
      const log = new Log(events);
      return events.slice(1).map((event, at) => ({
        what: `exchanged ${at}: ${events[at]!.type} and ${event.type}`,
        log: events.with(at, event).with(at + 1, events[at]!),
        refusedAt: mayExchange(log, at) ? null : undefined,
      }));
    });
  });

  it("should fold to the same state when they are settlements", () => {
    fc.assert(
      fc.property(logs, (events) => {
        for (const [at, event] of events.slice(1).entries()) {
          const before = events[at]!;
          if (!isSettlement(before) || !isSettlement(event)) continue;
          expect(fold(events.with(at, event).with(at + 1, before))).toStrictEqual(fold(events));
        }
      }),
      RUNS,
    );
  });

  function mayExchange(log: Log, at: number): boolean {
    const one = log.events[at]!;
    const other = log.events[at + 1]!;
    if (isSettlement(one) && isSettlement(other)) return true;
    if (isSettlement(one) && other.type === "subscriber-invoked") {
      const sameRun = log.started.observe === "concurrent" && log.passive(one.index) && log.passive(other.index);
      return log.detached(one.index) || sameRun;
    }
    if (one.type === "subscriber-invoked" && isSettlement(other)) {
      return one.index !== other.index && !log.ranOutOfBudget(other);
    }
    // An abort names who was in flight, a decision does not.
    if (isSettlement(one) && other.type === "decided") return log.detached(one.index);
    if (one.type === "decided" && isSettlement(other)) return !isLost(other);
    return false;
  }
});

describe("one event altered", () => {
  it("should be refused at revision 0 when started names other rules", () => {
    expectFrom((events) => {
      const log = new Log(events);
      return Object.entries({
        composition: { composition: "another" },
        reducerVersion: { reducerVersion: 2 },
        flags: { flags: ["another"] },
        subscribers: { subscribers: [...log.started.subscribers, ...log.started.subscribers.slice(0, 1)] },
      } satisfies Record<string, Partial<Started>>).map(([what, told]) => ({
        what,
        log: log.with(0, { ...log.started, ...told }),
        refusedAt: what === "subscribers" && log.started.subscribers.length === 0 ? null : 0,
      }));
    });
  });

  it("should be refused where somebody saw another input, and pass where started only describes", () => {
    expectFrom((events) => {
      const log = new Log(events);
      const reader = events.findIndex(({ type }) => type === "subscriber-invoked" || type === "decided");
      const described = { dispatchId: "another", point: "another", configDigest: digest("another") };
      const producers = log.started.subscribers.map((subscriber) => ({ ...subscriber, provider: "another" }));
      return [
        {
          what: "another input",
          log: log.with(0, { ...log.started, input: ref("another") }),
          refusedAt: reader < 0 ? null : reader,
        },
        { what: "descriptions", log: log.with(0, { ...log.started, ...described }), refusedAt: null },
        { what: "producers", log: log.with(0, { ...log.started, subscribers: producers }), refusedAt: null },
      ];
    });
  });

  it("should be refused right there when another subscriber is invoked, or sees another payload", () => {
    expectFrom((events) =>
      events.flatMap((event, at) => {
        if (event.type !== "subscriber-invoked") return [];
        return [
          { ...event, saw: digest("another") },
          { ...event, index: event.index + 1 },
        ].map((altered) => ({
          what: `invoked ${at}`,
          log: events.with(at, altered),
          refusedAt: at,
        }));
      }),
    );
  });

  it("should be refused when a settlement is another subscriber's, unless a late one that nobody waits for", () => {
    expectFrom((events) => {
      const log = new Log(events);
      const { subscribers } = log.started;
      return events.flatMap((event, at) => {
        if (!isSettlement(event) || subscribers.length < 2) return [];
        const index = (event.index + 1) % subscribers.length;
        return {
          what: `settlement ${at} of ${index}`,
          log: log.with(at, { ...event, index }),
          refusedAt: mayBeAnothers(log, at, index) ? null : undefined,
        };
      });
    });
  });

  /** Only after an abort from outside may observers stay unsettled for good, so that one can pass for the other. */
  function mayBeAnothers(log: Log, at: number, index: number): boolean {
    const event = log.events[at]!;
    const named = log.events[log.conclusion]!;
    if (!isSettlement(event) || at < log.conclusion || named.type !== "aborted") return false;
    const unheard = named.inFlight?.includes(index) && !log.events.some((e) => isSettlement(e) && e.index === index);
    if (!unheard || !log.passive(index)) return false;
    const one = log.started.subscribers[event.index]!;
    const other = log.started.subscribers[index]!;
    if (event.type === "outcome")
      return one.mode === other.mode || event.class === "failed" || event.class === "invalid";
    const budgetMs = log.detached(index) ? null : log.started.budgetMs;
    if (budgetMs === null) return event.budgetMs === other.timeoutMs;
    return event.budgetMs <= other.timeoutMs! && event.budgetMs <= budgetMs;
  }

  it("should be refused at the next step when somebody with a say said something else, unless the caller cut in", () => {
    expectFrom((events) => {
      const log = new Log(events);
      return events.flatMap((event, at) => {
        if (!isSettlement(event) || log.passive(event.index)) return [];
        const step = log.nextStep(at);
        return otherwise(log, event).map(({ said, halts }) => ({
          what: `settlement ${at}: ${JSON.stringify(said)}`,
          log: log.with(at, said),
          refusedAt: isCutIn(events[step]!, halts) ? null : step,
        }));
      });
    });
  });

  /** Answers that this subscriber could have given, each of other consequence than its own. */
  function otherwise(log: Log, event: Settlement): readonly { said: DispatchEvent; halts: boolean }[] {
    const { index } = event;
    const answer = { type: "outcome", index } as const;
    const failed = { ...answer, class: "failed", error: hookError("PROCESS_CRASHED", "another") } as const;
    const proper = event.type === "outcome" && event.class !== "failed" && event.class !== "invalid";
    switch (log.started.subscribers[index]!.mode) {
      case "veto":
        return event.type === "outcome" && event.class === "allow"
          ? [
              { said: { ...answer, class: "deny" }, halts: true },
              { said: failed, halts: true },
            ]
          : [{ said: { ...answer, class: "allow" }, halts: false }];
      case "transform":
        return [
          { said: { ...answer, class: "transformed", payload: ref("another") }, halts: false },
          ...(proper || event.type === "timeout" ? [{ said: failed, halts: true }] : []),
        ];
      case "policy": {
        const items = [{ itemId: "i0", decision: "allow", decidedBy: "policy:another" }] as const;
        const passed = { ...answer, class: "policy", payload: ref("another"), items } as const;
        return [{ said: passed, halts: false }];
      }
      case "observe":
      case "handler":
        return [];
    }
  }

  /** An abort that does not depend on what was said; recovery's own does, if that ended the chain. */
  function isCutIn(step: DispatchEvent, halts: boolean): boolean {
    if (step.type !== "aborted") return false;
    return step.cause === "cancelled" || step.cause === "store_unavailable" || (step.cause === "recovered" && !halts);
  }

  it("should pass when it is what an observer said, and change no decision", () => {
    expectFrom((events) => {
      const log = new Log(events);
      return events.flatMap((event, at) => {
        if (!isSettlement(event) || !log.passive(event.index) || log.ranOutOfBudget(event)) return [];
        const error = hookError("UNKNOWN", "another");
        const failed: DispatchEvent = { type: "outcome", index: event.index, class: "failed", error };
        return { what: `observer ${at}`, log: log.with(at, failed), refusedAt: null };
      });
    });
  });

  it("should be refused right there when a call was given more time than there was", () => {
    expectFrom((events) =>
      events.flatMap((event, at) => {
        if (event.type !== "timeout") return [];
        const longer = new Log(events).started.subscribers[event.index]!.timeoutMs! + 1;
        return [longer, -1].map((budgetMs) => ({
          what: `timeout ${at} after ${budgetMs} ms`,
          log: events.with(at, { ...event, budgetMs }),
          refusedAt: at,
        }));
      }),
    );
  });

  it("should be refused right there when it is the decision", () => {
    expectFrom((events) =>
      events.flatMap((event, at) => {
        if (event.type !== "decided") return [];
        const decision = event.decision === "allow" ? ("deny" as const) : ("allow" as const);
        return [{ decision }, { decidedBy: "another" }, { payload: digest("another") }].map((told) => ({
          what: `decided ${at}: ${JSON.stringify(told)}`,
          log: events.with(at, { ...event, ...told }),
          refusedAt: at,
        }));
      }),
    );
  });

  it("should be refused right there when it is an abort, unless one cause from outside stands for the other", () => {
    expectFrom((events) =>
      events.flatMap((event, at) => {
        if (event.type !== "aborted") return [];
        const { inFlight = [] } = event;
        const outside = event.cause !== "hook_error" && event.cause !== "unconfirmed";
        const cases = [
          { told: { inFlight: [...inFlight, 99] }, legal: false },
          { told: { inFlight: inFlight.slice(1) }, legal: false },
          { told: { index: 99 }, legal: false },
          { told: { error: hookError("UNKNOWN", "another") }, legal: false },
          { told: { cause: "hook_error" as const }, legal: event.cause === "hook_error" },
          { told: { cause: "unconfirmed" as const }, legal: event.cause === "unconfirmed" },
          { told: { cause: "cancelled" as const }, legal: outside },
          { told: { cause: "store_unavailable" as const }, legal: outside },
        ];
        return cases.map(({ told, legal }) => ({
          what: `aborted ${at}: ${JSON.stringify(told)}`,
          log: events.with(at, { ...event, ...told }),
          refusedAt: legal ? null : at,
        }));
      }),
    );
  });
});
