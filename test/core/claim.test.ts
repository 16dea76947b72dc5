/** A run of which one handler makes its own. */
import { describe, it } from "vitest";
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
  replaced,
  SETTLED,
  timeout,
  timeoutError,
  transformed,
  wait,
} from "../support/given.js";

describe("a claim", () => {
  it("should be asked for one handler after the other, each seeing the input", () => {
    given(handlers("claim", ["a", "b", "c"]))
      .asks(invoke([0]))
      .when(invoked(0))
      .asks(wait(0))
      .refuses(invoked(1), "a settlement of 0", "subscriber-invoked 1 seeing sha256:input")
      .when(declined(0))
      .asks(invoke([1]))
      .when(invoked(1), declined(1))
      .asks(invoke([2]))
      .refuses(invoked(2, "p1"), "subscriber-invoked 2 seeing sha256:input", "subscriber-invoked 2 seeing sha256:p1")
      .when(invoked(2), declined(2))
      .ends(decided("allow", "kernel:default"))
      .comesTo({ allowed: true, decidedBy: "kernel:default", payload: digest("input") });
  });

  it("should end with the first that claims, whose result is gone on with; nobody after it is called", () => {
    given(handlers("claim", ["a", "b", "c"]), invoked(0), declined(0), invoked(1), claimed(1, "result"))
      .refuses(invoked(2), "decided allow by b on sha256:result", "subscriber-invoked 2 seeing sha256:input")
      .refuses(
        decided("allow", "kernel:default"),
        "decided allow by b on sha256:result",
        "decided allow by kernel:default on sha256:input",
      )
      .ends(decided("allow", "b", "result"))
      .comesTo({ status: "decided", decision: "allow", decidedBy: "b", payload: digest("result"), reason: null });
  });

  it("should pass by who fails and who gives no answer in time: they have not claimed", () => {
    given(handlers("claim", ["a", "b@20", "c"]), invoked(0), failed(0), invoked(1), timeout(1, 20))
      .asks(invoke([2]))
      .when(invoked(2), claimed(2, "result"))
      .ends(decided("allow", "c", "result"))
      .comesTo({
        allowed: true,
        hookErrors: [
          { subscriber: "a", mode: "handler", category: "UNKNOWN", message: "it broke" },
          { subscriber: "b", mode: "handler", ...timeoutError(20) },
        ],
      });
    given(handlers("claim", ["a"]), invoked(0), failed(0))
      .ends(decided("allow", "kernel:default"))
      .comesTo({ allowed: true });
  });

  it("should let a handler take whatever time it wants where it has no timeout", () => {
    given(handlers("claim", ["a@none"]), invoked(0)).refuses(
      timeout(0),
      "a settlement of 0",
      "timeout of 0 after 1000 ms",
    );
  });

  it("should call nobody where everybody is skipped, nor whoever is", () => {
    given(handlers("claim", ["a~skip", "b~skip"])).ends(decided("allow", "kernel:default"));
    given(handlers("claim", ["a~skip", "b", "c~skip"]))
      .asks(invoke([1]))
      .when(invoked(1), declined(1))
      .ends(decided("allow", "kernel:default"));
  });

  it("should end with its caller's signal, and take no answer any more", () => {
    given(handlers("claim", ["a", "b"]), invoked(0), aborted("cancelled", 0))
      .asks(SETTLED)
      .refuses(claimed(0, "late"), "no further event", "outcome claimed of 0")
      .refuses(failed(0), "no further event", "outcome failed of 0")
      .refuses(timeout(0), "no further event", "timeout of 0 after 1000 ms")
      .comesTo({ status: "aborted", allowed: false, payload: null, hookErrors: [] });
  });

  it("should take a second answer from nobody, and none from who was not asked", () => {
    given(handlers("claim", ["a", "b"]), invoked(0), declined(0))
      .refuses(claimed(0, "late"), "subscriber-invoked 1 seeing sha256:input", "outcome claimed of 0")
      .refuses(claimed(1, "early"), "subscriber-invoked 1 seeing sha256:input", "outcome claimed of 1");
  });

  it.each([
    ack(0),
    allow(0),
    transformed(0, "p1"),
    replaced(0, "p1"),
    defined(0, { content: "p1" }),
    cancelled(0),
    invalid(0),
    lost(0),
  ])("should know no answer of the class $class", (answer) => {
    given(handlers("claim", ["a"]), invoked(0)).refuses(answer, "a settlement of 0", `outcome ${answer.class} of 0`);
  });
});
