/** The two tables of the specification, row by row: hook point × mode × what the subscriber did. */
import { describe, it } from "vitest";
import type { Outcome, OutcomeClass, Settlement } from "#src/core/events.js";
import { HOOK_POINTS, type HookPoint } from "#src/core/points.js";
import { failureOf } from "#src/core/state.js";
import {
  ack,
  allow,
  brokenBy,
  chain,
  type Dispatch,
  decided,
  deny,
  digest,
  failed,
  given,
  invalid,
  invoke,
  invoked,
  lost,
  policy,
  ref,
  started,
  timeout,
  transformed,
  wait,
} from "../support/given.js";

type Row = {
  readonly mode: "policy" | "observe" | "transform" | "veto";
  readonly did: string;
  readonly settlement: Settlement;
  /** `on`: the chain goes on, and everybody later sees this payload. */
  readonly effect: { readonly on: string } | "deny" | "abort";
};

const ROWS: readonly Row[] = [
  { mode: "observe", did: "acknowledges", settlement: ack(0), effect: { on: "input" } },
  { mode: "observe", did: "throws", settlement: failed(0, "UNKNOWN"), effect: { on: "input" } },
  { mode: "observe", did: "crashes", settlement: failed(0, "PROCESS_CRASHED"), effect: { on: "input" } },
  { mode: "observe", did: "answers badly", settlement: invalid(0), effect: { on: "input" } },
  { mode: "observe", did: "runs out of time", settlement: timeout(0), effect: { on: "input" } },
  { mode: "transform", did: "rewrites", settlement: transformed(0, "p1"), effect: { on: "p1" } },
  { mode: "transform", did: "leaves all as it is", settlement: transformed(0, "input"), effect: { on: "input" } },
  { mode: "transform", did: "throws", settlement: failed(0, "TRANSFORM_FAILED"), effect: "abort" },
  { mode: "transform", did: "crashes", settlement: failed(0, "PROCESS_CRASHED"), effect: "abort" },
  { mode: "transform", did: "answers badly", settlement: invalid(0), effect: "abort" },
  { mode: "transform", did: "runs out of time", settlement: timeout(0), effect: "abort" },
  { mode: "veto", did: "allows", settlement: allow(0), effect: { on: "input" } },
  { mode: "veto", did: "denies", settlement: deny(0, "no"), effect: "deny" },
  { mode: "veto", did: "throws", settlement: failed(0, "VETO_FAILED"), effect: "deny" },
  { mode: "veto", did: "crashes", settlement: failed(0, "PROCESS_CRASHED"), effect: "deny" },
  { mode: "veto", did: "answers badly", settlement: invalid(0), effect: "deny" },
  { mode: "veto", did: "runs out of time", settlement: timeout(0), effect: "deny" },
  { mode: "policy", did: "allows an item", settlement: policy("deny", "ask", "allow"), effect: { on: "stamped" } },
  { mode: "policy", did: "has no item to decide", settlement: policy(), effect: { on: "stamped" } },
  { mode: "policy", did: "denies every item", settlement: policy("deny", "deny"), effect: "deny" },
  { mode: "policy", did: "throws", settlement: failed(0, "VETO_FAILED"), effect: "deny" },
  { mode: "policy", did: "runs out of time", settlement: timeout(0), effect: "deny" },
];

/** Does the first table give this mode a place at this point? */
function hasPlace(point: HookPoint, mode: Row["mode"]): boolean {
  switch (mode) {
    case "observe":
    case "transform":
      return true;
    case "veto":
      return HOOK_POINTS[point].vetoBearing;
    case "policy":
      return point === "plan-ready";
  }
}

const POINTS = Object.keys(HOOK_POINTS) as HookPoint[];

