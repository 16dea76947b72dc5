import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dedupeKey, type Hold, InboundDedupe } from "#src/messages/inbound/dedupe.js";
import type { InboundMessage } from "#src/messages/inbound/message.js";
import { VirtualClock } from "../../support/virtual-clock.js";
import { MESSAGE } from "./gateway.js";

function held(hold: Hold | string): Hold {
  if (typeof hold === "string") throw new Error(`no hold: ${hold}`);
  return hold;
}

describe("the identity of an inbound message", () => {
  const key = (other: Partial<InboundMessage>) => dedupeKey({ ...MESSAGE, ...other });

  it("should be its channel, account, conversation and message id", () => {
    expect(key({ body: "again", from: "else", senderId: "else", runId: "r-2" })).toBe(key({}));
    for (const other of [{ channelId: "x" }, { accountId: "x" }, { conversationId: "x" }, { messageId: "x" }]) {
      expect(key(other)).not.toBe(key({}));
    }
  });

  it("should take an absent id and an empty one for the same", () => {
    const { accountId: _, conversationId: __, ...without } = MESSAGE;
    expect(dedupeKey(without)).toBe(key({ accountId: "", conversationId: "" }));
  });

  it("should be none without a message id", () => {
    const { messageId: _, ...without } = MESSAGE;
    expect([dedupeKey(without), key({ messageId: "" })]).toEqual([null, null]);
  });

  it("should be another once the provider tells of an edit, and the same for the same edit", () => {
    const edited = (editedTimestamp: number, id: string) =>
      key({ providerUpdate: { id, kind: "edited_message", editedTimestamp } });
    expect(new Set([key({}), edited(1, "u-1"), edited(2, "u-2")])).toHaveLength(3);
    expect(edited(1, "u-1")).toBe(edited(1, "u-3"));
    expect(key({ providerUpdate: { id: "u-4", kind: "message" } })).toBe(key({}));
  });

  it("should be short, however long the sender made his ids", () => {
    expect(key({ messageId: "x".repeat(1_000_000) })?.length).toBe(key({})?.length);
  });

  it("should tell apart whatever ids the sender makes up", () => {
    const id = fc.string({ maxLength: 4, unit: fc.constantFrom('"', ",", "\\", "|", ":", "a", "\ud800") });
    const ids = fc.record({
      channelId: id,
      accountId: id,
      conversationId: id,
      messageId: id.map((text) => `${text}!`),
    });
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        expect(key(a) === key(b)).toBe(JSON.stringify(Object.values(a)) === JSON.stringify(Object.values(b)));
      }),
    );
  });
});

