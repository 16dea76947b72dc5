import fc from "fast-check";
import type { DispatchEvent } from "#src/core/events.js";
import { recoveryStep } from "#src/core/recovery.js";
import { type Begun, inFlight } from "#src/core/state.js";
import { play } from "../support/driver.js";
import { playRun } from "../support/driver-handlers.js";
import { aborted, folded } from "../support/given.js";
import { runScripts } from "../support/oracle-handlers-scripts.js";
import { schedules, scripts } from "../support/oracle-scripts.js";

/** What happened to the record of a dispatch, besides the dispatch. `at` is taken modulo the places where it can happen. */
type Fate =
  | { readonly fate: "recorded to the end" }
  | { readonly fate: "cut off and recovered"; readonly at: number }
  | { readonly fate: "cut off when concluded, and recovered"; readonly at: number }
  | { readonly fate: "unconfirmed"; readonly at: number }
  | { readonly fate: "store lost"; readonly at: number };

const fates: fc.Arbitrary<Fate> = fc.noBias(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant({ fate: "recorded to the end" } as const) },
    ...(["cut off and recovered", "cut off when concluded, and recovered", "unconfirmed", "store lost"] as const).map(
      (fate) => ({
        weight: 1,
        arbitrary: fc.record({ fate: fc.constant(fate), at: fc.nat() }),
      }),
    ),
  ),
);

/** Complete logs of chains, of every kind: nothing is left to do at their end. */
export const logs: fc.Arbitrary<readonly DispatchEvent[]> = fc
  .tuple(scripts(), schedules, fc.constantFrom("unheard" as const, "recorded" as const), fates)
  .map(([script, schedule, late, fate]) => afflicted(play(script, schedule, late).log, fate));

/** Of runs of handlers. */
export const runLogs: fc.Arbitrary<readonly DispatchEvent[]> = fc
  .tuple(runScripts, schedules, fates)
  .map(([script, schedule, fate]) => afflicted(playRun(script, schedule).log, fate));

export const allLogs: fc.Arbitrary<readonly DispatchEvent[]> = fc.oneof(
  { weight: 2, arbitrary: logs },
  { weight: 1, arbitrary: runLogs },
);

function afflicted(log: readonly DispatchEvent[], fate: Fate): readonly DispatchEvent[] {
  const conclusion = log.findIndex(({ type }) => type === "decided" || type === "aborted");
  switch (fate.fate) {
    case "recorded to the end":
      return log;
    case "cut off and recovered":
      return recovered(log.slice(0, 1 + (fate.at % log.length)));
    case "cut off when concluded, and recovered":
      return recovered(log.slice(0, conclusion + 1 + (fate.at % (log.length - conclusion))));
    case "unconfirmed": {
      if (log[conclusion]?.type !== "decided") return log;
      const cut = conclusion + 1 + (fate.at % (log.length - conclusion));
      const head = log.slice(0, cut);
      return [...head, aborted("unconfirmed", ...inFlight(folded(head))), ...log.slice(cut)];
    }
    case "store lost": {
      const head = log.slice(0, 1 + (fate.at % conclusion));
      return [...head, aborted("store_unavailable", ...inFlight(folded(head)))];
    }
  }
}

function recovered(head: readonly DispatchEvent[]): readonly DispatchEvent[] {
  const log = [...head];
  let state: Begun = folded(head);
  for (let event = recoveryStep(state); event !== null; event = recoveryStep(state)) {
    log.push(event);
    state = folded([event], state);
  }
  return log;
}