/** What the row's subscriber and an observer after it come to. */
function run({ mode, settlement, effect }: Row, point: HookPoint): Dispatch {
  const subject = chain(`${mode}:${mode === "policy" ? "kernel:policy" : "subject"}`, "observe:after");
  const run = mode === "observe" ? [0, 1] : [0];
  const dispatch = given(started(subject, { point, vetoBearing: HOOK_POINTS[point].vetoBearing }))
    .asks(invoke(run))
    .when(invoked(0))
    .asks(mode === "observe" ? invoke([1]) : wait(0))
    .when(settlement);
  if (effect === "deny") return dispatch.ends(decided("deny", subject[0]!.id));
  if (effect === "abort") return dispatch.ends(brokenBy(0, failureOf(settlement)!));
  return dispatch
    .asks(invoke([1], effect.on))
    .when(invoked(1, effect.on))
    .asks(wait(1))
    .when(ack(1))
    .ends(decided("allow", "kernel:default", effect.on));
}

describe.each(POINTS)("at %s", (point) => {
  it.each(ROWS.filter(({ mode }) => hasPlace(point, mode)))(
    "should come to what the table says when $mode $did",
    (row) => {
      const { mode, settlement, effect } = row;
      const by = mode === "policy" ? "kernel:policy" : "subject";
      const error = failureOf(settlement);
      const dispatch = run(row, point).comesTo({
        hookErrors: error === null || mode === "policy" ? [] : [{ subscriber: by, mode, ...error }],
      });
      if (effect === "deny") {
        dispatch.comesTo({
          decision: "deny",
          decidedBy: by,
          allowed: false,
          payload: digest("input"),
          abortCause: null,
        });
      } else if (effect === "abort") {
        dispatch.comesTo({ decision: null, decidedBy: null, allowed: false, payload: null, abortCause: "hook_error" });
      } else {
        dispatch.comesTo({
          decision: "allow",
          decidedBy: "kernel:default",
          allowed: dispatch.verdict().planDecisions.every(({ decision }) => decision === "allow"),
          payload: digest(effect.on),
        });
      }
    },
  );
});

describe("what a mode can answer", () => {
  const ANSWERS: Record<OutcomeClass, Outcome> = {
    ack: ack(0),
    transformed: transformed(0, "p1"),
    allow: allow(0),
    deny: deny(0),
    policy: policy("allow"),
    claimed: { type: "outcome", index: 0, class: "claimed", payload: ref("p1") },
    declined: { type: "outcome", index: 0, class: "declined" },
    rewritten: { type: "outcome", index: 0, class: "rewritten" },
    cancelled: { type: "outcome", index: 0, class: "cancelled" },
    failed: failed(0),
    invalid: invalid(0),
    lost: lost(0),
  };
  const TAKEN: Record<Row["mode"], readonly OutcomeClass[]> = {
    policy: ["policy", "failed"],
    observe: ["ack", "failed", "invalid"],
    transform: ["transformed", "failed", "invalid"],
    veto: ["allow", "deny", "failed", "invalid"],
  };
  const CASES = Object.entries(TAKEN).flatMap(([mode, taken]) =>
    Object.values(ANSWERS).map((answer) => ({
      mode,
      answer,
      class: answer.class,
      legal: taken.includes(answer.class),
    })),
  );

  it.each(CASES)("should be so that $class of $mode is legal: $legal", ({ mode, answer, legal }) => {
    const dispatch = given(started(chain(mode)), invoked(0));
    if (legal) dispatch.when(answer);
    else dispatch.refuses(answer, "a settlement of 0", `outcome ${answer.class} of 0`);
  });

  it("should be the same in the shadow", () => {
    for (const mode of ["observe", "transform", "veto"] as const) {
      for (const answer of Object.values(ANSWERS)) {
        const dispatch = given(started(chain(`${mode}~shadow`)), invoked(0));
        if (TAKEN[mode].includes(answer.class)) dispatch.when(answer);
        else dispatch.refuses(answer, "a settlement of 0", `outcome ${answer.class} of 0`);
      }
    }
  });
});
