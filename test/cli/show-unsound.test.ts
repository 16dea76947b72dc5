import { describe, expect, it } from "vitest";
import { chain } from "../support/given.js";
import { at, record, ulidOf } from "../support/ledger.js";
import { shown } from "../support/shown.js";
import { deniedPlan, messages, startedWith } from "../support/stories.js";

const INPUT = messages("one");
const call = (atMs: number, index: number) => at(atMs, { type: "subscriber-invoked", index, saw: INPUT.ref.digest });

describe("show of a record that is not sound", () => {
  it("should show what can be told, and say loudly where it ends", async () => {
    const text = await shown(deniedPlan, {}, (stream) => ({
      ...stream,
      events: stream.events.slice(0, 8).concat(stream.events[9]!),
    }));
    expect(text.split("\n").slice(0, 6)).toStrictEqual([
      `open  plan-ready  ${ulidOf(1)}`,
      "  The verdict cannot be told: the record breaks off before it.",
      "  when     2026-02-28T09:30:00.000Z, not concluded after 6.1 ms",
      "  record   8 of 9 events, written by hookledger 0.1.0",
      "  session  session-1",
      "  turn     turn-2",
    ]);
    expect(text).toContain(
      "  WARNING  the record breaks off at event 8 (missing_event): expected revision 8, found revision 9\n",
    );
    expect(text).toContain(`hookledger verify ${ulidOf(1)}`);
    expect(text).toContain("called, nothing more is recorded");
  });

  it("should say that a record was touched even where it folds", async () => {
    const text = await shown(deniedPlan, {}, (stream) => ({
      ...stream,
      events: stream.events.with(8, {
        ...stream.events[8]!,
        data: stream.events[8]!.data.replace("too many items", "too few items"),
      }),
    }));
    expect(text).toContain("too few items");
    expect(text).not.toContain("verified");
    expect(text).toContain("  WARNING  the record does not verify at event 8 (chain): ");
  });

  it("should say that nothing can be told where the start cannot be read", async () => {
    const text = await shown(deniedPlan, {}, (stream) => ({
      ...stream,
      events: stream.events.with(0, { ...stream.events[0]!, data: "{}" }),
    }));
    expect(text).toMatchInlineSnapshot(`
      "unreadable  01K00000000000000000000001
        Nothing can be told of this dispatch but that it was recorded.
        events   10 recorded, none of them can be told
        WARNING  the record breaks off at event 0 (unknown_version): expected an event of this version, found reducer version undefined
                 what follows is what stands in the ledger, not what is proven: hookledger verify 01K00000000000000000000001"
    `);
  });

  it("should say which payloads are gone", async () => {
    const after = messages("b");
    const text = await shown((store) =>
      record(store, {
        n: 9,
        kept: [after],
        happenings: [
          at(0, startedWith(9, chain("transform"), INPUT, { vetoBearing: false })),
          call(1, 0),
          at(2, { type: "outcome", index: 0, class: "transformed", payload: after.ref }),
        ],
      }),
    );
    expect(text).toContain("     v1 cannot be compared: the bytes are gone: erased, or never kept\n");
    expect(text).toMatch(
      / {2}v1 {2}the input +sha256:[0-9a-f]{64} {2}\d+ B {2}the bytes are gone: erased, or never kept$/m,
    );
  });
});
