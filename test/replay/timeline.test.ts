import { describe, expect, it } from "vitest";
import { type Timeline, timelineOf } from "#src/replay/timeline.js";
import { legibleRecord } from "#src/replay/timeline-record.js";
import { readSources } from "#src/replay/timeline-sources.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore, RecordedEvent, StreamName } from "#src/store/port.js";
import { aborted, brokenBy, chain, failed, hookError, lost, timeout } from "../support/given.js";
import { at, configBlob, kept, record, ulidOf } from "../support/ledger.js";
import {
  abandoned,
  CONFIG,
  deniedPlan,
  messages,
  open,
  PLAN,
  rewrittenCall,
  STAMPED,
  startedWith,
  timedOut,
  withdrawn,
} from "../support/stories.js";

async function tell(
  story: (store: EventStore) => Promise<StreamName>,
  change: (events: readonly RecordedEvent[]) => readonly RecordedEvent[] = (events) => events,
): Promise<Timeline> {
  const store = openMemoryStore();
  const stream = (await store.readStream(await story(store)))!;
  const read = legibleRecord({ ...stream, events: change(stream.events) });
  const timeline = timelineOf(read, await readSources(store, stream, read));
  if (timeline === null) throw new Error("nothing can be told");
  return timeline;
}

/** A dispatch at a veto-bearing point on one payload, told from its start on. */
function story(subscribers: ReturnType<typeof chain>, ...happenings: Parameters<typeof record>[1]["happenings"]) {
  const input = messages("one");
  const call = (atMs: number, index: number) =>
    at(atMs, { type: "subscriber-invoked", index, saw: input.ref.digest } as const);
  return {
    input,
    call,
    told: (...more: Parameters<typeof record>[1]["happenings"]) =>
      tell((store) =>
        record(store, {
          n: 9,
          kept: [input],
          happenings: [at(0, startedWith(9, subscribers, input)), ...happenings, ...more],
        }),
      ),
  };
}

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

