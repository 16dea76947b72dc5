/** What becomes of a process whose EventStoreDB client throws where nobody can catch it: nothing. Against the double. */
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ThreadData } from "#src/store/eventstoredb/protocol.js";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import { spawnThread } from "#src/store/eventstoredb/thread.js";
import type { EventStore } from "#src/store/port.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { chainsOf, collect, draft, expectedChain, further, opening, read, stream } from "../support/store-fixtures.js";

const CRASHING = new URL("../support/eventstoredb-crashing-thread.mjs", import.meta.url);

describe("threads of the EventStoreDB client (against a double)", { timeout: 30_000 }, () => {
  let double: Double;
  let store: EventStore | undefined;
  /** Threads by role, in the order of their births, and how they ended. */
  let threads: Record<ThreadData["role"], Worker[]>;
  let ends: Record<ThreadData["role"], number[]>;

  function watched(data: ThreadData, spawn: (data: ThreadData) => Worker): Worker {
    const worker = spawn(data);
    threads[data.role].push(worker);
    worker.once("exit", (code) => ends[data.role].push(code));
    return worker;
  }

  async function open(spawn: (data: ThreadData) => Worker = spawnThread, deadline = 10_000): Promise<EventStore> {
    store = await openEventStoreDb(`${double.url}&defaultDeadline=${deadline}`, {
      mode: "write",
      spawnThread: (data) => watched(data, spawn),
    });
    return store;
  }

  beforeEach(async () => {
    threads = { append: [], read: [] };
    ends = { append: [], read: [] };
    double = await startDouble();
  });

  afterEach(async () => {
    double.faults.clear();
    await store?.close();
    await double.stop();
  });

  it("should replace one that a connection cut under back-pressure has killed, and lose no append", async () => {
    const store = await open();
    await store.append(opening(1));
    const data = `{"x":"${"x".repeat(200_000)}"}`;
    const cut = double.cutAfterBytes(400_000);
    const appends = Array.from({ length: 20 }, (_, i) =>
      store.append(further(1, i + 1, 1, { events: [draft(i + 1, { data })] })),
    );
    await cut;
    expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual(appends.map((_, i) => i + 1));
    expect(ends.append).toEqual([1]);
    const { events } = await read(store, 1);
    expect(chainsOf(events)).toEqual(expectedChain(events));
    expect(events).toHaveLength(21);
  });

  it("should replace one that a late answer has killed, and lose no append", async () => {
    const [late, cut] = await Promise.all([startDouble(), startDouble()]);
    let answerLate = () => {};
    let breakOther = () => {};
    const held = late.faults.holdReply({ method: "batchAppend" }, new Promise<void>((go) => (answerLate = go)));
    cut.faults.holdWrite({ method: "batchAppend" }, new Promise<void>((go) => (breakOther = go)));
    cut.faults.cut({ method: "batchAppend" });
    const spawn = (data: ThreadData): Worker => {
      if (data.role === "read" || threads.append.length > 0) return spawnThread(data);
      return new Worker(CRASHING, { workerData: { ...data, late: late.url, cut: cut.url }, execArgv: [] });
    };
    const store = await open(spawn);
    const lost = double.faults.loseReply({ method: "batchAppend", stream: stream(1) });
    const append = store.append(opening(1, 2));
    await Promise.all([held.struck, lost.struck]);
    const { connections } = double.calls;
    breakOther();
    // The broken stream ends our append, too: by now the table of promises is empty.
    await expect.poll(() => double.calls.connections).toBeGreaterThan(connections);
    answerLate();
    await expect.poll(() => ends.append).toEqual([1]);
    expect((await append).revision).toBe(1);
    expect((await store.append(further(1, 2))).revision).toBe(2);
    expect((await read(store, 1)).events).toHaveLength(3);
    await Promise.all([late.stop(), cut.stop()]);
  });

  it("should go on when a node that knew of no leader has got one", async () => {
    const store = await open();
    double.faults.notLeader({ method: ["batchAppend", "read"], times: 4 }, null);
    const appended = store.append(opening(1));
    await store.readStream(stream(1));
    expect((await appended).revision).toBe(0);
    expect((await read(store, 1)).events).toHaveLength(1);
  });

  it("should answer what was asked of one that was killed", async () => {
    const store = await open();
    await Promise.all([opening(1), opening(2)].map((request) => store.append(request)));
    const news = store.subscribe({ after: 0, signal: AbortSignal.timeout(20_000) })[Symbol.asyncIterator]();
    for (let seen = 0; seen < 2; ) seen += (await news.next()).value.length;
    for (const round of [1, 2]) {
      const next = news.next();
      const heads = collect(store.list({ order: "oldest" }));
      const appended = store.append(further(1, round));
      await Promise.all([threads.read.at(-1)?.terminate(), threads.append.at(-1)?.terminate()]);
      expect(await heads).toHaveLength(2);
      expect((await appended).revision).toBe(round);
      expect((await next).value).toMatchObject([{ stream: stream(1), revision: round }]);
    }
    await news.return?.(undefined);
  });

  it("should give up on a thread that always dies, and try again with the next call", async () => {
    let broken = true;
    const spawn = (data: ThreadData): Worker =>
      broken && threads.append.length > 0 && data.role === "append"
        ? new Worker("process.exit(1)", { eval: true })
        : spawnThread(data);
    const store = await open(spawn);
    await threads.append[0]?.terminate();
    await expect(store.append(opening(1))).rejects.toMatchObject({ code: "HL_STORE_AMBIGUOUS" });
    expect(await store.readStream(stream(1))).toBeNull();
    expect(store.pendingBytes).toBe(0);
    broken = false;
    expect((await store.append(opening(1))).revision).toBe(0);
  });

  it("should start no thread to append in where nothing is written", async () => {
    const reader = await openEventStoreDb(double.url, {
      mode: "read",
      spawnThread: (data) => watched(data, spawnThread),
    });
    expect(threads.append).toEqual([]);
    await expect(reader.append(opening(1))).rejects.toMatchObject({ code: "HL_STORE_READONLY" });
    await expect(reader.collectGarbage({ dryRun: false, now: 0, graceMs: 0 })).rejects.toMatchObject({
      code: "HL_STORE_READONLY",
    });
    expect(double.log.streams.filter((name) => name.startsWith("hook"))).toEqual([]);
    await reader.close();
    expect(ends.read).toEqual([0]);
  });

  it("should start none for what is refused because the store is closed", async () => {
    const store = await open();
    await threads.read[0]?.terminate();
    const refused = expect(store.readStream(stream(1))).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    await store.close();
    await refused;
    await new Promise((resolve) => setImmediate(resolve));
    expect(threads.read).toHaveLength(1);
  });

  it("should be closed also where a thread fails while it ends", async () => {
    const failing = `require("node:worker_threads").parentPort.on("message", ({ kind, calls }) => {
      if (kind === "close") throw new Error("not today");
      for (const { id } of calls) require("node:worker_threads").parentPort.postMessage({ kind: "answers", answers: [{ id, value: null }] });
    });`;
    const store = await open(() => new Worker(failing, { eval: true }));
    expect(await store.close()).toBeUndefined();
    expect([ends.append, ends.read]).toEqual([[1], [1]]);
  });

  it("should refuse what no thread can be handed, and nothing else", async () => {
    const store = await open();
    const unfit = { ...further(1, 1), hook: () => {} };
    const refused = expect(store.append(unfit)).rejects.toMatchObject({ code: "HL_USAGE" });
    expect((await store.append(opening(1))).revision).toBe(0);
    await refused;
    expect(store.pendingBytes).toBe(0);
  });

  it("should end every thread when it is closed, also while the server is away", async () => {
    const store = await open(spawnThread, 300);
    const append = store.append(opening(1));
    await append;
    await double.stop();
    const late = store.append(further(1, 1));
    const refused = expect(late).rejects.toMatchObject({ code: expect.stringMatching(/^HL_STORE_/) });
    await store.close();
    await refused;
    expect([ends.append, ends.read]).toEqual([[0], [0]]);
  });
});
