/** The lane of one stream on a log that answers when the test says so. */
import { describe, expect, it } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { Lane } from "#src/store/eventstoredb/lane.js";
import type { Expected, ServerDraft, ServerEvent, ServerLog, Written } from "#src/store/eventstoredb/server-log.js";
import type { AppendRequest, AppendResult } from "#src/store/port.js";
import { draft, further, numbered, opening, stream } from "../support/store-fixtures.js";

type Call = {
  readonly expected: Expected;
  readonly drafts: readonly ServerDraft[];
  readonly write: () => void;
  readonly fail: (
    code: "HL_STORE_CONFLICT" | "HL_STORE_AMBIGUOUS" | "HL_STORE_UNAVAILABLE" | "HL_STORE_DENIED",
  ) => void;
};

/** A server of one stream, by whose rules nothing is ever checked but the revision. */
class HeldLog implements ServerLog {
  readonly events: ServerEvent[] = [];
  readonly calls: Call[] = [];

  append(name: string, expected: Expected, drafts: readonly ServerDraft[]): Promise<Written> {
    return new Promise((resolve, reject) => {
      const fail: Call["fail"] = (code) => reject(new HookledgerError(code, "as the test says"));
      const write = (): void => {
        if (expected !== "any" && (expected === "none" ? -1 : expected) !== this.events.length - 1) {
          fail("HL_STORE_CONFLICT");
          return;
        }
        for (const { id, type, content } of drafts) {
          const revision = this.events.length;
          this.events.push({ stream: name, revision, position: revision + 1, id, type, content });
        }
        resolve({ revision: this.events.length - 1, position: this.events.length });
      };
      this.calls.push({ expected, drafts, write, fail });
    });
  }

  async readStream(_: string, options: Parameters<ServerLog["readStream"]>[1]): Promise<readonly ServerEvent[] | null> {
    if (this.events.length === 0) return null;
    if (options.direction === "backward") return this.events.slice(-options.max).reverse();
    return this.events.slice(options.from, options.from + options.max);
  }

  readAll = async (): Promise<readonly ServerEvent[]> => [];
  deleteStream = async (): Promise<void> => {};
}

const STALE = 20 * 60 * 1000;

