import { describe, expect, it } from "vitest";
import { timelineOf } from "#src/replay/timeline.js";
import { legibleRecord } from "#src/replay/timeline-record.js";
import { readSources } from "#src/replay/timeline-sources.js";
import { openMemoryStore } from "#src/store/memory.js";
import { chain } from "../support/given.js";
import { at, configBlob, kept, record, ulidOf } from "../support/ledger.js";
import { CONFIG, deniedPlan, messages, PLAN, STAMPED, startedWith, timedOut } from "../support/stories.js";
import { tell } from "../support/timelines.js";

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
    expect(links[0]!.change).toStrictEqual({ from: 1, to: 2, difference: null, compared: [1, 2] });
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
      { kind: "altered", found: unreadable.ref.digest },
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
