import Database from "better-sqlite3";
import { afterEach, describe, expect, it } from "vitest";
import { placeOf } from "#src/audit/cursor.js";
import { type AuditQuery, auditRecords } from "#src/audit/export.js";
import { AUDIT_COLUMNS, type AuditRecord } from "#src/audit/record.js";
import type { AuditSelection } from "#src/audit/selection.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { AUDIT_SCHEMA, schemaFaults } from "../support/audit-schema.js";
import { ack, brokenBy, chain, failed, hookError } from "../support/given.js";
import { at, record, ulidOf } from "../support/ledger.js";
import { collect, temporaryFolder } from "../support/store-fixtures.js";
import {
  abandoned,
  deniedPlan,
  messages,
  open,
  rewrittenCall,
  startedWith,
  timedOut,
  withdrawn,
} from "../support/stories.js";

const NOTHING: AuditSelection = { observeErrors: false, denials: false, timeouts: false, aborts: false, all: false };
const SELECTIONS = {
  observeErrors: { ...NOTHING, observeErrors: true },
  denials: { ...NOTHING, denials: true },
  timeouts: { ...NOTHING, timeouts: true },
  aborts: { ...NOTHING, aborts: true },
  all: { ...NOTHING, all: true },
  several: { ...NOTHING, observeErrors: true, timeouts: true, denials: true },
};

async function exported(store: EventStore, query: AuditQuery): Promise<AuditRecord[]> {
  const records = await collect(auditRecords(store, query));
  for (const one of records) {
    expect(schemaFaults(one)).toStrictEqual([]);
    expect(Object.keys(one)).toStrictEqual([...AUDIT_COLUMNS]);
  }
  return records;
}

/** What tells the records apart, in a line each. */
function told(records: readonly AuditRecord[]): readonly string[] {
  return records.map(({ dispatchId, revision, type, subscriber, mode, category, message, decision, decidedBy }) =>
    [Number(dispatchId.slice(-2)), revision, type, subscriber, mode, category, message, decision, decidedBy].join(
      " | ",
    ),
  );
}

async function allStories(store: EventStore): Promise<void> {
  await deniedPlan(store, 1);
  await rewrittenCall(store, 2);
  await timedOut(store, 3);
  await open(store, 4);
  await abandoned(store, 5);
  await withdrawn(store, 6);
}

