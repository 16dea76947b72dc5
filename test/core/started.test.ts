import { describe, expect, it } from "vitest";
import type { Started } from "#src/core/events.js";
import { NEW } from "#src/core/state.js";
import { ack, allow, chain, Dispatch, decided, given, invoke, invoked, started, wait } from "../support/given.js";

function refused(event: Started, expected: string, found = "started (chain, reducer 1)"): void {
  new Dispatch(NEW).refuses(event, expected, found);
}

describe("started", () => {
  it("should open a dispatch", () => {
    given(started(chain("observe", "veto")))
      .asks(invoke([0]))
      .comesTo({ status: "open", allowed: false, payload: null });
  });

  it.each(["claims", "", "__proto__", "toString", "Chain"])(
    "should not start under the unknown composition %j",
    (name) => {
      refused(
        started([], { composition: name }),
        "a composition that this version knows",
        `started (${name}, reducer 1)`,
      );
    },
  );

  it.each([0, 2, 1.5, -1])("should not start under reducer version %d", (reducerVersion) => {
    refused(started([], { reducerVersion }), "reducer version 1", `started (chain, reducer ${reducerVersion})`);
  });

  it("should know the flag of redaction and refuse any other", () => {
    given(started([], { flags: ["redacted"] })).ends(decided("allow", "kernel:default"));
    refused(started([], { flags: ["redacted", "lenient"] }), "no flag lenient");
    refused(started([], { flags: ["__proto__"] }), "no flag __proto__");
  });

  it.each([
    ["from one", [1, 2]],
    ["backwards", [1, 0]],
    ["twice the same", [0, 0]],
    ["with a gap", [0, 2]],
  ])("should refuse subscribers numbered %s", (_, numbers) => {
    const subscribers = chain("observe", "observe").map((subscriber, at) => ({ ...subscriber, index: numbers[at]! }));
    refused(started(subscribers), "subscribers numbered by their place");
  });

  it("should refuse one id twice, in any modes", () => {
    refused(started(chain("observe:a", "veto:b", "transform:a")), "each subscriber once");
  });

  it.each([
    [["observe@none"], "subscriber 0 has no timeout"],
    [["observe", "handler:h"], "subscriber 1 has a mode that the chain does not know"],
    [["observe", "policy"], "subscriber 1 is policy, but not the first of a veto-bearing point"],
    [["policy~shadow"], "subscriber 0 is policy without a say"],
    [["policy~skip"], "subscriber 0 is policy without a say"],
    [["policy:guard"], "subscriber 0 may not be called guard"],
    [["observe", "veto:kernel:policy"], "subscriber 1 may not be called kernel:policy"],
    [["veto:kernel:default"], "subscriber 0 may not be called kernel:default"],
  ])("should refuse the chain %j", (links, why) => {
    refused(started(chain(...links)), `another chain: ${why}`);
  });

  it("should refuse a veto, a shadow's too, and policy where no veto is borne", () => {
    const told = { vetoBearing: false };
    refused(started(chain("veto"), told), "another chain: subscriber 0 vetoes at a point that bears no veto");
    refused(started(chain("veto~shadow"), told), "another chain: subscriber 0 vetoes at a point that bears no veto");
    refused(
      started(chain("policy"), told),
      "another chain: subscriber 0 is policy, but not the first of a veto-bearing point",
    );
  });

  it("should stand once, at revision 0", () => {
    const again = started(chain("veto"));
    const found = "started (chain, reducer 1)";
    given(again).refuses(again, "one started, at revision 0", found);
    given(again, invoked(0), allow(0), decided("allow", "kernel:default")).refuses(
      again,
      "one started, at revision 0",
      found,
    );
  });

  it("should hold 256 subscribers, whom observing runs all at once and vetoing one by one", () => {
    const places = Array.from({ length: 256 }, (_, index) => index);
    given(started(chain(...places.map(() => "observe"))))
      .asks(invoke(places))
      .when(...places.map((index) => invoked(index)))
      .asks(wait(...places))
      .when(...places.toReversed().map(ack))
      .ends(decided("allow", "kernel:default"));

    const gates = places.reduce(
      (dispatch, index) =>
        dispatch
          .asks(invoke([index]))
          .when(invoked(index))
          .asks(wait(index))
          .when(allow(index)),
      given(started(chain(...places.map(() => "veto")))),
    );
    gates.ends(decided("allow", "kernel:default"));
    expect(gates.state.revision).toBe(513);
  });
});
