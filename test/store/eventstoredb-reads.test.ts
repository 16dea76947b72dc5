/** Reads and subscriptions, against the double of EventStoreDB. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Verifier } from "#src/replay/verify.js";
import { openEventStoreDb } from "#src/store/eventstoredb/store.js";
import type { EventStore, RecordedEvent } from "#src/store/port.js";
import { authority, issue, writePems } from "../support/certificates.js";
import { type Cluster, startCluster } from "../support/eventstoredb/cluster.mjs";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";
import { collect, draft, further, opening, read, stream, temporaryFolder } from "../support/store-fixtures.js";

/** ms; long enough for a connection under load. */
const DEADLINE = 2000;

function proposed(type: string, data: string, metadata: string, json = true) {
  const id = `00000000-0000-8000-8000-${String(Math.floor(Math.random() * 1e12)).padStart(12, "0")}`;
  return { id, type, json, data: Buffer.from(data), metadata: Buffer.from(metadata) };
}

describe("reads of EventStoreDB (a double)", () => {
  let double: Double;
  const stores: EventStore[] = [];

  async function open(mode: "read" | "write" = "write", url = double.url): Promise<EventStore> {
    const store = await openEventStoreDb(`${url}&defaultDeadline=${DEADLINE}`, { mode });
    stores.push(store);
    return store;
  }

  beforeEach(async () => {
    double = await startDouble();
  });

  afterEach(async () => {
    double.faults.clear();
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await double.stop();
  });

  describe("opening", () => {
    it("should say where nobody answers, and repeat no password", async () => {
      const { port } = double;
      await double.stop();
      const refused = openEventStoreDb(`esdb://admin:changeit@127.0.0.1:${port}?tls=false`, { mode: "read" });
      await expect(refused).rejects.toMatchObject({
        code: "HL_STORE_UNAVAILABLE",
        message: expect.stringContaining(`127.0.0.1:${port}`),
        hint: expect.any(String),
      });
      await expect(refused).rejects.not.toThrow("changeit");
    });

    it("should not wait for a server that never answers", async () => {
      double.faults.ignore({ method: "serverFeatures", times: 9 });
      const refused = openEventStoreDb(`${double.url}&defaultDeadline=200`, { mode: "read" });
      await expect(refused).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    });
  });

  it("should read again while the server comes back", async () => {
    const store = await open();
    await store.append(opening(1, 600));
    double.faults.cut({ method: "read", skip: 1 });
    expect((await read(store, 1)).events).toHaveLength(600);
    await double.restart(() => void read(store, 1).catch(() => {}));
    expect((await read(store, 1)).events).toHaveLength(600);
    double.faults.refuse({ method: "read", times: 3 });
    expect(await collect(store.readAll({ after: 0 }))).toHaveLength(600);
  });

  it("should say that it may not read", async () => {
    const store = await open();
    double.faults.deny({ method: "read", times: 3 });
    await expect(store.readStream(stream(1))).rejects.toMatchObject({ code: "HL_STORE_DENIED" });
    await expect(collect(store.readAll({ after: 0 }))).rejects.toMatchObject({ code: "HL_STORE_DENIED" });
  });

  describe("what somebody else did", () => {
    const verify = async (store: EventStore, n: number) => new Verifier(store).verify(await read(store, n));

    it("should show a stream whose beginning is hidden as one that begins late", async () => {
      const store = await open();
      await store.append(opening(1, 5));
      double.log.append(`$$${stream(1)}`, "any", [proposed("$metadata", '{"$maxCount":2}', "")]);
      const { events, head } = await read(store, 1);
      expect(events.map(({ revision }) => revision)).toEqual([3, 4]);
      expect(head).toMatchObject({ revision: 4, position: events[0]?.position });
      expect((await verify(store, 1)).diverged).toMatchObject({ expected: "revision 0", found: "revision 3" });
      expect((await store.append(further(1, 5))).revision).toBe(5);
    });

    it("should hand over events that are none of ours, and let verify name them", async () => {
      const store = await open();
      const events = [
        proposed("other", '{"a":1}', '{"b":2}'),
        proposed("started", "no json", "no json either"),
        proposed("bytes", "\0", "", false),
        proposed("no-metadata", "[]", ""),
      ];
      double.log.append(stream(1), "none", events);
      expect((await read(store, 1)).events.map(({ type, data }) => [type, data])).toEqual([
        ["other", '{"a":1}'],
        ["started", '"no json"'],
        ["bytes", ""],
        ["no-metadata", "[]"],
      ]);
      expect((await verify(store, 1)).diverged).toMatchObject({ revision: 0, kind: "unknown_type", found: "other" });
      expect((await collect(store.readUnlisted())).map(({ stream }) => stream)).toEqual([stream(1)]);
      expect(await collect(store.list({ order: "oldest" }))).toEqual([]);
      expect(await collect(store.readAll({ after: 0 }))).toHaveLength(4);
    });

    it("should take no stream of another category for ours", async () => {
      const store = await open();
      double.log.append("hookdispatcher-1", "none", [proposed("other", "{}", "{}")]);
      double.log.append("$hookdispatch-1", "none", [proposed("other", "{}", "{}")]);
      expect(await collect(store.readAll({ after: 0 }))).toEqual([]);
      expect(await collect(store.readUnlisted())).toEqual([]);
    });

    it("should say what version an event has that it does not know", async () => {
      const store = await open();
      const started = JSON.stringify({ dispatchId: "x" });
      double.log.append(stream(1), "none", [proposed("subscriber-invoked", started, '{"schemaVersion":2}')]);
      expect((await verify(store, 1)).diverged?.kind).toMatch(/^(undecodable|unknown_version)$/);
    });
  });

  describe("a subscription", () => {
    /** Each event as `stream/revision`, in the order in which it came. */
    async function follow(store: EventStore, total: number, meanwhile: (seen: number) => unknown): Promise<string[]> {
      const abort = new AbortController();
      const seen: string[] = [];
      let last = 0;
      for await (const page of store.subscribe({ after: 0, signal: abort.signal })) {
        for (const { position, stream, revision } of page as readonly RecordedEvent[]) {
          expect(position).toBeGreaterThan(last);
          last = position;
          seen.push(`${stream}/${revision}`);
        }
        if (seen.length >= total) abort.abort();
        else await meanwhile(seen.length);
      }
      return seen;
    }

    const all = (count: number) => Array.from({ length: count }, (_, n) => `${stream(n)}/0`);

    async function append(store: EventStore, from: number, to: number): Promise<void> {
      for (let n = from; n < to; n++) await store.append(opening(n));
    }

    it("should go on behind the last event whenever it is dropped", async () => {
      const store = await open();
      await append(store, 0, 20);
      const drops = [
        () => double.cutAll(),
        () => double.restart(),
        () => double.faults.refuse({ method: "subscribe" }),
      ];
      let written = 20;
      const seen = await follow(store, 80, async () => {
        await drops.shift()?.();
        if (written >= 80) return;
        await append(store, written, written + 20);
        written += 20;
      });
      expect(seen).toEqual(all(80));
    });

    it("should lose nothing when its consumer is slow and the server gives it up", async () => {
      double.features = { ...double.features, liveBuffer: 4, slowConsumer: "abort" };
      const store = await open();
      const data = `{"x":"${"x".repeat(100_000)}"}`;
      let written = 0;
      const more = async (count: number): Promise<void> => {
        const appends = Array.from({ length: count }, (_, i) =>
          store.append(opening(written + i, 1, { events: [draft(0, { data })] })),
        );
        written += count;
        await Promise.all(appends);
      };
      await more(5);
      const seen = await follow(store, 205, async (count) => {
        if (count < 10 && written < 205) await more(200);
      });
      expect([...seen].sort()).toEqual(all(205).sort());
    });

    it("should say that it may not be", async () => {
      const store = await open();
      double.faults.deny({ method: "subscribe" });
      await expect(follow(store, 1, () => {})).rejects.toMatchObject({ code: "HL_STORE_DENIED" });
      await store.append(opening(0));
      expect(await follow(store, 1, () => {})).toEqual(all(1));
    });
  });

  describe("of a cluster", () => {
    let cluster: Cluster;

    beforeEach(async () => {
      cluster = await startCluster(3);
    });
    afterEach(async () => {
      await Promise.all(stores.splice(0).map((store) => store.close()));
      await cluster.stop();
    });

    it("should follow the leader, whoever that is", async () => {
      const store = await open("write", cluster.url);
      await store.append(opening(1));
      for (const [round, leader] of [1, 2, 0].entries()) {
        cluster.moveLeader(leader);
        expect((await store.append(further(1, round + 1))).revision).toBe(round + 1);
        expect((await read(store, 1)).events).toHaveLength(round + 2);
      }
    });

    it("should find another member when its own is gone", async () => {
      const store = await open("write", cluster.url);
      await store.append(opening(1));
      await cluster.leader.stop();
      cluster.moveLeader(1);
      expect((await store.append(further(1, 1))).revision).toBe(1);
      expect((await read(store, 1)).events).toHaveLength(2);
    });

    it("should follow a leader that is told instead of looked for", async () => {
      const store = await open("write", cluster.member(0).url);
      cluster.moveLeader(2);
      expect((await store.append(opening(1))).revision).toBe(0);
      expect(cluster.member(2).calls.count("batchAppend", stream(1))).toBe(1);
    });
  });

  it("should speak to a server over TLS, with credentials, and only to the right one", async () => {
    const folder = temporaryFolder();
    const issuer = authority("test");
    const credentials = { username: "kernel", password: "p:w/@" };
    const secure = await startDouble({ tls: issue(issuer, "localhost"), credentials });
    const { ca } = writePems(folder.path, { ca: issuer.pem });
    const url = (user: string, settings: string) =>
      `esdb://${user}localhost:${secure.port}?tls=true&defaultDeadline=${DEADLINE}${settings}`;
    const trusting = `&tlsCAFile=${encodeURIComponent(ca)}`;
    const store = await openEventStoreDb(url("kernel:p%3Aw%2F%40@", trusting), { mode: "write" });
    stores.push(store);
    await store.append(opening(1));
    expect(store.url).not.toContain("kernel");
    const stranger = await openEventStoreDb(url("kernel:wrong@", trusting), { mode: "write" });
    stores.push(stranger);
    const denied = { code: "HL_STORE_DENIED", message: expect.not.stringContaining("wrong") };
    await expect(stranger.readStream(stream(1))).rejects.toMatchObject(denied);
    await expect(stranger.append(opening(2))).rejects.toMatchObject(denied);
    await expect(openEventStoreDb(url("", ""), { mode: "read" })).rejects.toMatchObject({
      code: "HL_STORE_UNAVAILABLE",
    });
    const careless = await openEventStoreDb(url("kernel:p%3Aw%2F%40@", "&tlsVerifyCert=false"), { mode: "read" });
    stores.push(careless);
    expect((await read(careless, 1)).events).toHaveLength(1);
    await Promise.all(stores.splice(0).map((each) => each.close()));
    await secure.stop();
    folder.remove();
  });
});
