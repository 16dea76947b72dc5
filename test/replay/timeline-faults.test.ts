import { describe, expect, it } from "vitest";
import { aborted, brokenBy, chain, failed, hookError, lost, timeout } from "../support/given.js";
import { at, record } from "../support/ledger.js";
import { abandoned, messages, open, startedWith, timedOut, withdrawn } from "../support/stories.js";
import { story, tell } from "../support/timelines.js";

describe("timeline of what went wrong", () => {
  it("should keep a timeout a timeout", async () => {
    const { links, verdict } = await tell(timedOut);
    expect(links[0]!.said).toStrictEqual({ kind: "timeout", budgetMs: 200, own: true });
    expect(links[0]).toMatchObject({ lagMs: 12, tookNs: 212_000_000 });
    expect(verdict.reason).toBe("TIMEOUT: no answer within 200 ms");
  });

  it("should tell the end of the chain budget from a subscriber's own timeout", async () => {
    const input = messages("one");
    const { links } = await tell((store) =>
      record(store, {
        n: 9,
        kept: [input],
        happenings: [
          at(0, startedWith(9, chain("veto:gate@500"), input, { budgetMs: 300 })),
          at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
          at(300, timeout(0, 299)),
          at(300, { type: "decided", decision: "deny", decidedBy: "gate", payload: input.ref.digest }),
        ],
      }),
    );
    expect(links[0]!.said).toStrictEqual({ kind: "timeout", budgetMs: 299, own: false });
  });

  it("should tell who was in flight and who was never called when the process ended", async () => {
    const { links, inFlight, verdict } = await tell(abandoned);
    expect({ inFlight, cause: verdict.abortCause }).toStrictEqual({ inFlight: [0], cause: "recovered" });
    expect(links.map(({ said }) => said)).toStrictEqual([
      { kind: "in-flight", until: "recovered" },
      { kind: "not-called", because: { kind: "aborted", cause: "recovered", by: null } },
    ]);
  });

  it("should tell an open dispatch as open", async () => {
    const { links, verdict, conclusion } = await tell(open);
    expect({ status: verdict.status, conclusion }).toStrictEqual({ status: "open", conclusion: null });
    expect(links.map(({ said }) => said)).toStrictEqual([
      { kind: "in-flight", until: null },
      { kind: "not-called", because: { kind: "pending" } },
    ]);
  });

  it("should tell a decision that was taken back as no allow", async () => {
    const { verdict, withdrawn: taken, conclusion } = await tell(withdrawn);
    expect(verdict).toMatchObject({ status: "aborted", abortCause: "unconfirmed", allowed: false, decision: null });
    expect(taken).toMatchObject({ decision: "allow", decidedBy: "kernel:default" });
    expect(conclusion).toStrictEqual({ revision: 3, atNs: 3_000_000 });
  });

  it("should tell whose failure aborted the chain, and whom that left out", async () => {
    const { call, told } = story(chain("transform:redact", "veto:gate"));
    const error = hookError("TRANSFORM_FAILED", "no dictionary");
    const { links, abortedBy } = await told(
      call(1, 0),
      at(2, failed(0, "TRANSFORM_FAILED", "no dictionary")),
      at(3, brokenBy(0, error)),
    );
    expect(abortedBy).toBe(0);
    expect(links[0]!.said).toStrictEqual({ kind: "failed", error });
    expect(links[1]!.said).toStrictEqual({
      kind: "not-called",
      because: { kind: "aborted", cause: "hook_error", by: "redact" },
    });
  });

  it("should tell a cancellation as nobody's verdict", async () => {
    const { call, told } = story(chain("veto:gate", "veto:second"));
    const { links, verdict } = await told(call(1, 0), at(2, aborted("cancelled", 0)));
    expect(verdict).toMatchObject({ decision: null, abortCause: "cancelled" });
    expect(links.map(({ said }) => said)).toStrictEqual([
      { kind: "in-flight", until: "cancelled" },
      { kind: "not-called", because: { kind: "aborted", cause: "cancelled", by: null } },
    ]);
  });

  it("should measure nothing of an observer that was lost", async () => {
    const input = messages("one");
    const { links } = await tell((store) =>
      record(store, {
        n: 9,
        kept: [input],
        happenings: [
          at(0, startedWith(9, chain("observe:log"), input, { observe: "detached" })),
          at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
          at(2, { type: "decided", decision: "allow", decidedBy: "kernel:default", payload: input.ref.digest }),
          at(2, lost(0)),
        ],
      }),
    );
    expect(links[0]).toMatchObject({ said: { kind: "lost" }, tookNs: null, settled: { afterConclusion: true } });
  });
});
