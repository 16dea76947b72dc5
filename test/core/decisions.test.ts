/**
 * The numbered decisions on what the hook contract leaves open, as far as the machine carries them. Where each of the 16 is
 * tested:
 *
 *  1. vetoes at veto-bearing points only: test/config/hook-errors, test/core/started
 *  2. cancellation is no verdict: here, test/dispatch/cancellation
 *  3. what the caller gets: here, test/core/result
 *  4. policy runs first: here, test/dispatch/plan, test/core/result
 *  5. how policy decides: test/core/policy; its rules as configuration: test/config/schema-errors, test/config/warnings
 *  6. order is textual position: test/config/load, test/config/resolve; here, "order"
 *  7. timeouts, by the clock: test/dispatch/deadline, test/faults/grpc
 *  8. the category of a failure: test/subscribers/host, test/subscribers/grpc-faults, test/payload/admission
 *  9. when payloads are equal: test/payload/canonical, test/payload/admission, test/payload/admission-returned
 * 10. consecutive observers: here, test/dispatch/detached
 * 11. a deny short-circuits everybody: here
 * 12. hook errors: test/core/result, test/dispatch/hook-errors
 * 13. store failure: test/dispatch/store-failure, test/dispatch/any-store-failure
 * 14. no subscribers: here; no variant: test/payload/payload, test/dispatch/arguments
 * 15. the chain budget: here, test/dispatch/deadline
 * 16. redaction: test/payload/redaction, test/dispatch/redaction, test/canary
 */
import { describe, expect, it } from "vitest";
import {
  aborted,
  ack,
  allow,
  brokenBy,
  chain,
  decided,
  deny,
  digest,
  failed,
  given,
  hookError,
  invalid,
  invoke,
  invoked,
  policy,
  SETTLED,
  started,
  timeout,
  timeoutError,
  transformed,
  wait,
} from "../support/given.js";

const PLAN = { point: "plan-ready" };
const NO_VETO = { point: "pre-model-call", vetoBearing: false };

describe("order: one pass in declaration order", () => {
  it("should show each subscriber the payload as all before it have left it", () => {
    given(started(chain("observe", "transform", "observe", "veto", "transform", "observe")))
      .asks(invoke([0]))
      .when(invoked(0), ack(0))
      .asks(invoke([1]))
      .when(invoked(1), transformed(1, "p1"))
      .asks(invoke([2], "p1"))
      .when(invoked(2, "p1"), ack(2))
      .asks(invoke([3], "p1"))
      .when(invoked(3, "p1"), allow(3))
      .asks(invoke([4], "p1"))
      .when(invoked(4, "p1"), transformed(4, "p2"))
      .asks(invoke([5], "p2"))
      .when(invoked(5, "p2"), ack(5))
      .ends(decided("allow", "kernel:default", "p2"))
      .comesTo({ allowed: true, payload: digest("p2") });
  });

  it("should call transforms and vetoes strictly one after the other", () => {
    given(started(chain("transform", "transform", "veto", "veto")), invoked(0))
      .asks(wait(0))
      .refuses(invoked(1), "a settlement of 0", "subscriber-invoked 1 seeing sha256:input")
      .when(transformed(0, "p1"), invoked(1, "p1"))
      .asks(wait(1))
      .when(transformed(1, "p2"), invoked(2, "p2"))
      .asks(wait(2))
      .refuses(invoked(3, "p2"), "a settlement of 2", "subscriber-invoked 3 seeing sha256:p2");
  });

  it("should pass over whoever is listed with a reason for being skipped", () => {
    given(started(chain("veto~skip", "observe", "veto~skip", "observe", "transform~skip")))
      .asks(invoke([1, 3]))
      .refuses(invoked(0), "subscriber-invoked 1 seeing sha256:input", "subscriber-invoked 0 seeing sha256:input")
      .when(invoked(1), invoked(3), ack(1), ack(3))
      .ends(decided("allow", "kernel:default"));
  });
});

