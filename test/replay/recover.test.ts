/** Wherever the process died, recovery closes what was open, allows nothing, and has nothing to do a second time. */
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DispatchEvent } from "#src/core/events.js";
import { HookledgerError } from "#src/errors.js";
import { type Recovered, type RecoveryOptions, recover } from "#src/replay/recover.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { allLogs } from "../properties/logs.js";
import { ack, allow, chain, decided, handlers, invoked, started } from "../support/given.js";
import { KillChild, readingOf } from "../support/kill.js";
import { ulidOf } from "../support/ledger.js";
import { appendInto, draftOf, intoMemory, intoSqlite, type LedgerRows, rowsOf } from "../support/ledgers.js";
import { ledgerOf } from "../support/ledgers-random.js";
import { temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
});
afterEach(() => folder.remove());

const NOW = Date.UTC(2026, 5, 1);

async function recovering(store: EventStore, options: Partial<RecoveryOptions> = {}): Promise<readonly Recovered[]> {
  const all: Recovered[] = [];
  for await (const recovered of recover(store, { dryRun: false, now: NOW, ...options })) all.push(recovered);
  return all;
}

function cut(rows: LedgerRows, events: number): LedgerRows {
  return { ...rows, events: rows.events.slice(0, events) };
}

/** Invoked, and nothing more heard of it. */
const WAITING = [started(chain("observe:slow@100", "veto:guard@200")), invoked(0)];
const LATE: readonly DispatchEvent[] = [
  started(chain("observe:slow", "veto:guard", "observe:slower"), { observe: "detached" }),
  invoked(0),
  invoked(1),
  allow(1),
  invoked(2),
  decided("allow", "kernel:default"),
];

describe("a process that died after any event of any dispatch", () => {
  it("should be recovered without a new allow, once", async () => {
    await fc.assert(
      fc.asyncProperty(allLogs, async (log) => {
        const whole = await ledgerOf({ n: 1, log, session: "s" });
        for (let events = 1; events <= log.length; events++) {
          const store = await intoMemory(cut(whole, events));
          const before = await readingOf(store);
          const foretold = await recovering(store, { dryRun: true });
          expect(await rowsOf(store)).toEqual(await rowsOf(await intoMemory(cut(whole, events))));

          expect(await recovering(store)).toEqual(foretold);
          const after = await readingOf(store);
          expect(after).toMatchObject({ diverged: [], open: 0 });
          expect(after.allowed).toEqual(before.allowed);
          for (const [id, told] of before.concluded) expect(after.concluded.get(id)).toEqual(told);

          const rows = await rowsOf(store);
          expect(rows.events.slice(0, events)).toEqual(whole.events.slice(0, events));
          expect(await recovering(store)).toEqual([]);
          expect(await rowsOf(store)).toEqual(rows);
        }
      }),
      { numRuns: 60 },
    );
  });

  it("should leave the session, the turn and the recovering writer in what is added", async () => {
    const store = await intoMemory(await ledgerOf({ n: 1, log: WAITING, session: "s" }));
    await recovering(store);
    const { events } = (await store.readStream(`hookdispatch-${ulidOf(1)}`))!;
    expect(JSON.parse(events[2]!.data)).toEqual({ cause: "recovered", inFlight: [0] });
    expect(JSON.parse(events[2]!.metadata)).toMatchObject({
      $correlationId: "s",
      turn: "turn 1",
      writer: store.writer,
      at: new Date(NOW).toISOString(),
      offsetNs: 1_000_000,
    });
  });

  it("should be told what became of each dispatch", async () => {
    const denied = [started(chain("veto:guard")), invoked(0), { type: "outcome", index: 0, class: "deny" }] as const;
    const pendingAllow = [started(chain("veto:guard")), invoked(0), allow(0)];
    const store = await intoMemory(
      await ledgerOf(
        { n: 1, log: WAITING },
        { n: 2, log: denied },
        { n: 3, log: pendingAllow },
        { n: 4, log: LATE },
        { n: 5, log: [started([]), decided("allow", "kernel:default")] },
      ),
    );
    expect(await recovering(store)).toEqual([
      { kind: "closed", dispatchId: ulidOf(1), status: "aborted", cause: "recovered" },
      { kind: "closed", dispatchId: ulidOf(2), status: "decided", cause: null },
      { kind: "closed", dispatchId: ulidOf(3), status: "aborted", cause: "recovered" },
      { kind: "closed", dispatchId: ulidOf(4), status: "decided", cause: "lost" },
    ]);
    const { concluded, allowed } = await readingOf(store);
    expect(concluded.get(ulidOf(2))).toMatchObject({ status: "decided", decision: "deny" });
    expect(allowed).toEqual([ulidOf(4), ulidOf(5)]);
  });
});

