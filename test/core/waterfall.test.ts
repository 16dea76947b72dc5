/** A payload that goes from handler to handler, or no further. */
import { describe, it } from "vitest";
import type { Outcome } from "#src/core/events.js";
import {
  aborted,
  ack,
  allow,
  cancelled,
  claimed,
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
  setOf,
  timeout,
  timeoutError,
  transformed,
  wait,
} from "../support/given.js";

const BLOCKS = { flags: ["blocks_on_failure"] };

describe("a waterfall", () => {
  it("should show each handler the latest payload", () => {
    given(handlers("waterfall", ["a", "b", "c", "d"]))
      .asks(invoke([0]))
      .when(invoked(0))
      .asks(wait(0))
      .when(replaced(0, "p0"))
      .asks(invoke([1], "p0"))
      .refuses(invoked(1), "subscriber-invoked 1 seeing sha256:p0", "subscriber-invoked 1 seeing sha256:input")
      .when(invoked(1, "p0"), declined(1))
      .asks(invoke([2], "p0"))
      .when(invoked(2, "p0"), replaced(2, "p2"))
      .asks(invoke([3], "p2"))
      .when(invoked(3, "p2"), declined(3))
      .ends(decided("allow", "kernel:default", "p2"))
      .comesTo({ allowed: true, payload: digest("p2") });
  });

  it("should go on with the input where nobody replaces it", () => {
    given(handlers("waterfall", ["a"]), invoked(0), declined(0)).ends(decided("allow", "kernel:default"));
    given(handlers("waterfall", ["a~skip"])).ends(decided("allow", "kernel:default"));
  });

  it("should end with the first that cancels, and tell its reason", () => {
    given(handlers("waterfall", ["a", "b", "c"]), invoked(0), replaced(0, "p0"), invoked(1, "p0"), {
      type: "outcome",
      index: 1,
      class: "cancelled",
      reason: "too long",
    })
      .refuses(invoked(2, "p0"), "decided deny by b on sha256:p0", "subscriber-invoked 2 seeing sha256:p0")
      .ends(decided("deny", "b", "p0"))
      .comesTo({ decision: "deny", decidedBy: "b", allowed: false, reason: "too long" });
  });

  it("should keep a payload that comes with a cancellation, and never go on with it", () => {
    given(handlers("waterfall", ["a"]), invoked(0), {
      type: "outcome",
      index: 0,
      class: "cancelled",
      payload: ref("p0"),
    }).ends(decided("deny", "a", "input"));
  });

  it("should pass by who fails: the next sees what that one saw", () => {
    given(
      handlers("waterfall", ["a", "b", "c@20", "d"]),
      invoked(0),
      replaced(0, "p0"),
      invoked(1, "p0"),
      failed(1),
      invoked(2, "p0"),
      timeout(2, 20),
    )
      .asks(invoke([3], "p0"))
      .when(invoked(3, "p0"), declined(3))
      .ends(decided("allow", "kernel:default", "p0"))
      .comesTo({
        hookErrors: [
          { subscriber: "b", mode: "handler", category: "UNKNOWN", message: "it broke" },
          { subscriber: "c", mode: "handler", ...timeoutError(20) },
        ],
      });
  });

  it.each([
    ["failed", failed(1), "UNKNOWN: it broke"],
    ["hung", timeout(1, 20), "TIMEOUT: no answer within 20 ms"],
  ])("should be blocked by a handler that %s where failures block", (_, event, reason) => {
    given(handlers("waterfall", ["a", "b@20", "c"], BLOCKS), invoked(0), replaced(0, "p0"), invoked(1, "p0"), event)
      .refuses(invoked(2, "p0"), "decided deny by b on sha256:p0", "subscriber-invoked 2 seeing sha256:p0")
      .ends(decided("deny", "b", "p0"))
      .comesTo({ decision: "deny", reason });
  });

  it("should end with its caller's signal, and take no answer any more", () => {
    given(handlers("waterfall", ["a", "b"]), invoked(0), replaced(0, "p0"), invoked(1, "p0"), aborted("cancelled", 1))
      .asks(SETTLED)
      .refuses(replaced(1, "late"), "no further event", "outcome rewritten of 1")
      .refuses(cancelled(1), "no further event", "outcome cancelled of 1")
      .comesTo({ status: "aborted", payload: null });
  });

  const STRANGE: readonly Outcome[] = [
    ack(0),
    allow(0),
    transformed(0, "p1"),
    claimed(0, "p1"),
    invalid(0),
    lost(0),
    defined(0, { content: "p1" }),
    { type: "outcome", index: 0, class: "rewritten" },
    { type: "outcome", index: 0, class: "rewritten", payload: ref("p1"), set: setOf({ content: "p1" }) },
    cancelled(0, { cancelReason: "p1" }),
  ];
  it.each(STRANGE)("should know no such answer: %j", (answer) => {
    given(handlers("waterfall", ["a"]), invoked(0)).refuses(
      answer,
      "a settlement of 0",
      `outcome ${answer.class} of 0`,
    );
  });
});
