/** What every ledger must do; run against each adapter. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_APPEND_BYTES, MAX_EVENT_BYTES } from "#src/store/append.js";
import type { EventStore, StreamFilter, StreamHead, StreamName } from "#src/store/port.js";
import { isUlid } from "#src/store/ulid.js";
import {
  chainsOf,
  collect,
  draft,
  expectedChain,
  further,
  opening,
  read,
  stream,
  temporaryFolder,
} from "../support/store-fixtures.js";
import { blobContract, type SpoilChunks } from "./blob-contract.js";

export type StoreHooks = {
  readonly spoilChunks?: SpoilChunks;
  /** Behind the name of every session: on a server that others use, too, theirs are not touched. */
  readonly sessionSuffix?: string;
  /** What the store says of a writer that is not its own. Default: dead. */
  readonly otherWriters?: "dead" | "unknown";
};

/** `open` makes a new, empty store, which may keep its files in `folder`. */
export function storeContract(
  name: string,
  open: (folder: string) => Promise<EventStore>,
  { spoilChunks, sessionSuffix = "", otherWriters = "dead" }: StoreHooks = {},
): void {
  describe(`${name} as an event store`, () => {
    const session = (id: string) => id + sessionSuffix;
    let store: EventStore;
    let folder: ReturnType<typeof temporaryFolder>;

    beforeEach(async () => {
      folder = temporaryFolder();
      store = await open(folder.path);
    });

    afterEach(async () => {
      await store.close();
      folder.remove();
    });

    describe("append", () => {
      it("should number revisions from 0 and positions in order", async () => {
        const first = await store.append(opening(1, 2));
        const second = await store.append(further(1, 2));
        expect(first.revision).toBe(1);
        expect(second.revision).toBe(2);
        const { events } = await read(store, 1);
        expect(events.map(({ revision }) => revision)).toEqual([0, 1, 2]);
        const positions = events.map(({ position }) => position);
        expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
        expect(events.at(1)?.position).toBe(first.position);
        expect(events.at(2)?.position).toBe(second.position);
      });

      it("should keep the texts byte for byte", async () => {
        const data = `{"text":"é 漢 🙂 \\u0000 \\" ${"x".repeat(10)}"}`;
        await store.append(opening(1, 1, { events: [draft(0, { data, payloads: '{"sha256:00":"AAAA"}' })] }));
        const [event] = (await read(store, 1)).events;
        expect(event?.data).toBe(data);
        expect(event?.id).toBe(draft(0).id);
        expect(event?.type).toBe("started");
        const { chain, ...metadata } = JSON.parse(event?.metadata ?? "");
        expect(metadata).toEqual({ ...JSON.parse(draft(0).metadata), payloads: { "sha256:00": "AAAA" } });
        expect(chain).toMatch(/^[0-9a-f]{64}$/);
      });

      it("should refuse a new stream that exists", async () => {
        await store.append(opening(1));
        const again = opening(1, 1, { events: [draft(7)] });
        await expect(store.append(again)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
      });

      it("should refuse an append behind or ahead of the stream", async () => {
        await store.append(opening(1, 3));
        await expect(store.append(further(1, 2, 1, { events: [draft(9)] }))).rejects.toMatchObject({
          code: "HL_STORE_CONFLICT",
        });
        await expect(store.append(further(1, 4))).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
        await expect(store.append(further(2, 1))).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
        expect((await read(store, 1)).events).toHaveLength(3);
        expect(await store.readStream(stream(2))).toBeNull();
      });

      it("should acknowledge an identical batch again, with the same result", async () => {
        const first = await store.append(opening(1, 2));
        const second = await store.append(further(1, 2, 2));
        expect(await store.append(opening(1, 2))).toEqual(first);
        expect(await store.append(further(1, 2, 2, { barrier: false }))).toEqual(second);
        expect((await read(store, 1)).events).toHaveLength(4);
      });

      it("should refuse a batch that overlaps in part, or whose contents differ", async () => {
        await store.append(opening(1, 2));
        await expect(store.append(opening(1, 3))).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
        const otherData = opening(1, 2, { events: [draft(0), draft(1, { data: '{"index":9}' })] });
        await expect(store.append(otherData)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
        const otherId = opening(1, 2, { events: [draft(0), draft(1, { id: draft(5).id })] });
        await expect(store.append(otherId)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
        const otherType = opening(1, 2, { events: [draft(0), draft(1, { type: "timeout" })] });
        await expect(store.append(otherType)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
        expect((await read(store, 1)).events).toHaveLength(2);
      });

      it("should carry out pipelined appends in the order of the calls", async () => {
        const appends = Array.from({ length: 50 }, (_, i) =>
          store.append(i === 0 ? opening(1, 1, { barrier: false }) : further(1, i, 1, { barrier: i === 49 })),
        );
        const results = await Promise.all(appends);
        expect(results.map(({ revision }) => revision)).toEqual(Array.from({ length: 50 }, (_, i) => i));
      });

      it("should fail every append behind one that failed", async () => {
        const outcomes = await Promise.allSettled([
          store.append(opening(1, 1, { barrier: false })),
          store.append(further(1, 5, 1, { barrier: false })),
          store.append(further(1, 6)),
        ]);
        expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
        expect((await read(store, 1)).events).toHaveLength(1);
      });

      it("should let exactly one of two contenders win", async () => {
        await store.append(opening(1));
        const contenders = [1, 2, 3].map((id) => store.append(further(1, 1, 1, { events: [draft(id + 10)] })));
        const outcomes = await Promise.allSettled(contenders);
        expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
        expect((await read(store, 1)).events).toHaveLength(2);
      });

      it("should take an event of the largest size and refuse a larger one", async () => {
        const fixed = draft(0).metadata.length + '{"x":""}'.length;
        const sized = (bytes: number) => [draft(0, { data: `{"x":"${"é".repeat(bytes / 2)}"}` })];
        const room = MAX_EVENT_BYTES - fixed - ((MAX_EVENT_BYTES - fixed) % 2);
        await expect(store.append(opening(1, 1, { events: sized(room + 2) }))).rejects.toMatchObject({
          code: "HL_LIMIT_EVENT",
        });
        expect(await store.readStream(stream(1))).toBeNull();
        await store.append(opening(1, 1, { events: sized(room) }));
        expect((await read(store, 1)).events[0]?.data).toBe(sized(room)[0]?.data);
      });

      it("should count the payloads that ride along", async () => {
        const events = [draft(0, { payloads: `{"sha256:00":"${"A".repeat(MAX_EVENT_BYTES)}"}` })];
        await expect(store.append(opening(1, 1, { events }))).rejects.toMatchObject({ code: "HL_LIMIT_EVENT" });
      });

      it("should take events of the largest size together, and refuse more", async () => {
        const events = (bytes: number) => {
          const parts = 4;
          const fixed = draft(0).metadata.length + '{"x":""}'.length;
          const size = (n: number) => Math.floor(bytes / parts) + (n === 0 ? bytes % parts : 0) - fixed;
          return Array.from({ length: parts }, (_, n) => draft(n, { data: `{"x":"${"x".repeat(size(n))}"}` }));
        };
        await expect(store.append(opening(1, 1, { events: events(MAX_APPEND_BYTES + 1) }))).rejects.toMatchObject({
          code: "HL_LIMIT_APPEND",
        });
        expect(await store.readStream(stream(1))).toBeNull();
        await store.append(opening(1, 1, { events: events(MAX_APPEND_BYTES) }));
        expect((await read(store, 1)).events).toHaveLength(4);
      });

      it("should refuse an empty append and a session that comes late", async () => {
        await expect(store.append(opening(1, 0))).rejects.toMatchObject({ code: "HL_USAGE" });
        await store.append(opening(1));
        await expect(store.append(further(1, 1, 1, { session: session("s") }))).rejects.toMatchObject({
          code: "HL_USAGE",
        });
      });
    });

    describe("the chain", () => {
      it("should bind every event to all before it, across appends", async () => {
        await store.append(
          opening(1, 3, { events: [draft(0), draft(1, { payloads: '{"sha256:00":"AA=="}' }), draft(2)] }),
        );
        await store.append(further(1, 3, 2));
        const { events, head } = await read(store, 1);
        expect(chainsOf(events)).toEqual(expectedChain(events));
        expect(head?.chain).toBe(expectedChain(events).at(-1));
      });

      it("should not depend on the stream, nor on the payloads", async () => {
        await store.append(opening(1, 2));
        await store.append(opening(2, 2, { events: [draft(0, { payloads: '{"sha256:00":"AA=="}' }), draft(1)] }));
        expect(chainsOf((await read(store, 2)).events)).toEqual(chainsOf((await read(store, 1)).events));
      });
    });

    describe("heads", () => {
      it("should say where each stream ends and where it began", async () => {
        await store.append(opening(1, 2, { session: session("s") }));
        await store.append(opening(2));
        const { position, revision } = await store.append(further(1, 2));
        const { events, head } = await read(store, 1);
        expect(head).toEqual({
          stream: stream(1),
          revision,
          chain: expectedChain(events).at(-1),
          session: session("s"),
          position: events[0]?.position,
        });
        expect(events.at(-1)?.position).toBe(position);
        expect((await read(store, 2)).head?.session).toBeNull();
      });
    });

    describe("list and readStreams", () => {
      async function names(filter: StreamFilter): Promise<StreamName[]> {
        const heads = await collect(store.list(filter));
        const streams = await collect(store.readStreams(filter));
        expect(streams.map(({ head }) => head)).toEqual(heads);
        return heads.map((head: StreamHead) => head.stream);
      }

      async function fill(...numbers: number[]): Promise<void> {
        await Promise.all(
          numbers.map((n) => store.append(opening(n, 2, n % 3 === 0 ? {} : { session: session(`s${n % 3}`) }))),
        );
      }

      it("should be empty for an empty ledger", async () => {
        expect(await names({ order: "oldest" })).toEqual([]);
        expect(await names({ order: "newest", session: session("s") })).toEqual([]);
        expect(await store.readStream(stream(1))).toBeNull();
      });

      it("should go by name in either order, whatever the order of the appends", async () => {
        await fill(5, 1, 4, 2, 3);
        const ascending = [1, 2, 3, 4, 5].map(stream);
        expect(await names({ order: "oldest" })).toEqual(ascending);
        expect(await names({ order: "newest" })).toEqual(ascending.reverse());
      });

      it("should select a session exactly, none, or all", async () => {
        await fill(1, 2, 3, 4, 5, 6);
        expect(await names({ order: "oldest", session: session("s1") })).toEqual([1, 4].map(stream));
        expect(await names({ order: "newest", session: session("s2") })).toEqual([5, 2].map(stream));
        expect(await names({ order: "oldest", session: null })).toEqual([3, 6].map(stream));
        expect(await names({ order: "oldest", session: session("s") })).toEqual([]);
      });

      it("should select a prefix and go on behind a stream", async () => {
        await fill(1, 2, 9, 10, 11, 19, 20);
        const prefix = stream(1).slice("hookdispatch-".length, -1);
        expect(await names({ order: "oldest", prefix })).toEqual([1, 2, 9].map(stream));
        expect(await names({ order: "newest", prefix, after: stream(9) })).toEqual([2, 1].map(stream));
        expect(await names({ order: "oldest", after: stream(10) })).toEqual([11, 19, 20].map(stream));
        expect(await names({ order: "oldest", after: stream(12) })).toEqual([19, 20].map(stream));
        expect(await names({ order: "newest", after: stream(10) })).toEqual([9, 2, 1].map(stream));
        expect(await names({ order: "newest", session: session("s1"), after: stream(19) })).toEqual(
          [10, 1].map(stream),
        );
        const whole = stream(10).slice("hookdispatch-".length);
        expect(await names({ order: "oldest", prefix: whole })).toEqual([stream(10)]);
        expect(await names({ order: "oldest", prefix: "ZZ" })).toEqual([]);
      });

      it("should hand over every stream once, over many pages", async () => {
        const all = Array.from({ length: 700 }, (_, i) => i);
        await fill(...all);
        let pages = 0;
        for await (const page of store.readStreams({ order: "oldest" })) {
          pages++;
          for (const { events, head } of page) expect(events.at(-1)?.revision).toBe(head?.revision);
        }
        expect(pages).toBeGreaterThan(1);
        expect(await names({ order: "oldest" })).toEqual(all.map(stream));
        expect(await names({ order: "newest" })).toEqual(all.map(stream).reverse());
      });

      it("should end a page at 4 MiB of event text", async () => {
        const data = `{"x":"${"x".repeat(250_000)}"}`;
        for (let n = 0; n < 40; n++)
          await store.append(opening(n, 1, { events: [draft(0, { data })], barrier: false }));
        const sizes: number[] = [];
        for await (const page of store.readStreams({ order: "oldest" })) sizes.push(page.length);
        expect(sizes.reduce((a, b) => a + b)).toBe(40);
        expect(Math.max(...sizes)).toBeLessThanOrEqual(18);
      });

      it("should take names of Object.prototype for names", async () => {
        const name: StreamName = "hookdispatch-__proto__";
        expect(await store.readStream(name)).toBeNull();
        expect(await names({ order: "oldest", session: session("__proto__") })).toEqual([]);
        await store.append(opening(1, 1, { stream: name, session: session("constructor") }));
        expect((await store.readStream(name))?.events).toHaveLength(1);
        expect(await names({ order: "oldest", session: session("constructor") })).toEqual([name]);
        expect(await names({ order: "oldest", session: session("toString") })).toEqual([]);
      });
    });

    describe("readAll and subscribe", () => {
      it("should go through all streams in the order of the appends", async () => {
        await store.append(opening(2));
        await store.append(opening(1));
        await store.append(further(2, 1, 2));
        const events = await collect(store.readAll({ after: 0 }));
        expect(events.map((event) => [event.stream, event.revision])).toEqual([
          [stream(2), 0],
          [stream(1), 0],
          [stream(2), 1],
          [stream(2), 2],
        ]);
        expect(await collect(store.readAll({ after: events[1]?.position ?? 0 }))).toEqual(events.slice(2));
        expect(await collect(store.readAll({ after: events[3]?.position ?? 0 }))).toEqual([]);
      });

      it("should hand over what is there and what comes, each event once", async () => {
        const total = 300;
        const abort = new AbortController();
        await store.append(opening(0));
        const appended = (async () => {
          for (let n = 1; n < total; n++) await store.append(opening(n, 1, { barrier: n % 50 === 0 }));
        })();
        const seen: StreamName[] = [];
        let last = 0;
        for await (const page of store.subscribe({ after: 0, signal: abort.signal })) {
          for (const event of page) {
            expect(event.position).toBeGreaterThan(last);
            last = event.position;
            seen.push(event.stream);
          }
          if (seen.length === total) abort.abort();
        }
        await appended;
        expect(seen).toEqual(Array.from({ length: total }, (_, n) => stream(n)));
      });

      it("should end when the signal aborts, before and while it waits", async () => {
        await store.append(opening(1));
        expect(await collect(store.subscribe({ after: 0, signal: AbortSignal.abort() }))).toEqual([]);
        const abort = new AbortController();
        const subscription = store.subscribe({ after: 0, signal: abort.signal })[Symbol.asyncIterator]();
        expect((await subscription.next()).value).toHaveLength(1);
        const next = subscription.next();
        abort.abort();
        expect(await next).toEqual({ done: true, value: undefined });
      });

      it("should end a waiting subscription with an error when the store closes", async () => {
        const { signal } = new AbortController();
        const next = store.subscribe({ after: 0, signal })[Symbol.asyncIterator]().next();
        const refused = expect(next).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
        await store.close();
        await refused;
      });
    });

    blobContract(() => ({ store, folder: folder.path }), spoilChunks);

    describe("what waits to be written", () => {
      it("should be counted until it is answered", async () => {
        expect(store.pendingBytes).toBe(0);
        await Promise.all([store.append(opening(1, 1, { barrier: false })), store.append(further(1, 1))]);
        expect(store.pendingBytes).toBe(0);
      });
    });

    describe("the writer", () => {
      it("should be a ULID that is alive while the store is open", async () => {
        expect(isUlid(store.writer)).toBe(true);
        expect(await store.writerState(store.writer)).toBe("alive");
      });

      it("should say of nobody else that it is", async () => {
        expect(await store.writerState("01J00000000000000000000000")).toBe(otherWriters);
        expect(await store.writerState("../../etc/passwd")).toBe(otherWriters);
        expect(await store.writerState("__proto__")).toBe(otherWriters);
      });
    });

    describe("a closed store", () => {
      it("should refuse everything, and close again", async () => {
        await store.append(opening(1));
        await store.close();
        const closed = { code: "HL_STORE_CLOSED" };
        await expect(store.append(opening(2))).rejects.toMatchObject(closed);
        await expect(store.readStream(stream(1))).rejects.toMatchObject(closed);
        await expect(collect(store.readStreams({ order: "oldest" }))).rejects.toMatchObject(closed);
        await expect(collect(store.list({ order: "oldest" }))).rejects.toMatchObject(closed);
        await expect(collect(store.readAll({ after: 0 }))).rejects.toMatchObject(closed);
        await expect(store.readBlob(`sha256:${"ab".repeat(32)}`)).rejects.toMatchObject(closed);
        await expect(store.writerState(store.writer)).rejects.toMatchObject(closed);
        await store.close();
      });

      it("should answer the appends made before", async () => {
        const appends = [
          store.append(opening(1, 1, { barrier: false })),
          store.append(further(1, 1, 1, { barrier: false })),
        ];
        const closing = store.close();
        await expect(Promise.all(appends)).resolves.toMatchObject([{ revision: 0 }, { revision: 1 }]);
        await closing;
      });
    });
  });
}