describe("decision 2: cancellation is not a verdict", () => {
  it("should invoke nobody when the signal was aborted already", () => {
    given(started(chain("veto")), aborted("cancelled"))
      .asks(SETTLED)
      .comesTo({ status: "aborted", abortCause: "cancelled", decision: null, allowed: false, payload: null });
  });

  it.each(["veto", "transform", "observe", "policy"])("should end a dispatch whose %s is running", (mode) => {
    given(started(chain(mode), PLAN), invoked(0), aborted("cancelled", 0))
      .asks(SETTLED)
      .comesTo({ abortCause: "cancelled", decision: null, hookErrors: [], planDecisions: [] });
  });

  it("should win over a deny and over an abort that are not recorded yet", () => {
    given(started(chain("veto")), invoked(0), deny(0))
      .when(aborted("cancelled"))
      .comesTo({ abortCause: "cancelled", decision: null });
    given(started(chain("transform")), invoked(0), timeout(0))
      .when(aborted("cancelled"))
      .comesTo({
        abortCause: "cancelled",
        hookErrors: [{ subscriber: "transform", mode: "transform", ...timeoutError() }],
      });
  });

  it("should wait for nobody, and still take in what observers in flight came to", () => {
    given(started(chain("observe", "observe", "veto")), invoked(0), invoked(1), aborted("cancelled", 0, 1))
      .asks(SETTLED)
      .when(ack(1))
      .asks(SETTLED)
      .when(timeout(0))
      .comesTo({ hookErrors: [{ subscriber: "observe", mode: "observe", ...timeoutError() }] });
  });

  it("should not be turned into the end of the budget by an observer that is late for it", () => {
    const { state } = given(started(chain("observe"), { budgetMs: 300 }), invoked(0), aborted("cancelled", 0)).when(
      timeout(0, 300),
    );
    expect(state).toMatchObject({ kind: "aborted", aborted: { cause: "cancelled" }, halt: null });
  });

  it("should come too late once the dispatch is decided", () => {
    given(started([]), decided("allow", "kernel:default")).refuses(
      aborted("cancelled"),
      "no further event",
      "aborted (cancelled)",
    );
  });
});

describe("decision 3: what the caller gets", () => {
  it("should hand over no payload from an abort, not even an earlier one", () => {
    given(started(chain("transform", "transform")), invoked(0), transformed(0, "p1"), invoked(1, "p1"), invalid(1))
      .ends(brokenBy(1, hookError("INVALID_RESPONSE")))
      .comesTo({ payload: null, allowed: false, reason: "INVALID_RESPONSE: it broke" });
  });

  it("should hand over from a deny the payload that the denier saw", () => {
    given(started(chain("transform", "veto", "transform")), invoked(0), transformed(0, "p1"), invoked(1, "p1"), deny(1))
      .ends(decided("deny", "veto1", "p1"))
      .comesTo({ payload: digest("p1"), allowed: false });
  });

  it("should hand over from policy's deny the plan as policy saw it, without its stamps", () => {
    given(started(chain("policy"), PLAN), invoked(0), policy("deny"))
      .ends(decided("deny", "kernel:policy", "input"))
      .comesTo({ payload: digest("input") });
  });
});

describe("decision 4: policy runs first", () => {
  it("should show the stamped plan to everybody after it", () => {
    given(started(chain("policy", "observe", "veto"), PLAN))
      .asks(invoke([0]))
      .when(invoked(0), policy("allow"))
      .asks(invoke([1], "stamped"))
      .when(invoked(1, "stamped"), ack(1))
      .asks(invoke([2], "stamped"))
      .when(invoked(2, "stamped"), allow(2))
      .ends(decided("allow", "kernel:default", "stamped"))
      .comesTo({ allowed: true });
  });

  it.each(["failed", "timeout"])("should deny by kernel:policy when policy ends in %s, before any plugin", (how) => {
    given(started(chain("policy", "veto"), PLAN), invoked(0))
      .when(how === "failed" ? failed(0, "VETO_FAILED") : timeout(0))
      .ends(decided("deny", "kernel:policy"))
      .comesTo({ decidedBy: "kernel:policy", hookErrors: [], planDecisions: [], allowed: false });
  });

  it("should never be lifted by a later allow", () => {
    given(started(chain("policy", "veto"), PLAN), invoked(0), policy("deny", "allow"), invoked(1, "stamped"), allow(1))
      .ends(decided("allow", "kernel:default", "stamped"))
      .comesTo({ decision: "allow", allowed: false });
  });
});

