// A process of its own that works on a ledger: node store-child.mjs <task> <path> <argument>…
// Says what it did on stdout, a line at a time, written at once.
import { writeSync } from "node:fs";
import { openSqliteStore } from "#src/store/sqlite/store.js";

const [task, path, ...args] = process.argv.slice(2);

const TASKS = new Map([
  ["append", append],
  ["hold", hold],
  ["subscribe", subscribe],
  ["open", open],
  ["deliver", deliver],
  ["race", race],
]);

try {
  await TASKS.get(task)(...args);
} catch (error) {
  say(error.code ?? error.stack);
}

/** Appends dispatches from the given number on, a few at a time; each is five events in three appends, one wait. */
async function append(from, count) {
  const store = await openSqliteStore(path, { mode: "write" });
  say(`writer ${store.writer}`);
  let next = Number(from);
  const end = next + Number(count);
  const lane = async () => {
    while (next < end) {
      const stream = `hookdispatch-01J${String(next++).padStart(23, "0")}`;
      const appends = [
        store.append({ stream, expected: "none", events: [draft(0), draft(1)], session: `s${from}`, barrier: false }),
        store.append({ stream, expected: 1, events: [draft(2)], barrier: false }),
        store.append({ stream, expected: 2, events: [draft(3), draft(4)], barrier: true }),
      ];
      await Promise.all(appends);
      say(`ack ${stream}`);
    }
  };
  await Promise.all(Array.from({ length: 4 }, lane));
  await store.close();
  say("closed");
}

/** Opens the ledger for writing and keeps it until stdin ends. */
async function hold() {
  const store = await openSqliteStore(path, { mode: "write" });
  say(`writer ${store.writer}`);
  for await (const _ of process.stdin);
  await store.close();
  say("closed");
}

/** Says the position of each event until there were as many as asked for. */
async function subscribe(count) {
  const store = await openSqliteStore(path, { mode: "read" });
  say("subscribed");
  const abort = new AbortController();
  let seen = 0;
  for await (const page of store.subscribe({ after: 0, signal: abort.signal })) {
    for (const event of page) say(`event ${event.position} ${event.stream} ${event.revision}`);
    seen += page.length;
    if (seen >= Number(count)) abort.abort();
  }
  await store.close();
}

/** Opens and reads the ledger. */
async function open(mode) {
  const store = await openSqliteStore(path, { mode });
  let streams = 0;
  for await (const page of store.readStreams({ order: "oldest" })) streams += page.length;
  await store.close();
  say(`streams ${streams}`);
}

/** From the given number on: an event, then a delivery that is attempted, with one wait for both, then its acknowledgement without a wait. */
async function deliver(from, count) {
  const store = await openSqliteStore(path, { mode: "write" });
  say(`writer ${store.writer}`);
  for (let n = Number(from); n < Number(from) + Number(count); n++) {
    const number = String(n).padStart(23, "0");
    const stream = `hookdispatch-01J${number}`;
    void store.append({ stream, expected: "none", events: [draft(0)], barrier: false });
    await store.put([delivery(`01K${number}`)], true);
    say(`put ${n}`);
    void store.change(`01K${number}`, ["attempting"], { state: "sent" }, false);
  }
  await store.close();
  say("closed");
}

/** Begins an attempt of each delivery that is pending; says those that it got. */
async function race() {
  const store = await openSqliteStore(path, { mode: "write" });
  for (const { id } of await store.deliveries({ states: ["pending"] }))
    if (await store.change(id, ["pending"], { state: "attempting" }, false)) say(`got ${id}`);
  say("raced");
  for await (const _ of process.stdin);
  await store.close();
}

function delivery(id) {
  return {
    ...{
      id,
      state: "attempting",
      lane: "chat",
      idempotencyKey: id,
      payload: "{}",
      route: "{}",
      session: null,
      run: null,
    },
    ...{ attempts: 1, partsSent: 0, dueAt: 0, createdAt: 0, updatedAt: 0, receipts: "[]", error: null },
  };
}

function draft(n) {
  return {
    id: `0191abcd-0000-8000-8000-${String(n).padStart(12, "0")}`,
    type: n === 0 ? "started" : "outcome",
    data: `{"index":${n},"text":"${"x".repeat(200)}"}`,
    metadata: `{"at":"2026-01-01T00:00:00.000Z","offsetNs":${n}}`,
  };
}

function say(line) {
  writeSync(1, `${line}\n`);
}