describe("a dispatch whose writer lives", () => {
  it("should be left alone in a store of this process", async () => {
    const store = openMemoryStore({ writer: ulidOf(0) });
    await appendInto(store, await ledgerOf({ n: 1, log: WAITING }, { n: 2, log: LATE }));
    const rows = await rowsOf(store);
    expect(await recovering(store)).toEqual(
      [1, 2].map((n) => ({ kind: "skipped", dispatchId: ulidOf(n), reason: "its writer is alive" })),
    );
    expect(await rowsOf(store)).toEqual(rows);
  });

  it("should be left alone by another store of this process on the same file, until it closes", async () => {
    const live = await openSqliteStore(path, { mode: "write", writer: ulidOf(0) });
    await appendInto(live, await ledgerOf({ n: 1, log: WAITING }, { n: 2, log: LATE }));
    const other = await openSqliteStore(path, { mode: "write" });
    const rows = await rowsOf(other);
    expect((await recovering(other)).map(({ kind }) => kind)).toEqual(["skipped", "skipped"]);
    expect(await rowsOf(other)).toEqual(rows);
    await live.close();
    expect((await recovering(other)).map(({ kind }) => kind)).toEqual(["closed", "closed"]);
    expect(await recovering(other)).toEqual([]);
    await other.close();
  });

  it("should be left alone by another process, until it is killed", async () => {
    const child = new KillChild("dispatch", `sqlite:${path}`, 0, 1_000_000);
    child.proceed();
    await child.said(500);
    const store = await openSqliteStore(path, { mode: "write" });
    const recovered = await recovering(store);
    expect(recovered.filter(({ kind }) => kind === "closed")).toEqual([]);
    const { dispatchId } = child.acknowledged().at(-1)!;
    await child.said(2000);
    await child.kill();
    const { allowed } = await readingOf(store);
    await recovering(store);
    expect(await readingOf(store)).toMatchObject({ diverged: [], open: 0, allowed });
    expect((await readingOf(store)).concluded.has(dispatchId)).toBe(true);
    await store.close();
  });
});

describe("two recoveries at once, in two processes", () => {
  it("should close each dispatch once", async () => {
    const dispatches = fc.sample(allLogs, { numRuns: 60, seed: 11 });
    const cuts = dispatches.map((log, n) => ({ n: n + 1, log: log.slice(0, 1 + (n % log.length)) }));
    await intoSqlite(path, await ledgerOf(...cuts));
    const reader = await openSqliteStore(path, { mode: "read" });
    const foretold = await recovering(reader, { dryRun: true });
    expect(foretold.length).toBeGreaterThan(20);
    const { allowed } = await readingOf(reader);
    const children = [1, 2].map(() => new KillChild("recover", `sqlite:${path}`));
    await Promise.all(children.map((child) => child.saidLine("open")));
    for (const child of children) child.proceed();
    expect(await Promise.all(children.map((child) => child.finished()))).toEqual([0, 0]);
    const told = children.flatMap((child) => child.all("recovered").map((json): Recovered => JSON.parse(json)));
    const closed = told.filter(({ kind }) => kind === "closed");
    expect(closed.map(({ dispatchId }) => dispatchId).sort()).toEqual(
      foretold.map(({ dispatchId }) => dispatchId).sort(),
    );
    for (const one of foretold) expect(closed).toContainEqual(one);
    expect(await readingOf(reader)).toMatchObject({ diverged: [], open: 0, allowed });
    expect(await recovering(reader, { dryRun: true })).toEqual([]);
    await reader.close();
  });
});