function laneOn(log: ServerLog) {
  let now = 0;
  let kept = 0;
  const enlisted = Promise.resolve();
  const lane = new Lane(stream(1), {
    log,
    time: { now: () => now, wall: () => now, pause: async () => {} },
    enlist: () => ({ sent: null, written: enlisted }),
    keep: async () => {
      kept++;
      return { since: { now, wall: now } };
    },
    isStale: ({ since }) => now - since.now > STALE,
  });
  return {
    take: (request: AppendRequest, ms = 60_000) =>
      new Promise<AppendResult>((resolve, reject) => lane.take({ request, resolve, reject, ms })),
    pass: (ms: number) => {
      now += ms;
    },
    idle: () => lane.idle,
    kept: () => kept,
  };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a lane", () => {
  it("should let appends to a stream of its own follow each other without waiting", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const appends = [lane.take(opening(1)), lane.take(further(1, 1)), lane.take(further(1, 2, 2))];
    expect(log.calls.map(({ expected }) => expected)).toEqual(["none", 0, 1]);
    for (const { write } of log.calls) write();
    expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual([0, 1, 3]);
    expect(lane.idle()).toBe(true);
  });

  it("should send nothing behind what is not acknowledged once somebody else may have taken the stream", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const first = lane.take(opening(1));
    log.calls[0]?.write();
    await first;
    lane.pass(10_000);
    log.events.push({ ...log.events[0]!, revision: 1, id: "00000000-0000-8000-8000-000000000000" });
    const late = [lane.take(further(1, 1)), lane.take(further(1, 2))];
    expect(log.calls).toHaveLength(2);
    log.calls[1]?.write();
    for (const append of late) await expect(append).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    expect(log.calls).toHaveLength(2);
    expect(log.events).toHaveLength(2);
  });

  it("should wait for each append to a stream that it has not begun", async () => {
    const log = new HeldLog();
    const before = laneOn(log);
    const first = before.take(opening(1));
    log.calls[0]?.write();
    await first;
    const lane = laneOn(log);
    const appends = [lane.take(further(1, 1)), lane.take(further(1, 2))];
    await settled();
    expect(log.calls).toHaveLength(2);
    log.calls[1]?.write();
    await settled();
    expect(log.calls).toHaveLength(3);
    log.calls[2]?.write();
    await Promise.all(appends);
  });

  it("should send what did not arrive again, the same, and only that", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const appends = [lane.take(opening(1)), lane.take(further(1, 1)), lane.take(further(1, 2))];
    const [a, b, c] = log.calls;
    a?.write();
    b?.fail("HL_STORE_UNAVAILABLE");
    c?.write();
    await expect.poll(() => log.calls.length).toBe(4);
    expect(log.calls[3]?.drafts).toEqual(b?.drafts);
    log.calls[3]?.write();
    await expect.poll(() => log.calls.length).toBe(5);
    expect(log.calls[4]?.drafts).toEqual(c?.drafts);
    log.calls[4]?.write();
    expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual([0, 1, 2]);
  });

  it("should find what was written although nobody said so", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const append = lane.take(opening(1, 2));
    log.calls[0]?.write();
    const other = laneOn(log);
    const again = other.take(opening(1, 2));
    log.calls[1]?.fail("HL_STORE_AMBIGUOUS");
    expect(await again).toEqual(await append);
    expect(log.calls).toHaveLength(2);
  });

  it("should say in time what it knows", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const flying = lane.take(opening(1), 20);
    await expect(flying).rejects.toMatchObject({ code: "HL_STORE_AMBIGUOUS" });
    const waiting = laneOn(new HeldLog()).take(further(1, 1), 20);
    await expect(waiting).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    const down = new HeldLog();
    down.readStream = async () => {
      throw new HookledgerError("HL_STORE_UNAVAILABLE", "nobody is there");
    };
    await expect(laneOn(down).take(further(1, 1), 20)).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
  });

  it("should look again for payloads before it sends what refers to them, if it waited for long", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const first = lane.take(opening(1));
    const blobs = [{ digest: numbered(1), bytes: Uint8Array.of(1) }];
    const second = lane.take(further(1, 1, 1, { blobs }));
    await settled();
    expect(lane.kept()).toBe(1);
    log.calls[1]?.fail("HL_STORE_AMBIGUOUS");
    lane.pass(STALE + 1);
    log.calls[0]?.write();
    await expect.poll(() => log.calls.length).toBe(3);
    expect(lane.kept()).toBe(2);
    log.calls[2]?.write();
    await Promise.all([first, second]);
  });

  it("should believe no revision that cannot be, and delete nothing for it", async () => {
    const log = new HeldLog();
    const deleted: unknown[] = [];
    log.deleteStream = async (...asked: unknown[]) => void deleted.push(asked);
    const lane = laneOn(log);
    const first = lane.take(opening(1));
    log.calls[0]?.write();
    await first;
    const append = log.append.bind(log);
    log.append = async (...asked) => ({ ...(await append(...asked)), revision: 7 });
    const second = lane.take(further(1, 1));
    log.calls[1]?.write();
    expect(await second).toEqual({ revision: 1, position: 2 });
    expect(deleted).toEqual([]);
  });

  it("should not read for ever from a server that contradicts itself", async () => {
    const log = new HeldLog();
    const looks: string[] = [];
    log.readStream = async (name, { direction }) => {
      looks.push(direction);
      if (direction === "forward") return [];
      const content = { kind: "json", data: {}, metadata: {} } as const;
      return [{ stream: name, revision: 9, position: 10, id: "x", type: "started", content }];
    };
    await expect(laneOn(log).take(further(1, 1), 100)).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    expect(looks.length).toBeLessThan(20);
  });

  it("should go on behind an append that was refused for good", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const denied = lane.take(opening(1));
    log.calls[0]?.fail("HL_STORE_DENIED");
    await expect(denied).rejects.toMatchObject({ code: "HL_STORE_DENIED" });
    const append = lane.take(opening(1));
    await expect.poll(() => log.calls.length).toBe(2);
    log.calls[1]?.write();
    expect((await append).revision).toBe(0);
  });

  it("should refuse an event that is no JSON, and nothing else", async () => {
    const log = new HeldLog();
    const lane = laneOn(log);
    const broken = lane.take(opening(1, 1, { events: [draft(0, { data: "{" })] }));
    await expect(broken).rejects.toMatchObject({ code: "HL_USAGE" });
    const append = lane.take(opening(1));
    await expect.poll(() => log.calls.length).toBe(1);
    log.calls[0]?.write();
    await append;
  });
});
