import { describe, expect, it } from "vitest";
import { aborted, ack, allow, brokenBy, chain, deny, failed, hookError, invalid, timeout } from "../support/given.js";
import { at, type Happening, record, ulidOf } from "../support/ledger.js";
import { shown } from "../support/shown.js";
import { CONFIG, messages, PLAN, startedWith } from "../support/stories.js";

/** The sentence below the verdict. */
async function sentence(
  subscribers: ReturnType<typeof chain>,
  told: object,
  ...happenings: readonly Happening[]
): Promise<string> {
  const text = await shown((store) =>
    record(store, {
      n: 9,
      kept: [INPUT],
      happenings: [at(0, startedWith(9, subscribers, INPUT, told)), ...happenings],
    }),
  );
  return text.split("\n")[1]!.trim();
}

const INPUT = messages("one");
const call = (atMs: number, index: number) => at(atMs, { type: "subscriber-invoked", index, saw: INPUT.ref.digest });
const decided = (decision: "allow" | "deny", decidedBy: string) =>
  at(9, { type: "decided", decision, decidedBy, payload: INPUT.ref.digest });

describe("the sentence that says why", () => {
  it.each<[string, string, ReturnType<typeof chain>, object, readonly Happening[]]>([
    [
      "a deny without a reason",
      "Denied by gate (veto), who gave no reason.",
      chain("veto:gate"),
      {},
      [call(1, 0), at(2, deny(0)), decided("deny", "gate")],
    ],
    [
      "a crash",
      "Denied because gate (veto) failed, not by its will: PROCESS_CRASHED: exit code 1",
      chain("veto:gate"),
      {},
      [call(1, 0), at(2, failed(0, "PROCESS_CRASHED", "exit code 1")), decided("deny", "gate")],
    ],
    [
      "an invalid answer",
      "Denied because gate (veto) gave no valid answer: INVALID_RESPONSE: no decision",
      chain("veto:gate"),
      {},
      [call(1, 0), at(2, invalid(0, "no decision")), decided("deny", "gate")],
    ],
    [
      "the end of the chain budget",
      "Denied because the chain budget ran out on gate (veto), which had 7 ms left: a timeout, not a refusal.",
      chain("veto:gate@100"),
      { budgetMs: 8 },
      [call(1, 0), at(8, timeout(0, 7)), decided("deny", "gate")],
    ],
    [
      "an allow that somebody gave",
      "Nobody objected. Asked: gate, second.",
      chain("veto:gate", "veto:second", "veto:shadow~shadow"),
      {},
      [
        call(1, 0),
        at(2, allow(0)),
        call(3, 1),
        at(4, allow(1)),
        call(5, 2),
        at(6, deny(2)),
        decided("allow", "kernel:default"),
      ],
    ],
    [
      "an allow that nobody was asked for",
      "Nobody in the chain could deny.",
      chain("observe:log"),
      {},
      [call(1, 0), at(2, ack(0)), decided("allow", "kernel:default")],
    ],
    [
      "a failed rewrite",
      "Aborted because redact (transform) failed: TRANSFORM_FAILED: no dictionary",
      chain("observe:log", "transform:redact"),
      { observe: "detached" },
      [
        call(1, 0),
        call(1, 1),
        at(2, failed(1, "TRANSFORM_FAILED", "no dictionary")),
        at(3, brokenBy(1, hookError("TRANSFORM_FAILED", "no dictionary"), 0)),
      ],
    ],
    [
      "a cancellation",
      "Aborted: the caller cancelled. That is no verdict.",
      chain("veto:gate"),
      {},
      [call(1, 0), at(2, aborted("cancelled", 0))],
    ],
    [
      "a ledger that could not be written",
      "Aborted: the ledger could not be written, so nothing was allowed.",
      chain("veto:gate"),
      {},
      [call(1, 0), at(2, aborted("store_unavailable", 0))],
    ],
  ])("should tell %s", async (_, expected, subscribers, told, happenings) => {
    expect(await sentence(subscribers, told, ...happenings)).toBe(expected);
  });

  it("should not call a plan allowed of which only parts may go", async () => {
    const text = await shown((store) =>
      record(store, {
        n: 9,
        kept: [PLAN],
        blobs: [CONFIG],
        happenings: [
          at(0, startedWith(9, chain("policy"), PLAN, { point: "plan-ready" })),
          at(1, { type: "subscriber-invoked", index: 0, saw: PLAN.ref.digest }),
          at(2, {
            type: "outcome",
            index: 0,
            class: "policy",
            payload: PLAN.ref,
            items: [
              { itemId: "i1", decision: "allow", decidedBy: "policy:default" },
              { itemId: "i3", decision: "ask", decidedBy: "policy:default" },
            ],
          }),
          at(3, { type: "decided", decision: "allow", decidedBy: "kernel:default", payload: PLAN.ref.digest }),
        ],
      }),
    );
    expect(text.split("\n").slice(0, 2)).toStrictEqual([
      `allowed in part  plan-ready  ${ulidOf(9)}`,
      "  Only item by item: 1 allow, 1 ask. Nobody objected. Asked: kernel:policy.",
    ]);
  });
});