describe("deduplication of inbound messages", () => {
  it("should drop a message that was taken", async () => {
    const dedupe = new InboundDedupe();
    held(await dedupe.hold("a")).take();
    expect(await dedupe.hold("a")).toBe("duplicate");
    held(await dedupe.hold("b"));
  });

  it("should let a message come again of which nothing became: it counts only once taken", async () => {
    const dedupe = new InboundDedupe();
    held(await dedupe.hold("a")).release();
    held(await dedupe.hold("a"));
  });

  it("should never take for a duplicate what cannot be told from others", async () => {
    const dedupe = new InboundDedupe();
    held(await dedupe.hold(null)).take();
    held(await dedupe.hold(null));
  });

  it("should have a concurrent duplicate wait, and drop it when the first is taken", async () => {
    const dedupe = new InboundDedupe();
    const first = held(await dedupe.hold("a"));
    const others = [dedupe.hold("a"), dedupe.hold("a")];
    first.take();
    expect(await Promise.all(others)).toEqual(["duplicate", "duplicate"]);
  });

  it("should hand a message of which nothing became to the one that has waited longest", async () => {
    const dedupe = new InboundDedupe();
    const first = held(await dedupe.hold("a"));
    const told: string[] = [];
    const second = dedupe.hold("a");
    const third = dedupe.hold("a").then((hold) => told.push(typeof hold === "string" ? hold : "held"));
    first.release();
    const heir = held(await second);
    expect(told).toEqual([]);
    heir.take();
    await third;
    expect(told).toEqual(["duplicate"]);
  });

  it("should let who waits leave with its turn, and pass it over", async () => {
    const dedupe = new InboundDedupe();
    const first = held(await dedupe.hold("a"));
    const leaving = new AbortController();
    const second = dedupe.hold("a", leaving.signal);
    const third = dedupe.hold("a");
    leaving.abort();
    expect(await second).toBe("aborted");
    first.release();
    held(await third);
    expect(await dedupe.hold("b", leaving.signal)).toBe("aborted");
  });

  it("should let a taken message come again when its dispatch is given back", async () => {
    const dedupe = new InboundDedupe();
    const first = held(await dedupe.hold("a"));
    first.take();
    first.giveBack();
    const second = held(await dedupe.hold("a"));
    second.take();
    first.giveBack();
    expect(await dedupe.hold("a")).toBe("duplicate");
  });

  it("should not give back what another dispatch took, once its own was forgotten", async () => {
    const clock = new VirtualClock();
    const dedupe = new InboundDedupe({ ms: 1000, now: () => clock.now() });
    const first = held(await dedupe.hold("a"));
    first.take();
    clock.block(1000);
    held(await dedupe.hold("a")).take();
    first.giveBack();
    expect(await dedupe.hold("a")).toBe("duplicate");
  });

  it("should not let go of what it took, nor give back what it did not take", async () => {
    const dedupe = new InboundDedupe();
    const first = held(await dedupe.hold("a"));
    first.giveBack();
    first.take();
    first.release();
    expect(await dedupe.hold("a")).toBe("duplicate");
  });

  it("should remember for its time only", async () => {
    const clock = new VirtualClock();
    const dedupe = new InboundDedupe({ ms: 1000, now: () => clock.now() });
    held(await dedupe.hold("a")).take();
    clock.block(999);
    expect(await dedupe.hold("a")).toBe("duplicate");
    clock.block(1);
    held(await dedupe.hold("a"));
  });

  it("should remember so many messages only, and forget the oldest first", async () => {
    const dedupe = new InboundDedupe({ entries: 2 });
    for (const key of ["a", "b", "c"]) held(await dedupe.hold(key)).take();
    held(await dedupe.hold("a")).release();
    expect([await dedupe.hold("b"), await dedupe.hold("c")]).toEqual(["duplicate", "duplicate"]);
  });

  it("should never forget a message that is held, however many others are taken", async () => {
    const dedupe = new InboundDedupe({ entries: 1 });
    const first = held(await dedupe.hold("a"));
    for (let n = 0; n < 10; n++) held(await dedupe.hold(`other ${n}`)).take();
    const second = dedupe.hold("a");
    first.take();
    expect(await second).toBe("duplicate");
  });

  it("should never have two at one message, and lose none that somebody would take, in whatever order things happen", async () => {
    const delivery = fc.record({
      key: fc.constantFrom("a", "b"),
      does: fc.constantFrom("take", "release", "abort" as const),
    });
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), fc.array(delivery, { maxLength: 12 }), async (scheduler, deliveries) => {
        const dedupe = new InboundDedupe();
        const holders = new Map<string, number>();
        const taken = new Map<string, number>();
        const count = (counts: Map<string, number>, key: string, by: number): number => {
          const now = (counts.get(key) ?? 0) + by;
          counts.set(key, now);
          return now;
        };
        const all = deliveries.map(async ({ key, does }) => {
          await scheduler.schedule(Promise.resolve(), "comes");
          const leaving = new AbortController();
          if (does === "abort") void scheduler.schedule(Promise.resolve(), "leaves").then(() => leaving.abort());
          const hold = await dedupe.hold(key, leaving.signal);
          if (typeof hold === "string") {
            if (hold === "duplicate") expect(taken.get(key)).toBe(1);
            return;
          }
          expect(count(holders, key, 1)).toBe(1);
          await scheduler.schedule(Promise.resolve(), "is done");
          count(holders, key, -1);
          if (does === "take") {
            expect(count(taken, key, 1)).toBe(1);
            hold.take();
          } else hold.release();
        });
        await scheduler.waitFor(Promise.all(all));
        for (const { key, does } of deliveries) if (does === "take") expect(taken.get(key)).toBe(1);
      }),
      { numRuns: 300 },
    );
  });
});
