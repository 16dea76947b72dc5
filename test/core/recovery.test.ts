import { describe, expect, it } from "vitest";
import type { DispatchEvent } from "#src/core/events.js";
import { next } from "#src/core/machine.js";
import { recoveryStep } from "#src/core/recovery.js";
import { verdictOf } from "#src/core/result.js";
import { NEW } from "#src/core/state.js";
import {
  aborted,
  ack,
  allow,
  brokenBy,
  chain,
  decided,
  deny,
  failed,
  folded,
  given,
  hookError,
  invoked,
  lost,
  policy,
  started,
  timeout,
  transformed,
} from "../support/given.js";

/** What recovery appends to a log; each step is legal, and the last leaves nothing to do. */
function recovered(log: readonly DispatchEvent[]): readonly DispatchEvent[] {
  let dispatch = given(...log);
  const appended: DispatchEvent[] = [];
  for (let event = recoveryStep(dispatch.state); event !== null; event = recoveryStep(dispatch.state)) {
    dispatch = dispatch.when(event);
    appended.push(event);
  }
  return appended;
}

/** A log, and after each of its events what recovery would append there. */
type Story = readonly (readonly [DispatchEvent, readonly DispatchEvent[]])[];

const CRASH = hookError("PROCESS_CRASHED");

const STORIES: Record<string, Story> = {
  "a chain that allows": [
    [started(chain("policy", "observe", "transform", "veto"), { point: "plan-ready" }), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [policy("allow"), [aborted("recovered")]],
    [invoked(1, "stamped"), [aborted("recovered", 1)]],
    [ack(1), [aborted("recovered")]],
    [invoked(2, "stamped"), [aborted("recovered", 2)]],
    [transformed(2, "p1"), [aborted("recovered")]],
    [invoked(3, "p1"), [aborted("recovered", 3)]],
    [allow(3), [aborted("recovered")]],
    [decided("allow", "kernel:default", "p1"), []],
    [aborted("unconfirmed"), []],
  ],
  "a chain that denies": [
    [started(chain("observe", "observe", "veto", "observe")), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [invoked(1), [aborted("recovered", 0, 1)]],
    [ack(1), [aborted("recovered", 0)]],
    [timeout(0), [aborted("recovered")]],
    [invoked(2), [aborted("recovered", 2)]],
    [deny(2), [decided("deny", "veto2")]],
    [decided("deny", "veto2"), []],
  ],
  "a chain that breaks over a detached observer": [
    [started(chain("observe", "transform"), { observe: "detached" }), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [invoked(1), [aborted("recovered", 0, 1)]],
    [failed(1, "PROCESS_CRASHED"), [brokenBy(1, CRASH, 0), lost(0)]],
    [brokenBy(1, CRASH, 0), [lost(0)]],
    [ack(0), []],
  ],
  "a decision with late observers": [
    [started(chain("observe", "observe", "veto"), { observe: "detached" }), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [invoked(1), [aborted("recovered", 0, 1)]],
    [invoked(2), [aborted("recovered", 0, 1, 2)]],
    [allow(2), [aborted("recovered", 0, 1)]],
    [decided("allow", "kernel:default"), [lost(0), lost(1)]],
    [aborted("unconfirmed", 0, 1), [lost(0), lost(1)]],
    [ack(1), [lost(0)]],
    [failed(0), []],
  ],
  "a run that has run out of the chain budget": [
    [started(chain("observe", "observe", "veto"), { budgetMs: 100 }), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [invoked(1), [aborted("recovered", 0, 1)]],
    [timeout(1, 100), [aborted("recovered", 0)]],
    [timeout(0, 100), [decided("deny", "observe")]],
    [decided("deny", "observe"), []],
  ],
  "a cancellation": [
    [started(chain("observe", "veto"), { observe: "detached" }), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [invoked(1), [aborted("recovered", 0, 1)]],
    [aborted("cancelled", 0, 1), []],
    [ack(0), []],
  ],
  "a store that failed": [
    [started(chain("veto")), [aborted("recovered")]],
    [invoked(0), [aborted("recovered", 0)]],
    [aborted("store_unavailable", 0), []],
  ],
};

const CASES = Object.entries(STORIES).flatMap(([name, story]) =>
  story.map(([last, appended], at) => ({
    name,
    at,
    last: last.type,
    log: story.slice(0, at + 1).map(([event]) => event),
    appended,
  })),
);

describe("recovery", () => {
  it.each(CASES)("should close $name that ends with $last at revision $at", ({ log, appended }) => {
    expect(recovered(log)).toStrictEqual(appended);
    expect(next(folded([...log, ...appended]))).toStrictEqual({ kind: "settled" });
  });

  it.each(CASES)("should change nothing the second time: $name at revision $at", ({ log, appended }) => {
    expect(recovered([...log, ...appended])).toStrictEqual([]);
  });

  it.each(CASES)("should allow nothing that no decided says: $name at revision $at", ({ log, appended }) => {
    const before = verdictOf(folded(log));
    expect(verdictOf(folded([...log, ...appended])).allowed).toBe(before.allowed);
    expect(appended).not.toContainEqual(expect.objectContaining({ decision: "allow" }));
  });

  it("should have nothing to close where nothing has begun", () => {
    expect(recoveryStep(NEW)).toBeNull();
  });
});
