import { describe, expect, it } from "vitest";
import { chain, deny, failed } from "../support/given.js";
import { at, kept, record } from "../support/ledger.js";
import { shown } from "../support/shown.js";
import { CONFIG, messages, startedWith } from "../support/stories.js";

const EVIL = "\u001b[31mev\u0007il\u009b2J\r\nallowed  forged\u2028\u202e\u200b\ufeff";

describe("foreign text in show", () => {
  it("should neither act on the terminal nor pass for a line of ours", async () => {
    const plan = kept({
      planReady: { plan: { turnId: EVIL, items: [{ ...ITEM, input: { [EVIL]: EVIL } }] } },
    });
    const text = await shown(
      (store) =>
        record(store, {
          n: 9,
          session: EVIL,
          turn: EVIL,
          engineVersion: EVIL,
          kept: [plan],
          blobs: [CONFIG],
          happenings: [
            at(
              0,
              startedWith(
                9,
                chain("policy", "observe", "veto", "observe~skip").map((subscriber) => ({
                  ...subscriber,
                  ...(subscriber.mode === "policy" ? {} : { id: `${EVIL}${subscriber.index}` }),
                  ...(subscriber.skip === undefined ? {} : { skip: EVIL }),
                  producer: { name: EVIL, source: EVIL, version: EVIL },
                })),
                plan,
                { point: EVIL },
              ),
            ),
            at(1, { type: "subscriber-invoked", index: 0, saw: plan.ref.digest }),
            at(2, {
              type: "outcome",
              index: 0,
              class: "policy",
              payload: plan.ref,
              items: [{ itemId: EVIL, decision: "ask", decidedBy: EVIL, reason: EVIL }],
            }),
            at(3, { type: "subscriber-invoked", index: 1, saw: plan.ref.digest }),
            at(4, { ...failed(1, "UNKNOWN", EVIL), warnings: [EVIL] }),
            at(5, { type: "subscriber-invoked", index: 2, saw: plan.ref.digest }),
            at(6, deny(2, EVIL)),
            at(7, { type: "decided", decision: "deny", decidedBy: `${EVIL}2`, payload: plan.ref.digest }),
          ],
        }),
      { verbose: true },
    );
    expect(text.match(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu)!.every((control) => control === "\n")).toBe(true);
    const first = text.split("\n")[0]!;
    expect(first.startsWith("denied  \\u{1b}[31mev")).toBe(true);
    const starts = new Set(
      text
        .split("\n")
        .slice(1)
        .map((line) => (line.startsWith("  ") ? "" : line)),
    );
    expect([...starts]).toStrictEqual(["", "Chain", "Subscribers", "Plan", "Payloads"]);
    expect(text).toContain("       │ allowed  forged\\u{2028}");
  });

  it("should bound what is long", async () => {
    const flood = "x".repeat(1_000_000);
    const text = await shown((store) => {
      const before = messages(flood);
      const after = messages(`${flood}y`);
      return record(store, {
        n: 9,
        kept: [before, after],
        happenings: [
          at(0, startedWith(9, chain("transform"), before, { vetoBearing: false })),
          at(1, { type: "subscriber-invoked", index: 0, saw: before.ref.digest }),
          at(2, { type: "outcome", index: 0, class: "transformed", payload: after.ref }),
        ],
      });
    });
    expect(text.length).toBeLessThan(4000);
    expect(text).toContain(
      `     ~ preModelCall.messages[0].content[0].text.text  …"${"x".repeat(16)}" → …"${"x".repeat(16)}y"`,
    );
  });
});

const ITEM = {
  id: EVIL,
  callId: EVIL,
  provider: EVIL,
  operationName: EVIL,
  decision: "PLAN_DECISION_PENDING",
  decidedBy: "",
  kind: "TOOL_KIND_RESOURCE",
  risk: "RISK_CLASS_LOW",
  description: EVIL,
  producerCategory: "CATEGORY_TOOL",
} as const;
