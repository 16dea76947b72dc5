/** A delivery that handlers rewrite, each from the original, or cancel. */
import { describe, expect, it } from "vitest";
import type { Outcome } from "#src/core/events.js";
import { definedBy } from "#src/core/rewrite.js";
import {
  aborted,
  ack,
  allow,
  cancelled,
  claimed,
  type Dispatch,
  decided,
  declined,
  defined,
  digest,
  failed,
  given,
  handlers,
  invalid,
  invoke,
  invoked,
  lost,
  ref,
  replaced,
  SETTLED,
  timeout,
  timeoutError,
  transformed,
  wait,
} from "../support/given.js";

const BLOCKS = { flags: ["blocks_on_failure"] };

/** Who defined content, cancel reason and metadata last. */
function definers({ state }: Dispatch): readonly (number | null)[] {
  if (state.kind === "new") throw new Error("nothing has happened yet");
  const begun = state;
  return (["content", "cancelReason", "metadata"] as const).map((field) => definedBy(begun, field));
}

describe("a rewrite", () => {
  it("should show each handler the original, whatever the ones before it have made of it", () => {
    given(handlers("rewrite", ["a", "b", "c"]))
      .asks(invoke([0]))
      .when(invoked(0))
      .asks(wait(0))
      .when(defined(0, { content: "one" }))
      .asks(invoke([1]))
      .refuses(invoked(1, "one"), "subscriber-invoked 1 seeing sha256:input", "subscriber-invoked 1 seeing sha256:one")
      .when(invoked(1), declined(1))
      .asks(invoke([2]))
      .when(invoked(2), defined(2, { content: "two" }))
      .ends(decided("allow", "kernel:default", "two"))
      .comesTo({ allowed: true, payload: digest("two") });
  });

  it("should go on with the input where nobody defines content", () => {
    given(handlers("rewrite", ["a", "b"]), invoked(0), defined(0, { metadata: "m" }), invoked(1), declined(1))
      .ends(decided("allow", "kernel:default"))
      .comesTo({ payload: digest("input") });
  });

  it("should merge field by field, the last that defines one winning, metadata whole", () => {
    const run = given(
      handlers("rewrite", ["a", "b", "c", "d"]),
      invoked(0),
      defined(0, { content: "c0", cancelReason: "r0", metadata: "m0" }),
      invoked(1),
      defined(1, { metadata: "m1" }),
      invoked(2),
      defined(2, { content: "c2" }),
      invoked(3),
      declined(3),
    );
    expect(definers(run)).toEqual([2, 0, 1]);
    run.ends(decided("allow", "kernel:default", "c2"));
  });

  it("should take the empty text for a rewrite like any other", () => {
    const empty = { ...ref("empty"), size: 0 };
    given(handlers("rewrite", ["a"]), invoked(0), {
      type: "outcome",
      index: 0,
      class: "rewritten",
      set: { content: empty },
    }).ends(decided("allow", "kernel:default", "empty"));
  });

  it("should end with the first that cancels; nobody after it is called", () => {
    const run = given(
      handlers("rewrite", ["a", "b", "c"]),
      invoked(0),
      defined(0, { content: "c0", metadata: "m0" }),
      invoked(1),
      cancelled(1, { cancelReason: "spam" }),
    ).refuses(invoked(2), "decided deny by b on sha256:c0", "subscriber-invoked 2 seeing sha256:input");
    expect(definers(run)).toEqual([0, 1, 0]);
    run.ends(decided("deny", "b", "c0")).comesTo({ decision: "deny", decidedBy: "b", allowed: false });
  });

  it("should keep what comes with a cancellation, and never go on with it", () => {
    const run = given(
      handlers("rewrite", ["a"]),
      invoked(0),
      cancelled(0, { content: "c0", cancelReason: "r0", metadata: "m0" }),
    );
    expect(definers(run)).toEqual([0, 0, 0]);
    run.ends(decided("deny", "a", "input"));
  });

  it("should take a cancellation without a word more", () => {
    given(handlers("rewrite", ["a"]), invoked(0), cancelled(0))
      .ends(decided("deny", "a"))
      .comesTo({ reason: null });
  });

  it("should pass by who fails: it has defined nothing", () => {
    const run = given(
      handlers("rewrite", ["a", "b@20", "c"]),
      invoked(0),
      failed(0),
      invoked(1),
      timeout(1, 20),
      invoked(2),
      defined(2, { content: "c2" }),
    );
    expect(definers(run)).toEqual([2, null, null]);
    run.ends(decided("allow", "kernel:default", "c2")).comesTo({
      hookErrors: [
        { subscriber: "a", mode: "handler", category: "UNKNOWN", message: "it broke" },
        { subscriber: "b", mode: "handler", ...timeoutError(20) },
      ],
    });
  });

  it.each([
    ["failed", failed(1), "UNKNOWN: it broke"],
    ["hung", timeout(1, 20), "TIMEOUT: no answer within 20 ms"],
  ])("should be blocked by a handler that %s where failures block", (_, event, reason) => {
    given(handlers("rewrite", ["a", "b@20", "c"], BLOCKS), invoked(0), defined(0, { content: "c0" }), invoked(1), event)
      .refuses(invoked(2), "decided deny by b on sha256:c0", "subscriber-invoked 2 seeing sha256:input")
      .ends(decided("deny", "b", "c0"))
      .comesTo({ decision: "deny", decidedBy: "b", allowed: false, reason });
  });

  it("should pass where failures block and nobody fails", () => {
    given(handlers("rewrite", ["a", "b~skip"], BLOCKS), invoked(0), defined(0, { content: "c0" })).ends(
      decided("allow", "kernel:default", "c0"),
    );
  });

  it("should end with its caller's signal, and take no answer any more", () => {
    const run = given(
      handlers("rewrite", ["a", "b"]),
      invoked(0),
      defined(0, { content: "c0" }),
      invoked(1),
      aborted("cancelled", 1),
    )
      .asks(SETTLED)
      .refuses(defined(1, { content: "late" }), "no further event", "outcome rewritten of 1")
      .refuses(cancelled(1), "no further event", "outcome cancelled of 1")
      .comesTo({ status: "aborted", payload: null });
    expect(definers(run)).toEqual([0, null, null]);
  });

  const STRANGE: readonly Outcome[] = [
    ack(0),
    allow(0),
    transformed(0, "p1"),
    claimed(0, "p1"),
    invalid(0),
    lost(0),
    replaced(0, "p1"),
    { type: "outcome", index: 0, class: "rewritten" },
    defined(0, {}),
    { type: "outcome", index: 0, class: "rewritten", payload: ref("p1"), set: { content: ref("p1") } },
    cancelled(0, {}),
    { type: "outcome", index: 0, class: "cancelled", reason: "a text" },
    { type: "outcome", index: 0, class: "cancelled", payload: ref("p1") },
  ];
  it.each(STRANGE)("should know no such answer: %j", (answer) => {
    given(handlers("rewrite", ["a"]), invoked(0)).refuses(answer, "a settlement of 0", `outcome ${answer.class} of 0`);
  });
});
