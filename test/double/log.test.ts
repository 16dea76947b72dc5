import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { EventLog } from "../support/eventstoredb/log.mjs";
import type { Proposed, Recorded } from "../support/eventstoredb/types.js";

function propose(type = "t", data: object = {}): Proposed {
  return { id: randomUUID(), type, json: true, data: Buffer.from(JSON.stringify(data)), metadata: new Uint8Array() };
}

function revisions(log: EventLog, stream: string, direction: "forwards" | "backwards" = "forwards"): number[] | string {
  const from = direction === "forwards" ? "start" : "end";
  const read = log.readStream(stream, { direction, from, max: 1000 });
  return read.kind === "events" ? read.events.map((event) => event.revision) : read.kind;
}

function everything(log: EventLog): Recorded[] {
  return Array.from({ length: log.length }, (_, index) => log.at(index)).filter((event) => event !== undefined);
}

function withMetadata(metadata: object, count = 5, now?: () => number): EventLog {
  const log = new EventLog(now === undefined ? {} : { now });
  log.append(
    "s",
    "none",
    Array.from({ length: count }, () => propose()),
  );
  log.append("$$s", "any", [propose("$metadata", metadata)]);
  return log;
}

describe("the log of the double", () => {
  it("should give positions that ascend and are not dense, and begin with an event of the system", () => {
    const log = new EventLog();
    log.append("s", "any", [propose(), propose()]);
    const [first, second, third] = everything(log);
    expect([first?.stream, first?.position]).toEqual(["$user-admin", 0]);
    expect((second?.position ?? 0) + 1).toBeLessThan(third?.position ?? 0);
  });

  it("should be a plain list of streams for exact appends in any order", () => {
    const step = fc.record({
      stream: fc.constantFrom("a", "b"),
      count: fc.integer({ min: 1, max: 3 }),
      off: fc.integer({ min: -2, max: 2 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
        const log = new EventLog();
        const model = new Map<string, number>();
        for (const { stream, count, off } of steps) {
          const last = (model.get(stream) ?? 0) - 1;
          const expected = last + off < 0 ? "none" : last + off;
          const appended = log.append(
            stream,
            expected,
            Array.from({ length: count }, () => propose()),
          );
          const right = (expected === "none" ? -1 : expected) === last;
          expect(appended.kind).toBe(right ? "written" : "wrong-version");
          if (right) model.set(stream, last + 1 + count);
        }
        for (const [stream, count] of model) expect(revisions(log, stream)).toHaveLength(count);
      }),
    );
  });

  it("should not take an id for a name that is taken", () => {
    const log = new EventLog();
    const event = propose();
    expect(log.append("a", "none", [event]).kind).toBe("written");
    expect(log.append("a", 0, [event]).kind).toBe("written");
    expect(log.append("b", "none", [event]).kind).toBe("written");
  });

  it("should forget by a restart what it knew of ids, for any, and not for an exact revision", () => {
    const log = new EventLog();
    const event = propose();
    log.append("a", "none", [event]);
    expect(log.append("a", "any", [event]).kind).toBe("repeated");
    log.forgetIds();
    expect(log.append("a", "none", [event]).kind).toBe("repeated");
    expect(log.append("a", "any", [event]).kind).toBe("written");
  });
});

describe("what metadata hides", () => {
  it("should be all but the last $maxCount events, from reads of the stream only", () => {
    const log = withMetadata({ $maxCount: 2 });
    expect(revisions(log, "s")).toEqual([3, 4]);
    expect(revisions(log, "s", "backwards")).toEqual([4, 3]);
    expect(everything(log).filter((event) => event.stream === "s")).toHaveLength(5);
  });

  it("should be events older than $maxAge seconds", () => {
    let now = 1_000_000;
    const log = withMetadata({ $maxAge: 10 }, 2, () => now);
    now += 10_000;
    expect(revisions(log, "s")).toEqual([0, 1]);
    log.append("s", 1, [propose()]);
    now += 1;
    expect(revisions(log, "s")).toEqual([2]);
  });

  it("should be events before $tb, the stream itself staying there", () => {
    expect(revisions(withMetadata({ $tb: 3 }), "s")).toEqual([3, 4]);
    expect(revisions(withMetadata({ $tb: 99 }), "s")).toEqual([]);
  });

  it("should leave only the last event of a metadata stream", () => {
    const log = withMetadata({ $maxCount: 2 });
    log.append("$$s", "any", [propose("$metadata", {})]);
    expect(revisions(log, "$$s")).toEqual([1]);
    expect(revisions(log, "s")).toEqual([0, 1, 2, 3, 4]);
  });

  it("should not keep a repetition from being one, only its position from being known", () => {
    const log = new EventLog();
    const event = propose();
    log.append("s", "none", [event, propose()]);
    log.append("$$s", "any", [propose("$metadata", { $tb: 1 })]);
    expect(log.append("s", "none", [event])).toEqual({ kind: "repeated", revision: 0, position: null, bytes: 0 });
  });
});

describe("a soft delete", () => {
  it("should make the stream missing, and the next append go on counting", () => {
    const log = withMetadata({});
    expect(log.remove("s", 4).kind).toBe("removed");
    expect(revisions(log, "s")).toBe("not-found");
    expect(log.append("s", "none", [propose()])).toMatchObject({ kind: "written", revision: 5 });
    expect(revisions(log, "s")).toEqual([5]);
  });

  it("should want the version that it names", () => {
    const log = withMetadata({});
    expect(log.remove("s", 3)).toEqual({ kind: "wrong-version", current: 4 });
    expect(log.remove("s", "none")).toEqual({ kind: "wrong-version", current: 4 });
    expect(log.remove("s", "any").kind).toBe("removed");
  });

  it("should be undone by metadata, which hides what was there before", () => {
    const log = withMetadata({});
    log.remove("s", "any");
    log.append("$$s", "any", [propose("$metadata", { $maxCount: 9 })]);
    expect(revisions(log, "s")).toEqual([]);
    log.append("s", 4, [propose()]);
    expect(revisions(log, "s")).toEqual([5]);
  });
});

describe("a tombstone", () => {
  it("should end the stream and its metadata for ever", () => {
    const log = withMetadata({});
    expect(log.tombstone("s", "any").kind).toBe("removed");
    expect(revisions(log, "s")).toBe("deleted");
    expect(log.append("s", "any", [propose()]).kind).toBe("deleted");
    expect(log.append("$$s", "any", [propose()]).kind).toBe("deleted");
    expect(log.tombstone("s", "any").kind).toBe("deleted");
    expect(everything(log).at(-1)?.type).toBe("$streamDeleted");
  });
});