describe("decision 10: consecutive observers", () => {
  const links = ["observe", "observe", "veto", "observe"];

  it("should start a maximal run together and join it before the next transform or veto", () => {
    given(started(chain(...links)))
      .asks(invoke([0, 1]))
      .when(invoked(0))
      .asks(invoke([1]))
      .when(invoked(1))
      .asks(wait(0, 1))
      .when(ack(1))
      .asks(wait(0))
      .when(failed(0))
      .asks(invoke([2]))
      .when(invoked(2), allow(2))
      .asks(invoke([3]));
  });

  it("should take in an observer's answer before the rest of its run is invoked", () => {
    given(started(chain(...links)), invoked(0), ack(0))
      .asks(invoke([1]))
      .when(invoked(1), ack(1))
      .asks(invoke([2]));
  });

  it("should start them one by one when told sequential", () => {
    given(started(chain(...links), { observe: "sequential" }))
      .asks(invoke([0]))
      .when(invoked(0))
      .asks(wait(0))
      .when(ack(0))
      .asks(invoke([1]))
      .when(invoked(1), ack(1))
      .asks(invoke([2]));
  });

  it("should go on once a detached run is invoked, decide without it and record what comes later", () => {
    given(started(chain(...links), { observe: "detached" }))
      .asks(invoke([0, 1]))
      .when(invoked(0), invoked(1))
      .asks(invoke([2]))
      .when(invoked(2))
      .asks(wait(0, 1, 2))
      .when(ack(1))
      .asks(wait(0, 2))
      .when(allow(2), invoked(3))
      .asks({ kind: "conclude", event: decided("allow", "kernel:default") })
      .when(decided("allow", "kernel:default"))
      .asks(wait(0, 3))
      .comesTo({ allowed: true, hookErrors: [] })
      .when(timeout(3), failed(0))
      .asks(SETTLED)
      .comesTo({
        allowed: true,
        hookErrors: [
          { subscriber: "observe", mode: "observe", ...hookError("UNKNOWN") },
          { subscriber: "observe3", mode: "observe", ...timeoutError() },
        ],
      });
  });

  it("should let detached observers run on after a deny and after an abort by the chain", () => {
    const detached = { observe: "detached" } as const;
    given(started(chain("observe", "veto"), detached), invoked(0), invoked(1), deny(1), decided("deny", "veto1"))
      .asks(wait(0))
      .when(ack(0))
      .asks(SETTLED);
    const broken = brokenBy(1, hookError("TRANSFORM_FAILED"), 0);
    given(started(chain("observe", "transform"), detached), invoked(0), invoked(1), failed(1, "TRANSFORM_FAILED"))
      .asks({ kind: "conclude", event: broken })
      .when(broken)
      .asks(wait(0))
      .when(timeout(0))
      .asks(SETTLED);
  });

  it("should join everybody before it decides, unless detached", () => {
    given(started(chain("veto", "observe", "observe")), invoked(0), allow(0), invoked(1), invoked(2))
      .asks(wait(1, 2))
      .refuses(
        decided("allow", "kernel:default"),
        "a settlement of 1, 2",
        "decided allow by kernel:default on sha256:input",
      );
  });
});

describe("decision 11: a deny short-circuits everybody after it", () => {
  it("should call neither vetoes nor transforms nor observers any more", () => {
    given(started(chain("veto", "observe", "transform", "veto")), invoked(0), deny(0))
      .refuses(invoked(1), "decided deny by veto on sha256:input", "subscriber-invoked 1 seeing sha256:input")
      .ends(decided("deny", "veto"));
  });

  it("should hold for a transform's failure as well", () => {
    given(started(chain("transform", "observe", "veto")), invoked(0), failed(0, "PROCESS_CRASHED")).ends(
      brokenBy(0, hookError("PROCESS_CRASHED")),
    );
  });
});

describe("decision 14: no subscribers", () => {
  it("should give the payload back with an allow", () => {
    given(started([]))
      .ends(decided("allow", "kernel:default"))
      .comesTo({
        allowed: true,
        payload: digest("input"),
        decidedBy: "kernel:default",
        reason: null,
        planDecisions: [],
      });
  });

  it("should do so at plan-ready after policy", () => {
    given(started(chain("policy"), PLAN), invoked(0), policy())
      .ends(decided("allow", "kernel:default", "stamped"))
      .comesTo({ allowed: true, planDecisions: [] });
  });

  it("should do so when everybody is skipped", () => {
    given(started(chain("veto~skip", "transform~skip", "observe~skip"))).ends(decided("allow", "kernel:default"));
  });
});

