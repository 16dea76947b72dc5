/** What holds of handlers, whatever composes them; and the rules by which kernel hooks and message hooks fail, side by side. */
import { describe, expect, it } from "vitest";
import type { DispatchEvent, Started } from "#src/core/events.js";
import { recoveryStep } from "#src/core/recovery.js";
import { NEW } from "#src/core/state.js";
import {
  aborted,
  ack,
  cancelled,
  chain,
  claimed,
  Dispatch,
  decided,
  declined,
  defined,
  failed,
  given,
  handlers,
  invoked,
  replaced,
  started,
  timeout,
} from "../support/given.js";

const COMPOSITIONS = ["claim", "rewrite", "waterfall", "notify"] as const;
const BLOCKS = { flags: ["blocks_on_failure"] };

function refused(event: Started, why: string): void {
  new Dispatch(NEW).refuses(event, `another chain: ${why}`, `started (${event.composition}, reducer 1)`);
}

describe.each(COMPOSITIONS)("the list of handlers of a %s", (composition) => {
  it("should hold handlers with a deadline and without, and who is skipped", () => {
    given(handlers(composition, ["a", "b@none", "c~skip"]));
    given(handlers(composition, []));
  });

  it.each(["observe", "transform", "veto", "policy"])("should hold nobody of the mode %s", (mode) => {
    refused(started(chain("handler:a", mode), { composition, vetoBearing: false }), "subscriber 1 is no handler");
  });

  it("should hold nobody in the shadow, and nobody who bears a name of the kernel", () => {
    refused(handlers(composition, ["a~shadow"]), "subscriber 0 is no handler");
    refused(handlers(composition, ["kernel:default"]), "subscriber 0 is no handler");
    refused(handlers(composition, ["a", "kernel:policy"]), "subscriber 1 is no handler");
  });

  it("should stand where no veto is borne, and have no budget as a whole", () => {
    refused(handlers(composition, ["a"], { vetoBearing: true }), "a point that bears vetoes");
    refused(handlers(composition, ["a"], { budgetMs: 100 }), "a budget for handlers");
  });

  it("should know the flag of redaction", () => {
    given(handlers(composition, ["a"], { flags: ["redacted"] }));
  });
});

describe("the flag that makes failures block", () => {
  it("should be known where a delivery can be suppressed, and nowhere else", () => {
    given(handlers("rewrite", ["a"], BLOCKS));
    given(handlers("waterfall", ["a"], BLOCKS));
    refused(handlers("claim", ["a"], BLOCKS), "a claim that blocks on failure");
    refused(handlers("notify", ["a"], BLOCKS), "a notification that blocks on failure");
    refused(started(chain("veto"), BLOCKS), "a flag that is for handlers");
  });
});

describe("a failure", () => {
  it("should close a chain and open whatever is composed of handlers, unless it blocks", () => {
    given(started(chain("veto")), invoked(0), failed(0)).ends(decided("deny", "veto"));
    given(started(chain("transform")), invoked(0), failed(0)).comesTo({ status: "open" });
    for (const composition of COMPOSITIONS) {
      given(handlers(composition, ["a"]), invoked(0), failed(0)).ends(decided("allow", "kernel:default"));
      given(handlers(composition, ["a@5"]), invoked(0), timeout(0, 5)).ends(decided("allow", "kernel:default"));
    }
    for (const composition of ["rewrite", "waterfall"]) {
      given(handlers(composition, ["a"], BLOCKS), invoked(0), failed(0)).ends(decided("deny", "a"));
      given(handlers(composition, ["a@5"], BLOCKS), invoked(0), timeout(0, 5)).ends(decided("deny", "a"));
    }
  });
});

describe("recovery of a run of handlers", () => {
  function recovered(...log: readonly DispatchEvent[]): DispatchEvent | null {
    const { state } = given(...log);
    const event = recoveryStep(state);
    if (event !== null) expect(recoveryStep(given(...log, event).state)).toBeNull();
    return event;
  }

  it("should never let anything pass, nor claim anything", () => {
    expect(recovered(handlers("claim", ["a"]), invoked(0), claimed(0, "r"))).toEqual(aborted("recovered"));
    expect(recovered(handlers("claim", ["a"]), invoked(0), declined(0))).toEqual(aborted("recovered"));
    expect(recovered(handlers("rewrite", ["a"]), invoked(0), defined(0, { content: "c" }))).toEqual(
      aborted("recovered"),
    );
    expect(recovered(handlers("waterfall", ["a"]), invoked(0), replaced(0, "p"))).toEqual(aborted("recovered"));
    expect(recovered(handlers("notify", ["a"]), invoked(0), ack(0))).toEqual(aborted("recovered"));
  });

  it("should tell who was in flight", () => {
    expect(recovered(handlers("notify", ["a", "b", "c"]), invoked(0), invoked(1), ack(0))).toEqual(
      aborted("recovered", 1),
    );
    expect(recovered(handlers("claim", ["a@none", "b"]), invoked(0))).toEqual(aborted("recovered", 0));
  });

  it("should record a cancellation, and a failure that blocks, as what they are", () => {
    expect(recovered(handlers("rewrite", ["a", "b"]), invoked(0), cancelled(0))).toEqual(decided("deny", "a"));
    expect(recovered(handlers("waterfall", ["a", "b"]), invoked(0), cancelled(0))).toEqual(decided("deny", "a"));
    expect(recovered(handlers("rewrite", ["a"], BLOCKS), invoked(0), failed(0))).toEqual(decided("deny", "a"));
    expect(recovered(handlers("waterfall", ["a"], BLOCKS), invoked(0), timeout(0))).toEqual(decided("deny", "a"));
  });
});
