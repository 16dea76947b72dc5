import { describe, expect, it } from "vitest";
import type { TimelineLink } from "#src/replay/timeline.js";
import { aborted } from "../support/given.js";
import { keptJson } from "../support/ledger.js";
import {
  abandonedMessage,
  blockedMessage,
  cancelledMessage,
  cancelledReply,
  claimedMessage,
  defines,
  openMessage,
  rewrittenMessage,
  run,
  SENDING,
  sentMessage,
  shortenedReply,
  unclaimedMessage,
} from "../support/stories-messages.js";
import { tell } from "../support/timelines.js";

function saids(links: readonly TimelineLink[]) {
  return links.map(({ id, said }) => ({ id, said }));
}

describe("timeline of a claim", () => {
  it("should tell who declined, failed, was not meant, claimed, and was never called", async () => {
    const { links, end, composition, verdict } = await tell(claimedMessage);
    expect({ end, composition, by: verdict.decidedBy }).toEqual({ end: "claimed", composition: "claim", by: "faq" });
    expect(saids(links)).toStrictEqual([
      { id: "shy", said: { kind: "declined" } },
      { id: "broken", said: { kind: "failed", error: { category: "UNKNOWN", message: "no such table" } } },
      { id: "other", said: { kind: "skipped", why: "switched off" } },
      { id: "faq", said: { kind: "claimed" } },
      { id: "late", said: { kind: "not-called", because: { kind: "claimed", by: "faq" } } },
    ]);
  });

  it("should tell its result whole, as a payload of its own", async () => {
    const { links, versions } = await tell(claimedMessage);
    expect(versions.map(({ number, role, by }) => ({ number, role, by }))).toEqual([
      { number: 1, role: "input", by: null },
      { number: 2, role: "result", by: 3 },
    ]);
    expect(links[3]!.change).toStrictEqual({
      from: 1,
      to: 2,
      compared: [1, 2],
      difference: {
        more: 0,
        changes: [
          { kind: "added", path: "handled", after: true },
          { kind: "added", path: "text", after: "Hello yourself." },
        ],
      },
    });
  });

  it("should tell that nobody claimed", async () => {
    expect(await tell(unclaimedMessage)).toMatchObject({ end: "unclaimed", withdrawn: null, inFlight: [] });
  });
});

describe("timeline of a rewrite", () => {
  it("should tell what each handler defined, against the original", async () => {
    const { links, end, versions } = await tell(rewrittenMessage);
    expect(end).toBe("passed");
    expect(versions.map(({ role, by }) => [role, by])).toEqual([
      ["input", null],
      ["content", 0],
      ["metadata", 1],
      ["content", 3],
    ]);
    expect(saids(links)).toStrictEqual([
      { id: "scrub", said: { kind: "rewritten", defines: [{ field: "content", version: 2 }] } },
      { id: "mark", said: { kind: "rewritten", defines: [{ field: "metadata", version: 3 }] } },
      { id: "slow", said: { kind: "timeout", budgetMs: 15, own: true } },
      { id: "polite", said: { kind: "rewritten", defines: [{ field: "content", version: 4 }] } },
    ]);
    expect(links.map(({ called }) => called?.saw)).toEqual([1, 1, 1, 1]);
    expect(links.map(({ change }) => change?.difference?.changes)).toEqual([
      [{ kind: "changed", path: "content", before: "my key is hunter2", after: "my key is [gone]" }],
      [{ kind: "added", path: "metadata", after: { score: 3, tags: ["a"] } }],
      undefined,
      [{ kind: "changed", path: "content", before: "my key is hunter2", after: "My key is hunter2, please." }],
    ]);
  });

  it("should tell who cancelled and why, and what came with it", async () => {
    const { links, verdict, end } = await tell(cancelledMessage);
    expect({ end, decidedBy: verdict.decidedBy, reason: verdict.reason }).toEqual({
      end: "cancelled",
      decidedBy: "guard",
      reason: "it names a key",
    });
    expect(saids(links).slice(1)).toStrictEqual([
      {
        id: "guard",
        said: {
          kind: "cancelled",
          reason: "it names a key",
          defines: [
            { field: "content", version: 3 },
            { field: "cancelReason", version: 4 },
            { field: "metadata", version: 5 },
          ],
        },
      },
      { id: "polite", said: { kind: "not-called", because: { kind: "cancelled", by: "guard" } } },
    ]);
  });

  it("should tell the reason that was defined last, whoever cancelled", async () => {
    const { verdict } = await tell((store) => {
      const told = run(1, "message_sending", "rewrite", ["a", "b"], SENDING).start().call(1, 0);
      const reason = told.keep("said before");
      return told
        .happen(2, defines(0, { cancelReason: reason }))
        .call(3, 1)
        .happen(4, { type: "outcome", index: 1, class: "cancelled" })
        .decide(4, "deny", "b")
        .record(store);
    });
    expect(verdict.reason).toBe("said before");
  });

  it("should tell of a reason that cannot be read that there is one", async () => {
    const { verdict, links, versions } = await tell((store) => {
      const told = run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
      const { ref } = keptJson("never kept");
      return told
        .happen(2, { type: "outcome", index: 0, class: "cancelled", set: { cancelReason: ref } })
        .decide(3, "deny", "a")
        .record(store);
    });
    expect(verdict).toMatchObject({ decision: "deny", reason: null });
    expect(versions[1]).toMatchObject({ role: "cancelReason", content: { kind: "missing" } });
    expect(links[0]).toMatchObject({ change: { difference: null, compared: [1, 2] } });
  });

  it("should tell that a failure blocked it, and whose", async () => {
    const { end, blocksOnFailure, verdict, links } = await tell(blockedMessage);
    expect({ end, blocksOnFailure, by: verdict.decidedBy }).toEqual({
      end: "blocked",
      blocksOnFailure: true,
      by: "guard",
    });
    expect(links[1]!.said).toEqual({ kind: "not-called", because: { kind: "blocked", by: "guard" } });
  });
});