describe("audit export", () => {
  it("should export observers' failures, late ones too, and no others' by --observe-errors", async () => {
    const store = openMemoryStore();
    await allStories(store);
    expect(told(await exported(store, { selection: SELECTIONS.observeErrors }))).toStrictEqual([
      "1 | 5 | outcome | metrics | observe | UNKNOWN | no such series |  | ",
      "2 | 10 | timeout | slow | observe | TIMEOUT | no answer within 3 ms |  | ",
    ]);
  });

  it("should export decisions to deny with their true category, and plan items that policy denied, by --denials", async () => {
    const store = openMemoryStore();
    await allStories(store);
    expect(told(await exported(store, { selection: SELECTIONS.denials }))).toStrictEqual([
      "1 | 2 | outcome | kernel:policy | policy |  | item i2: nobody runs this unseen | deny | policy:no-root",
      "1 | 9 | decided | gate | veto |  | too many items | deny | gate",
      "3 | 3 | decided | gate | veto | TIMEOUT | no answer within 200 ms | deny | gate",
    ]);
  });

  it("should export timeouts of every mode, also those that a peer reported, by --timeouts", async () => {
    const store = openMemoryStore();
    await allStories(store);
    const input = messages("one");
    await record(store, {
      n: 7,
      kept: [input],
      happenings: [
        at(0, startedWith(7, chain("transform"), input, { vetoBearing: false })),
        at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
        at(2, failed(0, "TIMEOUT", "the peer's deadline")),
        at(3, brokenBy(0, hookError("TIMEOUT", "the peer's deadline"))),
      ],
    });
    expect(told(await exported(store, { selection: SELECTIONS.timeouts }))).toStrictEqual([
      "2 | 10 | timeout | slow | observe | TIMEOUT | no answer within 3 ms |  | ",
      "3 | 2 | timeout | gate | veto | TIMEOUT | no answer within 200 ms |  | ",
      "7 | 2 | outcome | transform | transform | TIMEOUT | the peer's deadline |  | ",
    ]);
  });

  it("should export aborts with their cause and who was in flight by --aborts", async () => {
    const store = openMemoryStore();
    await allStories(store);
    const input = messages("one");
    await record(store, {
      n: 7,
      kept: [input],
      happenings: [
        at(0, startedWith(7, chain("transform:redact"), input, { vetoBearing: false })),
        at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
        at(2, failed(0, "TRANSFORM_FAILED", "no dictionary")),
        at(3, brokenBy(0, hookError("TRANSFORM_FAILED", "no dictionary"))),
      ],
    });
    expect(told(await exported(store, { selection: SELECTIONS.aborts }))).toStrictEqual([
      "5 | 2 | aborted |  |  |  | recovered; in flight: log |  | ",
      "6 | 4 | aborted |  |  |  | unconfirmed |  | ",
      "7 | 3 | aborted | redact | transform | TRANSFORM_FAILED | hook_error: no dictionary |  | ",
    ]);
  });

  it("should export every outcome, timeout, abort and decision by --all, one record a plan item", async () => {
    const store = openMemoryStore();
    await allStories(store);
    const records = await exported(store, { selection: SELECTIONS.all });
    expect(told(records.filter(({ dispatchId }) => dispatchId === ulidOf(1)))).toStrictEqual([
      "1 | 2 | outcome | kernel:policy | policy |  | item i1 | allow | policy:reads",
      "1 | 2 | outcome | kernel:policy | policy |  | item i2: nobody runs this unseen | deny | policy:no-root",
      "1 | 2 | outcome | kernel:policy | policy |  | item i3 | ask | policy:default",
      "1 | 5 | outcome | metrics | observe | UNKNOWN | no such series |  | ",
      "1 | 6 | outcome | log | observe |  |  |  | ",
      "1 | 8 | outcome | gate | veto |  | too many items | deny | ",
      "1 | 9 | decided | gate | veto |  | too many items | deny | gate",
    ]);
    const events = await collect(store.readAll({ after: 0 }));
    const audited = events.filter(({ type }) => type !== "started" && type !== "subscriber-invoked");
    const distinct = new Set(records.map(({ dispatchId, revision }) => `hookdispatch-${dispatchId}/${revision}`));
    expect([...distinct]).toStrictEqual(audited.map(({ stream, revision }) => `${stream}/${revision}`));
  });

  it("should fill in session, point, time and payload, and null where there is none", async () => {
    const store = openMemoryStore();
    await timedOut(store);
    const input = (await collect(store.readAll({ after: 0 })))[0]!;
    const [timeout] = await exported(store, { selection: SELECTIONS.timeouts });
    expect(timeout).toStrictEqual({
      cursor: timeout!.cursor,
      dispatchId: ulidOf(3),
      revision: 2,
      type: "timeout",
      at: "2026-02-28T09:30:00.213Z",
      session: "session-1",
      point: "pre-tool-call",
      subscriber: "gate",
      mode: "veto",
      category: "TIMEOUT",
      message: "no answer within 200 ms",
      decision: null,
      decidedBy: null,
      payloadDigest: JSON.parse(input.data).input.digest,
    });
  });

  it("should export an event once, in ledger order, when several options ask for it", async () => {
    const store = openMemoryStore();
    await allStories(store);
    const records = await exported(store, { selection: SELECTIONS.several });
    expect(told(records)).toStrictEqual([
      "1 | 2 | outcome | kernel:policy | policy |  | item i2: nobody runs this unseen | deny | policy:no-root",
      "1 | 5 | outcome | metrics | observe | UNKNOWN | no such series |  | ",
      "1 | 9 | decided | gate | veto |  | too many items | deny | gate",
      "2 | 10 | timeout | slow | observe | TIMEOUT | no answer within 3 ms |  | ",
      "3 | 2 | timeout | gate | veto | TIMEOUT | no answer within 200 ms |  | ",
      "3 | 3 | decided | gate | veto | TIMEOUT | no answer within 200 ms | deny | gate",
    ]);
    expect(new Set(records.map(({ cursor }) => cursor)).size).toBe(records.length);
  });

  it.each(Object.entries(SELECTIONS))(
    "should go on right behind any cursor, in a ledger that grew (%s)",
    async (_, selection) => {
      const store = openMemoryStore();
      await allStories(store);
      const first = await exported(store, { selection });
      await timedOut(store, 8);
      await deniedPlan(store, 9);
      const whole = await exported(store, { selection });
      expect(whole.slice(0, first.length)).toStrictEqual(first);
      for (const [place, { cursor }] of whole.entries()) {
        expect(await exported(store, { selection, after: placeOf(cursor) })).toStrictEqual(whole.slice(place + 1));
      }
    },
  );

  it("should find nothing behind a cursor beyond the end", async () => {
    const store = openMemoryStore();
    await allStories(store);
    const after = { position: Number.MAX_SAFE_INTEGER, part: 0 };
    expect(await exported(store, { selection: SELECTIONS.all, after })).toStrictEqual([]);
  });

  it("should keep to --since (inclusive) and --until (exclusive) by the writers' clocks", async () => {
    const store = openMemoryStore();
    await timedOut(store);
    const decidedAt = Date.parse("2026-02-28T09:30:00.213Z");
    const selection = SELECTIONS.all;
    expect(await exported(store, { selection, since: decidedAt })).toHaveLength(2);
    expect(await exported(store, { selection, since: decidedAt + 1 })).toHaveLength(0);
    expect(await exported(store, { selection, until: decidedAt })).toHaveLength(0);
    expect(await exported(store, { selection, until: decidedAt + 1 })).toHaveLength(2);
  });

  it("should still know whom a late outcome is of, when hundreds of dispatches lie between", async () => {
    const store = openMemoryStore();
    const input = messages("one");
    const start = (n: number) =>
      record(store, {
        n,
        kept: [input],
        happenings: [
          at(0, startedWith(n, chain("observe:late"), input, { vetoBearing: false, observe: "detached" })),
          at(1, { type: "subscriber-invoked", index: 0, saw: input.ref.digest }),
          at(2, { type: "decided", decision: "allow", decidedBy: "kernel:default", payload: input.ref.digest }),
        ],
      });
    const numbers = Array.from({ length: 300 }, (_, place) => place + 1);
    for (const n of numbers) await start(n);
    for (const n of numbers) await record(store, { n, from: 3, happenings: [at(9, n % 2 === 0 ? ack(0) : failed(0))] });
    const records = await exported(store, { selection: SELECTIONS.observeErrors });
    expect(records).toHaveLength(150);
    expect(new Set(records.map(({ subscriber, point }) => `${subscriber} ${point}`))).toStrictEqual(
      new Set(["late pre-tool-call"]),
    );
  });

  it("should have a schema that requires every column, in order, and allows no other", () => {
    expect(AUDIT_SCHEMA.required).toStrictEqual([...AUDIT_COLUMNS]);
    expect(Object.keys(AUDIT_SCHEMA.properties)).toStrictEqual([...AUDIT_COLUMNS]);
  });
});

