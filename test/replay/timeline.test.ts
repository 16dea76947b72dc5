import { describe, expect, it } from "vitest";
import { ulidOf } from "../support/ledger.js";
import { CONFIG, deniedPlan, PLAN, rewrittenCall, STAMPED } from "../support/stories.js";
import { tell } from "../support/timelines.js";

describe("timeline of a denied plan", () => {
  it("should tell who was called when, for how long, seeing what and saying what", async () => {
    const { links } = await tell(deniedPlan);
    expect(
      links.map(({ id, called, settled, tookNs, said, warnings }) => ({
        id,
        at: called && [called.atNs, settled?.atNs],
        saw: called?.saw,
        tookNs,
        said,
        warnings,
      })),
    ).toStrictEqual([
      { id: "kernel:policy", at: [100_000, 600_000], saw: 1, tookNs: 500_000, said: { kind: "policy" }, warnings: [] },
      {
        id: "log",
        at: [700_000, 6_000_000],
        saw: 2,
        tookNs: 5_300_000,
        said: { kind: "ack" },
        warnings: ["carried a payload, which is ignored"],
      },
      {
        id: "metrics",
        at: [700_000, 4_200_000],
        saw: 2,
        tookNs: 3_500_000,
        said: { kind: "failed", error: { category: "UNKNOWN", message: "no such series" } },
        warnings: [],
      },
      {
        id: "gate",
        at: [6_100_000, 9_900_000],
        saw: 2,
        tookNs: 3_800_000,
        said: { kind: "deny", reason: "too many items" },
        warnings: [],
      },
      {
        id: "second",
        at: null,
        saw: undefined,
        tookNs: null,
        said: { kind: "not-called", because: { kind: "denied", by: "gate" } },
        warnings: [],
      },
      {
        id: "after",
        at: null,
        saw: undefined,
        tookNs: null,
        said: { kind: "skipped", why: "switched off" },
        warnings: [],
      },
    ]);
  });

  it("should tell the head of the record and what came of it", async () => {
    const { links: _, versions: __, plan: ___, verdict, ...head } = await tell(deniedPlan);
    expect(head).toStrictEqual({
      dispatchId: ulidOf(1),
      point: "plan-ready",
      composition: "chain",
      vetoBearing: true,
      observe: "concurrent",
      budgetMs: null,
      session: "session-1",
      turn: "turn-2",
      startedAt: "2026-02-28T09:30:00.000Z",
      engineVersion: "0.1.0",
      redacted: false,
      blocksOnFailure: false,
      end: null,
      withdrawn: null,
      conclusion: { revision: 9, atNs: 10_000_000 },
      abortedBy: null,
      inFlight: [],
      config: { digest: CONFIG.digest, status: "found" },
      spanNs: 10_000_000,
      events: { told: 10, recorded: 10 },
      violation: null,
    });
    expect(verdict).toMatchObject({ decision: "deny", decidedBy: "gate", reason: "too many items", allowed: false });
  });

  it("should tell each item's rule, as it stood in the configuration of then", async () => {
    const { plan } = await tell(deniedPlan);
    expect(
      plan.map(({ itemId, decision, decidedBy, reason, origin }) => ({ itemId, decision, decidedBy, reason, origin })),
    ).toStrictEqual([
      {
        itemId: "i1",
        decision: "allow",
        decidedBy: "policy:reads",
        reason: null,
        origin: {
          kind: "rule",
          rule: {
            name: "reads",
            match: { kind: "data_source" },
            action: "allow",
            reason: null,
            place: { file: "agent.hcl", line: 20, col: 1 },
          },
        },
      },
      {
        itemId: "i2",
        decision: "deny",
        decidedBy: "policy:no-root",
        reason: "nobody runs this unseen",
        origin: {
          kind: "rule",
          rule: {
            name: "no-root",
            match: { tool_name: "bash", risk: "critical" },
            action: "deny",
            reason: "nobody runs this unseen",
            place: { file: "agent.hcl", line: 12, col: 1 },
          },
        },
      },
      { itemId: "i3", decision: "ask", decidedBy: "policy:default", reason: null, origin: { kind: "default" } },
    ]);
    expect(plan[1]!.item).toStrictEqual({
      provider: "shell",
      toolName: "bash",
      kind: "resource",
      risk: "critical",
      description: "remove a folder",
    });
  });

  it("should tell what policy stamped on the plan", async () => {
    const { links, versions } = await tell(deniedPlan);
    expect(versions.map(({ number, ref, by, content }) => [number, ref.digest, by, content.kind])).toStrictEqual([
      [1, PLAN.ref.digest, null, "found"],
      [2, STAMPED.ref.digest, 0, "found"],
    ]);
    expect(links[0]!.change).toMatchObject({ from: 1, to: 2, difference: { more: 0 } });
    expect(links[0]!.change!.difference!.changes).toHaveLength(6);
    expect(links[0]!.change!.difference!.changes[0]).toStrictEqual({
      kind: "changed",
      path: "planReady.plan.items[0].decision",
      before: "PLAN_DECISION_PENDING",
      after: "PLAN_DECISION_ALLOW",
    });
  });
});

describe("timeline of a rewritten call", () => {
  it("should tell late answers apart, shadows, and rewrites that changed nothing", async () => {
    const { links, spanNs, conclusion, redacted, verdict } = await tell(rewrittenCall);
    expect(
      links.map(({ id, shadow, settled, said, change, lagMs }) => ({
        id,
        shadow,
        late: settled?.afterConclusion,
        said: said.kind,
        change: change && [change.from, change.to],
        lagMs,
      })),
    ).toStrictEqual([
      { id: "late", shadow: false, late: true, said: "ack", change: null, lagMs: null },
      { id: "redact", shadow: false, late: false, said: "transformed", change: [1, 2], lagMs: null },
      { id: "try", shadow: true, late: true, said: "transformed", change: [2, 3], lagMs: null },
      { id: "same", shadow: false, late: false, said: "transformed", change: [2, 2], lagMs: null },
      { id: "slow", shadow: false, late: true, said: "timeout", change: null, lagMs: 1 },
    ]);
    expect({ spanNs, redacted, at: conclusion?.atNs, allowed: verdict.allowed }).toStrictEqual({
      spanNs: 8_000_000,
      redacted: true,
      at: 3_100_000,
      allowed: true,
    });
  });

  it("should tell a message put in front and another rewritten, and no more", async () => {
    const { links } = await tell(rewrittenCall);
    expect(links[1]!.change!.difference).toStrictEqual({
      changes: [
        {
          kind: "added",
          path: "preModelCall.messages[0]",
          after: { role: "ROLE_USER", content: [{ text: { text: "be kind" } }] },
        },
        {
          kind: "changed",
          path: "preModelCall.messages[2].content[0].text.text",
          before: "my key is hunter2, keep it",
          after: "my key is [gone], keep it",
        },
      ],
      more: 0,
    });
    expect(links[3]!.change!.difference).toStrictEqual({ changes: [], more: 0 });
  });
});
