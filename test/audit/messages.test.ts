/** What an auditor is told of message hooks. */
import { describe, expect, it } from "vitest";
import { type AuditQuery, auditRecords } from "#src/audit/export.js";
import type { AuditRecord } from "#src/audit/record.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { schemaFaults } from "../support/audit-schema.js";
import { collect } from "../support/store-fixtures.js";
import {
  abandonedMessage,
  blockedMessage,
  cancelledMessage,
  cancelledReply,
  cancels,
  claimedMessage,
  defines,
  rewrittenMessage,
  run,
  SENDING,
  sentMessage,
  shortenedReply,
} from "../support/stories-messages.js";

const NOTHING = { observeErrors: false, denials: false, timeouts: false, aborts: false, all: false };

async function exported(store: EventStore, asked: Partial<AuditQuery["selection"]>): Promise<readonly AuditRecord[]> {
  const records = await collect(auditRecords(store, { selection: { ...NOTHING, ...asked } }));
  for (const one of records) expect(schemaFaults(one)).toStrictEqual([]);
  return records;
}

async function told(asked: Partial<AuditQuery["selection"]>, ...stories: ((store: EventStore) => Promise<unknown>)[]) {
  const store = openMemoryStore();
  for (const story of stories) await story(store);
  return (await exported(store, asked)).map(
    ({ point, type, subscriber, mode, category, message, decision, decidedBy }) =>
      [point, type, subscriber, mode, category, message, decision, decidedBy].join(" | "),
  );
}

describe("audit export of message hooks", () => {
  it("should take failures of handlers for errors of observers: nothing comes of them", async () => {
    expect(await told({ observeErrors: true }, claimedMessage, rewrittenMessage, shortenedReply, sentMessage)).toEqual([
      "before_dispatch | outcome | broken | handler | UNKNOWN | no such table |  | ",
      "message_sending | timeout | slow | handler | TIMEOUT | no answer within 15 ms |  | ",
      "reply_payload_sending | outcome | broken | handler | UNKNOWN | out of tape |  | ",
      "message_sent | outcome | count | handler | UNKNOWN | no such series |  | ",
    ]);
  });

  it("should tell their timeouts", async () => {
    expect(await told({ timeouts: true }, claimedMessage, rewrittenMessage)).toEqual([
      "message_sending | timeout | slow | handler | TIMEOUT | no answer within 15 ms |  | ",
    ]);
  });

  it("should tell which deliveries were kept back, by whom and why", async () => {
    expect(await told({ denials: true }, cancelledMessage, blockedMessage, cancelledReply, claimedMessage)).toEqual([
      "message_sending | decided | guard | handler |  | it names a key | deny | guard",
      "message_sending | decided | guard | handler | TIMEOUT | no answer within 15 ms | deny | guard",
      "reply_payload_sending | decided | quiet | handler |  | it is late | deny | quiet",
    ]);
  });

  it("should tell which runs were given up", async () => {
    expect(await told({ aborts: true }, abandonedMessage)).toEqual([
      "before_dispatch | aborted |  |  |  | cancelled; in flight: faq |  | ",
    ]);
  });

  it("should tell everything", async () => {
    expect(await told({ all: true }, claimedMessage, cancelledMessage)).toEqual([
      "before_dispatch | outcome | shy | handler |  | declined |  | ",
      "before_dispatch | outcome | broken | handler | UNKNOWN | no such table |  | ",
      "before_dispatch | outcome | faq | handler |  | claimed |  | ",
      "before_dispatch | decided |  |  |  |  | allow | faq",
      "message_sending | outcome | scrub | handler |  | rewritten: content |  | ",
      "message_sending | outcome | guard | handler |  | cancelled: it names a key |  | ",
      "message_sending | decided | guard | handler |  | it names a key | deny | guard",
    ]);
    expect((await told({ all: true }, rewrittenMessage))[1]).toBe(
      "message_sending | outcome | mark | handler |  | rewritten: metadata |  | ",
    );
    expect((await told({ all: true }, shortenedReply))[0]).toBe(
      "reply_payload_sending | outcome | short | handler |  | rewritten |  | ",
    );
  });

  it("should tell the reason that was defined last, also where an export goes on in the middle", async () => {
    const store = openMemoryStore();
    const told = run(1, "message_sending", "rewrite", ["a", "b", "c"], SENDING).start().call(1, 0);
    const first = told.keep("taken back");
    const reason = told.keep("said before");
    const metadata = told.keep({ a: 1 });
    await told
      .happen(2, defines(0, { cancelReason: first }))
      .call(3, 1)
      .happen(4, defines(1, { cancelReason: reason }))
      .call(5, 2)
      .happen(6, cancels(2, { metadata }))
      .decide(6, "deny", "c")
      .record(store);
    const all = await exported(store, { all: true });
    const last = all.at(-1)!;
    expect(last).toMatchObject({ subscriber: "c", message: "said before", category: null });
    const after = { position: (await collect(store.readAll({ after: 0 }))).at(-1)!.position - 1, part: 0 };
    const rest = await collect(auditRecords(store, { selection: { ...NOTHING, all: true }, after }));
    expect(rest).toEqual([last]);
  });

  it("should tell no reason that it does not have", async () => {
    const lost = await told({ denials: true }, (store) => {
      const story = run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
      const large = story.keep("x".repeat(5000));
      return story
        .happen(2, cancels(0, { cancelReason: large }))
        .decide(3, "deny", "a")
        .record(store);
    });
    expect(lost).toEqual(["message_sending | decided | a | handler |  |  | deny | a"]);
  });
});