describe("a store that cannot tell whether a writer lives", () => {
  /** The last event was recorded 1 ms after the start; the timeouts sum up to 300 ms. */
  const lastAt = Date.UTC(2026, 1, 28, 9, 30) + 1;

  async function unknowing(): Promise<EventStore> {
    const store = await intoMemory(await ledgerOf({ n: 1, log: WAITING }));
    return Object.assign(store, { writerState: async () => "unknown" as const });
  }

  it("should have a dispatch closed once it is older than its timeouts and 30 s", async () => {
    const store = await unknowing();
    expect(await recovering(store, { now: lastAt + 30_300 })).toEqual([
      { kind: "skipped", dispatchId: ulidOf(1), reason: "its last event is younger than 30 s" },
    ]);
    expect(await recovering(store, { now: lastAt + 30_301 })).toMatchObject([{ kind: "closed" }]);
  });

  it("should go by the age that it is told", async () => {
    const store = await unknowing();
    expect(await recovering(store, { now: lastAt + 5000, olderThanMs: 5000 })).toMatchObject([{ kind: "skipped" }]);
    expect(await recovering(store, { now: lastAt + 5001, olderThanMs: 5000 })).toMatchObject([{ kind: "closed" }]);
  });

  it("should have one that asks a handler without a timeout closed by age only where somebody says which", async () => {
    const log = [handlers("claim", ["faq@none", "late"]), invoked(0)];
    const unsure = async () =>
      Object.assign(await intoMemory(await ledgerOf({ n: 1, log })), { writerState: async () => "unknown" as const });
    expect(await recovering(await unsure(), { now: NOW + 1e12 })).toEqual([
      {
        kind: "skipped",
        dispatchId: ulidOf(1),
        reason: "one of its handlers has no timeout: only --older-than can tell",
      },
    ]);
    expect(await recovering(await unsure(), { olderThanMs: 5000 })).toMatchObject([
      { kind: "closed", status: "aborted", cause: "recovered" },
    ]);
  });

  it("should not count who is skipped", async () => {
    const log = [handlers("claim", ["faq@100", "other@none~skip"]), invoked(0)];
    const store = Object.assign(await intoMemory(await ledgerOf({ n: 1, log })), {
      writerState: async () => "unknown" as const,
    });
    expect(await recovering(store)).toMatchObject([{ kind: "closed" }]);
  });

  it("should close nothing whose last event has no time", async () => {
    const rows = await ledgerOf({ n: 1, log: WAITING });
    const events = rows.events.map((event) => ({
      ...event,
      metadata: event.metadata.replace(/"at":"[^"]*"/, '"at":"now"'),
    }));
    const store = Object.assign(await intoMemory({ ...rows, events }), { writerState: async () => "unknown" as const });
    expect(await recovering(store)).toMatchObject([{ kind: "skipped" }]);
  });
});

describe("what recovery does not touch", () => {
  it("should be a dispatch that somebody appends to meanwhile", async () => {
    const rows = await ledgerOf({ n: 1, log: [...WAITING, ack(0)] });
    const store = await intoMemory(cut(rows, 2));
    const inner = store.append.bind(store);
    const append: EventStore["append"] = async (request) => {
      const { stream } = rows.events[2]!;
      await inner({ stream, expected: 1, events: [draftOf(rows.events[2]!)], barrier: true });
      return inner(request);
    };
    expect(await recovering(Object.assign(store, { append }))).toEqual([
      { kind: "skipped", dispatchId: ulidOf(1), reason: "somebody else appended to it meanwhile" },
    ]);
    expect((await rowsOf(store)).events).toEqual(rows.events);
  });

  it("should be a dispatch that does not replay, and one that has lost its tail; the others are closed", async () => {
    const rows = await ledgerOf(...[1, 2, 3].map((n) => ({ n, log: WAITING })));
    const [first, , second] = rows.events;
    const altered = rows.events.map((event) => (event === first ? { ...event, type: "erased" } : event));
    await intoSqlite(path, {
      ...rows,
      events: altered.filter(({ revision, stream }) => stream !== second!.stream || revision === 0),
    });
    const store = await openSqliteStore(path, { mode: "write" });
    expect(await recovering(store)).toMatchObject([
      { kind: "skipped", dispatchId: ulidOf(1), reason: "does not replay: unknown_type at revision 0" },
      { kind: "skipped", dispatchId: ulidOf(2) },
      { kind: "closed", dispatchId: ulidOf(3) },
    ]);
    expect((await rowsOf(store)).events).toHaveLength(6);
    await store.close();
  });

  it("should be all of a ledger whose disk fails: the failure is the caller's to see", async () => {
    const store = await intoMemory(await ledgerOf({ n: 1, log: WAITING }));
    const append = () => Promise.reject(new HookledgerError("HL_STORE_FULL", "no room"));
    await expect(recovering(Object.assign(store, { append }))).rejects.toMatchObject({ code: "HL_STORE_FULL" });
  });

  it("should be anything at all in a dry run on a ledger that is open for reading only", async () => {
    await intoSqlite(path, await ledgerOf({ n: 1, log: WAITING }, { n: 2, log: LATE }));
    const store = await openSqliteStore(path, { mode: "read" });
    const rows = await rowsOf(store);
    expect((await recovering(store, { dryRun: true })).map(({ kind }) => kind)).toEqual(["closed", "closed"]);
    expect(await rowsOf(store)).toEqual(rows);
    await expect(recovering(store)).rejects.toMatchObject({ code: "HL_STORE_READONLY" });
    await store.close();
  });
});
