/** Handlers that are told, all at once, and have no say. */
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
  wait,
} from "../support/given.js";

describe("a notification", () => {
  it("should start all handlers together, in order, and wait for all of them, however they end", () => {
    given(handlers("notify", ["a", "b", "c~skip", "d@20"]))
      .asks(invoke([0, 1, 3]))
      .refuses(invoked(1), "subscriber-invoked 0 seeing sha256:input", "subscriber-invoked 1 seeing sha256:input")
      .when(invoked(0))
      .asks(invoke([1, 3]))
      .when(invoked(1), invoked(3))
      .asks(wait(0, 1, 3))
      .when(ack(1))
      .asks(wait(0, 3))
      .when(failed(0))
      .asks(wait(3))
      .when(timeout(3, 20))
      .ends(decided("allow", "kernel:default"))
      .comesTo({
        allowed: true,
        payload: digest("input"),
        hookErrors: [
          { subscriber: "a", mode: "handler", category: "UNKNOWN", message: "it broke" },
          { subscriber: "d", mode: "handler", ...timeoutError(20) },
        ],
      });
  });

  it("should start the others although one has settled already", () => {
    given(handlers("notify", ["a", "b"]), invoked(0), ack(0))
      .asks(invoke([1]))
      .when(invoked(1), ack(1))
      .ends(decided("allow", "kernel:default"));
  });

  it("should be over at once where nobody is to be told", () => {
    given(handlers("notify", ["a~skip"])).ends(decided("allow", "kernel:default"));
  });

  it("should end with its caller's signal, and take no answer any more", () => {
    given(handlers("notify", ["a", "b"]), invoked(0), invoked(1), ack(1), aborted("cancelled", 0))
      .asks(SETTLED)
      .refuses(ack(0), "no further event", "outcome ack of 0")
      .comesTo({ status: "aborted", payload: null, hookErrors: [] });
  });

  it.each([
    allow(0),
    declined(0),
    claimed(0, "p1"),
    replaced(0, "p1"),
    defined(0, { content: "p1" }),
    cancelled(0),
    invalid(0),
    lost(0),
  ])("should know no answer of the class $class", (answer) => {
    given(handlers("notify", ["a"]), invoked(0)).refuses(answer, "a settlement of 0", `outcome ${answer.class} of 0`);
  });
});
