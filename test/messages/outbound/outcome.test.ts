import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DeliveryFailure } from "#src/messages/outbound/failure.js";
import { type DeliveryOutcome, type Ended, projectBatch } from "#src/messages/outbound/outcome.js";

const FAILURE: DeliveryFailure = { at: "send", message: "offline", cause: null };

function of(ended: Ended): DeliveryOutcome {
  return { ...ended, payload: null, hookRuns: [] };
}

const SENT = of({ status: "sent", receipts: [{ messageId: "a" }] });
const CANCELLED = of({
  status: "suppressed",
  reason: "cancelled_by_message_sending_hook",
  by: "p",
  hookEffect: { cancelReason: "policy" },
});
const EMPTY = of({ status: "suppressed", reason: "no_visible_payload" });
const PARTIAL = of({ status: "partial_failed", receipts: [{ messageId: "b" }], failure: FAILURE });
const FAILED = of({ status: "failed", failure: { ...FAILURE, message: "aborted" } });

describe("a batch of payloads", () => {
  it.each<[string, readonly DeliveryOutcome[], object]>([
    ["sent where all are", [SENT, SENT], { status: "sent", receipts: [{ messageId: "a" }, { messageId: "a" }] }],
    ["sent where some are and the others suppressed", [CANCELLED, SENT, EMPTY], { status: "sent" }],
    [
      "suppressed where all are, for the first hook's reason and with its effect",
      [EMPTY, CANCELLED, EMPTY],
      {
        status: "suppressed",
        reason: "cancelled_by_message_sending_hook",
        by: "p",
        hookEffect: { cancelReason: "policy" },
      },
    ],
    ["without anything visible where all are", [EMPTY, EMPTY], { status: "suppressed", reason: "no_visible_payload" }],
    ["without anything visible where there are none", [], { status: "suppressed", reason: "no_visible_payload" }],
    [
      "partially failed where one failed and one was sent, whichever was first",
      [FAILED, SENT],
      { status: "partial_failed", receipts: [{ messageId: "a" }], failure: { message: "aborted" } },
    ],
    [
      "partially failed where one is, with all receipts and the first failure",
      [SENT, PARTIAL, FAILED],
      {
        status: "partial_failed",
        receipts: [{ messageId: "a" }, { messageId: "b" }],
        failure: { message: "offline" },
      },
    ],
    ["failed where nothing was sent and one failed", [CANCELLED, FAILED], { status: "failed" }],
  ])("should be %s", (_, outcomes, projected) => {
    expect(projectBatch(outcomes)).toMatchObject({ ...projected, outcomes });
  });

  it("should be what a plain count says", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(SENT, CANCELLED, EMPTY, PARTIAL, FAILED), { maxLength: 6 }), (outcomes) => {
        const sent = outcomes.filter((outcome) => outcome === SENT || outcome === PARTIAL).length;
        const failed = outcomes.filter((outcome) => outcome === FAILED || outcome === PARTIAL).length;
        const expected = failed > 0 ? (sent > 0 ? "partial_failed" : "failed") : sent > 0 ? "sent" : "suppressed";
        const batch = projectBatch(outcomes);
        expect(batch.status).toBe(expected);
        expect("receipts" in batch ? batch.receipts.length : 0).toBe(sent);
      }),
    );
  });
});
