import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { registersWriters } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { StoreChild } from "../support/store-child.js";
import { chainsOf, collect, expectedChain, opening, temporaryFolder } from "../support/store-fixtures.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
let children: StoreChild[];

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  children = [];
});
afterEach(async () => {
  await Promise.all(children.map((child) => child.kill()));
  folder.remove();
});

function child(...args: string[]): StoreChild {
  const started = new StoreChild(args);
  children.push(started);
  return started;
}

describe("several processes on one ledger", () => {
  it("should write and read at once, each event once and in one order", async () => {
    const each = 60;
    const total = 2 * each * 5;
    const store = await openSqliteStore(path, { mode: "write" });
    const subscriber = child("subscribe", path, String(total));
    await subscriber.said("subscribed");
    const writers = [child("append", path, "1000", String(each)), child("append", path, "2000", String(each))];
    const abort = new AbortController();
    const here: string[] = [];
    for await (const page of store.subscribe({ after: 0, signal: abort.signal })) {
      for (const event of page) here.push(`${event.position} ${event.stream} ${event.revision}`);
      if (here.length >= total) abort.abort();
    }
    for (const writer of writers) expect((await writer.end()).at(-1)).toBe("closed");
    await subscriber.end();
    expect(here).toHaveLength(total);
    expect(subscriber.all("event ")).toEqual(here);
    const positions = here.map((line) => Number.parseInt(line, 10));
    expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
    const streams = await collect(store.readStreams({ order: "oldest" }));
    expect(streams).toHaveLength(2 * each);
    for (const { events, head } of streams) {
      expect(chainsOf(events)).toEqual(expectedChain(events));
      expect(head?.revision).toBe(4);
    }
    await store.close();
  });

  it("should create the ledger once, whoever comes first", async () => {
    const writers = [1, 2, 3].map((n) => child("append", path, String(n * 1000), "3"));
    for (const writer of writers) expect((await writer.end()).at(-1)).toBe("closed");
    const store = await openSqliteStore(path, { mode: "read" });
    expect(await collect(store.list({ order: "oldest" }))).toHaveLength(9);
    await store.close();
    expect(readdirSync(folder.path).filter((name) => name.startsWith("."))).toEqual([]);
  });

  it("should let exactly one of two stores go on with a stream", async () => {
    const stores = await Promise.all([1, 2].map(() => openSqliteStore(path, { mode: "write" })));
    await stores[0]!.append(opening(1));
    const appends = stores.map((store, i) =>
      store.append({ ...opening(1), expected: 0, events: [{ ...opening(1).events[0]!, id: `contender ${i}` }] }),
    );
    const outcomes = await Promise.allSettled(appends);
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(outcomes.find(({ status }) => status === "rejected")).toMatchObject({
      reason: { code: "HL_STORE_CONFLICT" },
    });
    await Promise.all(stores.map((store) => store.close()));
  });
});

describe("a process that is killed while it writes", () => {
  it("should lose nothing that was acknowledged and leave no part of a batch, five times over", async () => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 5; round++) {
      const writer = child("append", path, String(round * 1_000_000), "1000000");
      await writer.said("ack ", 20 + round * 13);
      await writer.kill();
      acknowledged.push(...writer.all("ack "));
    }
    const store = await openSqliteStore(path, { mode: "read" });
    const streams = await collect(store.readStreams({ order: "oldest" }));
    const complete = streams.filter(({ events }) => events.length === 5).map((found) => found.stream);
    expect(complete).toEqual(expect.arrayContaining(acknowledged));
    for (const { events, head } of streams) {
      expect([2, 3, 5]).toContain(events.length);
      expect(events.map(({ revision }) => revision)).toEqual(events.map((_, i) => i));
      const chains = expectedChain(events);
      expect(chainsOf(events)).toEqual(chains);
      expect(head).toMatchObject({ revision: events.length - 1, chain: chains.at(-1), position: events[0]?.position });
    }
    await store.close();
  });
});

describe("a writer's life", () => {
  it("should be seen from this and from other processes, until it is closed", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    const reader = await openSqliteStore(path, { mode: "read" });
    const other = child("hold", path);
    const writer = await other.said("writer ");
    for (const from of [store, reader]) {
      expect(await from.writerState(store.writer)).toBe("alive");
      expect(await from.writerState(writer)).toBe("alive");
      // Asking changes nothing.
      expect(await from.writerState(writer)).toBe("alive");
      expect(await from.writerState(reader.writer)).toBe("dead");
    }
    await other.end();
    expect(await store.writerState(writer)).toBe("dead");
    await store.close();
    expect(await reader.writerState(store.writer)).toBe("dead");
    await reader.close();
  });

  it("should end with the process that is killed, and be remembered until it is forgotten", async () => {
    const store = await openSqliteStore(path, { mode: "write" });
    const other = child("hold", path);
    const writer = await other.said("writer ");
    await other.kill();
    expect(await store.writerState(writer)).toBe("dead");
    expect(readdirSync(`${path}.writers`)).toContain(`${writer}.lock`);
    const next = await openSqliteStore(path, { mode: "write" });
    if (!registersWriters(next)) throw new Error("it knows no writers");
    expect(await next.deadWriters()).toEqual([writer]);
    await next.forgetWriters([writer, store.writer, "../../elsewhere"]);
    expect(await next.deadWriters()).toEqual([]);
    expect(readdirSync(`${path}.writers`).sort()).toEqual([`${store.writer}.lock`, `${next.writer}.lock`].sort());
    expect(await store.writerState(writer)).toBe("dead");
    expect(await next.writerState(store.writer)).toBe("alive");
    await Promise.all([store.close(), next.close()]);
  });

  it("should tell writers in one process apart", async () => {
    const [one, other] = await Promise.all([1, 2].map(() => openSqliteStore(path, { mode: "write" })));
    expect(await one!.writerState(other!.writer)).toBe("alive");
    await other!.close();
    expect(await one!.writerState(other!.writer)).toBe("dead");
    expect(await one!.writerState(one!.writer)).toBe("alive");
    const elsewhere = child("append", path, "1", "1");
    await elsewhere.end();
    expect(await one!.writerState(one!.writer)).toBe("alive");
    await one!.close();
  });
});