describe("timeline of a record that is not whole", () => {
  it("should go as far as the record folds, and name what ended it", async () => {
    const timeline = await tell(deniedPlan, (events) => events.with(8, { ...events[8]!, data: events[6]!.data }));
    expect(timeline.events).toStrictEqual({ told: 8, recorded: 10 });
    expect(timeline.violation).toMatchObject({ revision: 8, kind: "illegal_event", found: "outcome ack of 1" });
    expect(timeline.verdict.status).toBe("open");
    expect(timeline.links[3]!.said).toStrictEqual({ kind: "in-flight", until: null });
  });

  it("should have nothing to tell without a start", () => {
    const stream = `hookdispatch-${ulidOf(1)}` as const;
    const event = { position: 1, stream, revision: 0, id: "x", type: "started", data: "{", metadata: "{}" };
    const read = legibleRecord({ stream, head: null, events: [event] });
    expect(read).toMatchObject({ begun: null, failure: { kind: "undecodable" } });
    expect(timelineOf(read, { payloads: new Map(), config: { kind: "missing" } })).toBeNull();
    expect(legibleRecord({ stream, head: null, events: [] }).failure).toMatchObject({ kind: "missing_event" });
  });

  it("should do without metadata that cannot be read", async () => {
    const { links, startedAt, spanNs } = await tell(timedOut, (events) =>
      events.map((event) => ({ ...event, metadata: "{}" })),
    );
    expect({ startedAt, spanNs }).toStrictEqual({ startedAt: null, spanNs: 0 });
    expect(links[0]).toMatchObject({ called: { atNs: null, saw: 1 }, tookNs: null, said: { kind: "timeout" } });
  });

  it("should say which payloads are gone, and compare nothing with them", async () => {
    const before = messages("a");
    const after = messages("b");
    const { links, versions } = await tell((store) =>
      record(store, {
        n: 9,
        kept: [after],
        happenings: [
          at(0, startedWith(9, chain("transform"), before, { vetoBearing: false })),
          at(1, { type: "subscriber-invoked", index: 0, saw: before.ref.digest }),
          at(2, { type: "outcome", index: 0, class: "transformed", payload: after.ref }),
        ],
      }),
    );
    expect(versions.map(({ content }) => content.kind)).toStrictEqual(["missing", "found"]);
    expect(links[0]!.change).toStrictEqual({ from: 1, to: 2, difference: null });
  });

  it("should say which payloads were altered, cannot be read, or are too large", async () => {
    const store = openMemoryStore();
    const [altered, unreadable, large] = [messages("a"), messages("b"), messages("c".repeat(5000))];
    const swapped = { ref: altered.ref, bytes: unreadable.bytes };
    const stream = await record(store, {
      n: 9,
      kept: [swapped, large],
      happenings: [
        at(0, startedWith(9, chain("transform"), altered, { vetoBearing: false })),
        at(1, { type: "subscriber-invoked", index: 0, saw: altered.ref.digest }),
        at(2, { type: "outcome", index: 0, class: "transformed", payload: large.ref }),
      ],
    });
    const found = (await store.readStream(stream))!;
    const read = legibleRecord(found);
    const { payloads } = await readSources(store, found, read, 4000);
    expect([...payloads.values()]).toStrictEqual([
      { kind: "altered", digest: unreadable.ref.digest },
      { kind: "large" },
    ]);
  });

  it("should say why a rule cannot be shown", async () => {
    const policy = {
      type: "outcome",
      index: 0,
      class: "policy",
      payload: STAMPED.ref,
      items: [{ itemId: "i1", decision: "deny", decidedBy: "policy:gone" }],
    } as const;
    const origins = async (blobs: Parameters<typeof record>[1]["blobs"], configDigest = CONFIG.digest) =>
      (
        await tell((store) =>
          record(store, {
            n: 9,
            kept: [PLAN, STAMPED],
            ...(blobs === undefined ? {} : { blobs }),
            happenings: [
              at(0, startedWith(9, chain("policy"), PLAN, { point: "plan-ready", configDigest })),
              at(1, { type: "subscriber-invoked", index: 0, saw: PLAN.ref.digest }),
              at(2, policy),
            ],
          }),
        )
      ).plan.map(({ origin }) => origin);
    const unreadable = configBlob({});
    expect(await origins([CONFIG])).toStrictEqual([{ kind: "unknown", config: "found" }]);
    expect(await origins([])).toStrictEqual([{ kind: "unknown", config: "missing" }]);
    expect(await origins([{ ...CONFIG, bytes: new Uint8Array([1]) }])).toStrictEqual([
      { kind: "unknown", config: "altered" },
    ]);
    expect(await origins([unreadable], unreadable.digest)).toStrictEqual([{ kind: "unknown", config: "found" }]);
  });

  it("should tell an item that came in denied as denied before, whatever a rule of that name says", async () => {
    const item = {
      id: "i1",
      callId: "c",
      provider: "fs",
      operationName: "read",
      decision: "PLAN_DECISION_DENY",
      decidedBy: "policy:reads",
    } as const;
    const plan = kept({
      planReady: {
        plan: {
          turnId: "t",
          items: [
            {
              ...item,
              producerCategory: "CATEGORY_TOOL",
              description: "",
              kind: "TOOL_KIND_RESOURCE",
              risk: "RISK_CLASS_LOW",
            },
          ],
        },
      },
    });
    const timeline = await tell((store) =>
      record(store, {
        n: 9,
        kept: [plan],
        blobs: [CONFIG],
        happenings: [
          at(0, startedWith(9, chain("policy"), plan, { point: "plan-ready" })),
          at(1, { type: "subscriber-invoked", index: 0, saw: plan.ref.digest }),
          at(2, {
            type: "outcome",
            index: 0,
            class: "policy",
            payload: plan.ref,
            items: [{ itemId: "i1", decision: "deny", decidedBy: "policy:reads" }],
          }),
        ],
      }),
    );
    expect(timeline.plan[0]!.origin).toStrictEqual({ kind: "earlier" });
  });
});
