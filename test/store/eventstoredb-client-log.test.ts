/** The server's log over the client, against the double of EventStoreDB. */
import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseServerUrl } from "#src/store/eventstoredb/address.js";
import { ClientLog } from "#src/store/eventstoredb/client-log.js";
import type { ServerDraft } from "#src/store/eventstoredb/server-log.js";
import { type Double, startDouble } from "../support/eventstoredb/double.mjs";

function bytes(size = 10): ServerDraft {
  return { id: randomUUID(), type: "x", content: { kind: "bytes", data: new Uint8Array(size) } };
}

describe("the log of a server (a double)", () => {
  let double: Double;
  let log: ClientLog;

  function open(deadline = 5000): ClientLog {
    log = new ClientLog(parseServerUrl(`${double.url}&defaultDeadline=${deadline}`));
    return log;
  }

  beforeEach(async () => {
    double = await startDouble();
  });

  afterEach(async () => {
    double.faults.clear();
    await log.close();
    await double.stop();
  });

  it("should let appends arrive in the order of the calls, from the first on a new connection", async () => {
    for (const batchAppend of [true, false]) {
      double.features = { ...double.features, batchAppend };
      const log = open();
      const stream = `s-${batchAppend}`;
      const appends = Array.from({ length: 100 }, (_, n) => log.append(stream, n === 0 ? "none" : n - 1, [bytes()]));
      expect((await Promise.all(appends)).map(({ revision }) => revision)).toEqual(appends.map((_, n) => n));
      await log.close();
    }
  });

  it("should send what waits for a connection that a read has opened", async () => {
    const log = open();
    const read = log.readStream("s", { direction: "forward", from: 0, max: 1 });
    const append = log.append("s", "none", [bytes()]);
    expect((await append).revision).toBe(0);
    await read;
  });

  it("should send no more at once than it should, and all of it in the end", async () => {
    const log = open();
    const appends = Array.from({ length: 40 }, (_, n) => log.append(`s-${n}`, "none", [bytes(500_000)]));
    await Promise.all(appends);
    expect(double.calls.count("batchAppend")).toBe(40);
  });

  it("should tell a stream that is missing, deleted or gone for good from one that is empty from there on", async () => {
    const log = open();
    const all = { direction: "forward", from: 0, max: 10 } as const;
    expect(await log.readStream("s", all)).toBeNull();
    await log.append("s", "any", [bytes(), bytes()]);
    expect(await log.readStream("s", all)).toHaveLength(2);
    expect(await log.readStream("s", { ...all, from: 5 })).toEqual([]);
    expect(await log.readStream("s", { direction: "backward", max: 1 })).toMatchObject([{ revision: 1 }]);
    await expect(log.deleteStream("s", 0)).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    await log.deleteStream("s", 1);
    expect(await log.readStream("s", all)).toBeNull();
    double.log.tombstone("s", "any");
    expect(await log.readStream("s", all)).toBeNull();
    await expect(log.append("s", "any", [bytes()])).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
  });

  it("should read all streams of some prefixes behind a place, and begin with none of it", async () => {
    const log = open();
    for (const stream of ["a-1", "b-1", "ab-1", "a-2"]) await log.append(stream, "none", [bytes()]);
    const read = (after: number, max = 10) => log.readAll({ after, prefixes: ["a-", "b-"], max });
    const events = await read(0);
    expect(events.map(({ stream }) => stream)).toEqual(["a-1", "b-1", "a-2"]);
    expect(await read(0, 2)).toEqual(events.slice(0, 2));
    expect(await read(events[0]?.position ?? 0, 1)).toEqual(events.slice(1, 2));
    expect(await read(events[2]?.position ?? 0)).toEqual([]);
  });

  it("should read no more of all streams at once than fits, and all of it in the end", async () => {
    const log = open();
    for (let i = 0; i < 12; i++) await log.append(`a-${i}`, "none", [bytes(900_000)]);
    const lengths: number[] = [];
    for (let after = 0; ; ) {
      const events = await log.readAll({ after, prefixes: ["a-"], max: 512 });
      lengths.push(events.length);
      after = events.at(-1)?.position ?? after;
      if (events.length === 0) break;
    }
    expect(lengths.reduce((sum, length) => sum + length)).toBe(12);
    expect(Math.max(...lengths)).toBeLessThan(6);
  });

  it("should be certain of a write only where the server said so", async () => {
    const log = open(300);
    await log.append("s", "none", [bytes()]);
    const ambiguous = { code: "HL_STORE_AMBIGUOUS" };
    double.faults.ignore({ method: "batchAppend" });
    await expect(log.append("s", 0, [bytes()])).rejects.toMatchObject(ambiguous);
    double.faults.cut({ method: "batchAppend" });
    await expect(log.append("s", 0, [bytes()])).rejects.toMatchObject(ambiguous);
    await expect(log.append("s", 7, [bytes()])).rejects.toMatchObject({ code: "HL_STORE_CONFLICT" });
    await double.stop();
    await log.append("s", 0, [bytes()]).catch(() => {});
    await expect(log.append("s", 0, [bytes()])).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
  });

  it("should refuse everything once it is closed", async () => {
    const log = open();
    const waiting = log.append("s", "none", [bytes()]);
    const refused = expect(waiting).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    await log.close();
    await refused;
    await expect(log.append("s", "any", [bytes()])).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    await expect(log.readAll({ after: 0, prefixes: ["s"], max: 1 })).rejects.toMatchObject({ code: "HL_STORE_CLOSED" });
    await log.close();
  });
});