describe("audit export of a ledger that was tampered with", () => {
  const folder = temporaryFolder();
  afterEach(() => folder.remove());

  it("should say what does not decode, whatever is asked for, and export the rest", async () => {
    const path = `${folder.path}/ledger.db`;
    const writer = await openSqliteStore(path, { mode: "write" });
    await timedOut(writer, 1);
    await timedOut(writer, 2);
    await timedOut(writer, 3);
    await writer.close();
    const db = new Database(path);
    const set = (column: string, value: string, n: number, revision: number) =>
      db
        .prepare(`UPDATE events SET ${column} = ? WHERE stream = ? AND revision = ?`)
        .run(value, `hookdispatch-${ulidOf(n)}`, revision);
    set("data", "{", 1, 0);
    set("type", "smiled", 2, 1);
    set("metadata", '{"schemaVersion":99}', 3, 3);
    db.close();
    const store = await openSqliteStore(path, { mode: "read" });
    const aborts = await exported(store, { selection: SELECTIONS.aborts });
    expect(told(aborts)).toStrictEqual([
      "1 | 0 | undecodable |  |  |  | undecodable: started: data is no JSON |  | ",
      "2 | 1 | undecodable |  |  |  | unknown_type: smiled |  | ",
      "3 | 3 | undecodable |  |  |  | undecodable: metadata of no version that is known |  | ",
    ]);
    expect(
      told(await exported(store, { selection: SELECTIONS.denials })).filter((line) => !line.includes("undecodable")),
    ).toStrictEqual([
      "1 | 3 | decided | gate |  |  |  | deny | gate",
      "2 | 3 | decided | gate | veto | TIMEOUT | no answer within 200 ms | deny | gate",
    ]);
    const observe = told(await exported(store, { selection: SELECTIONS.observeErrors }));
    expect(observe).toContain("1 | 2 | timeout |  |  | TIMEOUT | no answer within 200 ms |  | ");
    await store.close();
  });
});