describe("decision 15: the chain budget", () => {
  it.each(["veto:first", "transform:first", "observe:first", "veto:first~shadow"])(
    "should deny where vetoes are borne when it ends a %s",
    (link) => {
      given(started(chain(link, "veto"), { budgetMs: 300 }), invoked(0), timeout(0, 300))
        .ends(decided("deny", "first"))
        .comesTo({ decision: "deny", reason: "TIMEOUT: no answer within 300 ms" });
    },
  );

  it("should deny by kernel:policy when it ends policy", () => {
    given(started(chain("policy"), { ...PLAN, budgetMs: 1 }), invoked(0), timeout(0, 1)).ends(
      decided("deny", "kernel:policy"),
    );
  });

  it.each(["transform", "observe"] as const)("should abort elsewhere when it ends a %s", (mode) => {
    given(started(chain(mode, "transform"), { ...NO_VETO, budgetMs: 300 }), invoked(0), timeout(0, 300))
      .ends(brokenBy(0, timeoutError(300)))
      .comesTo({ abortCause: "hook_error", hookErrors: [{ subscriber: mode, mode, ...timeoutError(300) }] });
  });

  it("should deny by whoever's turn it was when nothing was left, on what they would have seen", () => {
    given(started(chain("transform", "veto"), { budgetMs: 300 }), invoked(0), transformed(0, "p1"), invoked(1, "p1"))
      .when(timeout(1, 0))
      .ends(decided("deny", "veto1", "p1"));
  });

  it("should join the rest of a run first, start nobody else and name the first of the chain", () => {
    const links = chain("observe@1000", "observe@200", "observe@1000", "observe@1000", "veto");
    const run = given(started(links, { budgetMs: 300 }), invoked(0), invoked(1), invoked(2), timeout(1, 200));
    run
      .when(timeout(2, 300))
      .asks(wait(0))
      .refuses(invoked(3), "a settlement of 0", "subscriber-invoked 3 seeing sha256:input")
      .when(timeout(0, 300))
      .ends(decided("deny", "observe"));
    run.when(timeout(2, 300), ack(0)).ends(decided("deny", "observe2"));
    run.when(timeout(0, 300), timeout(2, 300)).ends(decided("deny", "observe"));
  });

  it("should leave a subscriber's own deadline what it is: an observer's ends nothing", () => {
    given(started(chain("observe@200", "veto"), { budgetMs: 300 }), invoked(0), timeout(0, 200)).asks(invoke([1]));
    given(started(chain("transform@200"), { budgetMs: 300 }), invoked(0), timeout(0, 200)).ends(
      brokenBy(0, timeoutError(200)),
    );
  });

  it("should not bound detached observers", () => {
    given(started(chain("observe"), { observe: "detached", budgetMs: 300 }), invoked(0))
      .when(decided("allow", "kernel:default"))
      .refuses(timeout(0, 300), "a settlement of 0", "timeout of 0 after 300 ms")
      .when(timeout(0, 1000))
      .asks(SETTLED)
      .comesTo({ allowed: true });
  });
});

describe("the shadow: called, recorded and never counted", () => {
  it.each([
    ["veto", deny(0)],
    ["veto", failed(0, "VETO_FAILED")],
    ["veto", timeout(0)],
    ["transform", transformed(0, "p1")],
    ["transform", invalid(0)],
    ["observe", failed(0)],
  ] as const)("should let no %s that ends in %j change anything", (mode, settlement) => {
    given(started(chain(`${mode}:s~shadow`, "veto")), invoked(0), settlement)
      .asks(invoke([1]))
      .when(invoked(1), allow(1))
      .ends(decided("allow", "kernel:default"))
      .comesTo({ allowed: true, payload: digest("input") });
  });

  it("should report a failure under its own mode", () => {
    given(started(chain("veto:s~shadow")), invoked(0), failed(0, "VETO_FAILED"))
      .ends(decided("allow", "kernel:default"))
      .comesTo({ hookErrors: [{ subscriber: "s", mode: "veto", ...hookError("VETO_FAILED") }] });
  });

  it("should run with observers, joined or detached like them", () => {
    given(started(chain("observe", "veto:s~shadow", "transform:t~shadow", "veto"))).asks(invoke([0, 1, 2]));
    given(started(chain("veto:s~shadow", "veto"), { observe: "detached" }), invoked(0))
      .asks(invoke([1]))
      .when(invoked(1), allow(1), decided("allow", "kernel:default"))
      .asks(wait(0))
      .when(deny(0))
      .comesTo({ decision: "allow", allowed: true });
  });
});