describe("timeline of a waterfall", () => {
  it("should tell what each handler saw, and changed of that", async () => {
    const { links, end } = await tell(shortenedReply);
    expect(end).toBe("passed");
    expect(links.map(({ called }) => called?.saw)).toEqual([1, 2, 2]);
    expect(links.map(({ change }) => change?.difference?.changes)).toEqual([
      [{ kind: "changed", path: "event.payload.text", before: "one two three", after: "one" }],
      undefined,
      [{ kind: "added", path: "event.payload.audioAsVoice", after: true }],
    ]);
    expect(links[0]!.said).toEqual({ kind: "rewritten", defines: [] });
  });

  it("should tell who cancelled and why", async () => {
    const { end, verdict, links } = await tell(cancelledReply);
    expect({ end, reason: verdict.reason }).toEqual({ end: "cancelled", reason: "it is late" });
    expect(links[1]!.said).toEqual({ kind: "cancelled", reason: "it is late", defines: [] });
  });
});

describe("timeline of a notification", () => {
  it("should tell who was told when, and who failed", async () => {
    const { end, links } = await tell(sentMessage);
    expect(end).toBe("notified");
    expect(links.map(({ said, tookNs }) => [said.kind, tookNs])).toEqual([
      ["ack", 2_000_000],
      ["failed", 1_000_000],
      ["ack", 59_000_000],
    ]);
  });

  it("should tell of one that is open as far as it goes", async () => {
    const { end, verdict, links } = await tell(openMessage);
    expect({ end, status: verdict.status }).toEqual({ end: null, status: "open" });
    expect(links.map(({ said }) => said)).toEqual([
      { kind: "in-flight", until: null },
      { kind: "in-flight", until: null },
    ]);
  });
});

describe("timeline of a run that was given up", () => {
  it("should tell who was in flight, and come to no end", async () => {
    const { end, verdict, inFlight, links } = await tell(abandonedMessage);
    expect({ end, cause: verdict.abortCause, inFlight }).toEqual({ end: null, cause: "cancelled", inFlight: [0] });
    expect(links[1]!.said).toEqual({ kind: "not-called", because: { kind: "aborted", cause: "cancelled", by: null } });
  });

  it("should keep what a withdrawn decision had come to", async () => {
    const { end, withdrawn, verdict, links } = await tell((store) => {
      const told = run(1, "message_sending", "rewrite", ["a", "b"], SENDING).start().call(1, 0);
      return told
        .happen(2, { type: "outcome", index: 0, class: "cancelled" })
        .decide(3, "deny", "a")
        .happen(4, aborted("unconfirmed"))
        .record(store);
    });
    expect({ end, by: withdrawn?.decidedBy, status: verdict.status }).toEqual({
      end: "cancelled",
      by: "a",
      status: "aborted",
    });
    expect(links[1]!.said).toEqual({ kind: "not-called", because: { kind: "cancelled", by: "a" } });
  });
});
