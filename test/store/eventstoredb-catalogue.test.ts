import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Catalogue } from "#src/store/eventstoredb/catalogue/catalogue.js";
import { Enlister } from "#src/store/eventstoredb/catalogue/enlist.js";
import type { StreamFilter, StreamName } from "#src/store/port.js";
import { ulid } from "#src/store/ulid.js";
import { AdapterTime } from "../support/adapter-time.js";
import { MemoryServerLog } from "../support/server-log.js";

const MINUTE = 60_000;
const T0 = Date.UTC(2026, 0, 1);

function name(ms: number, n = 0): StreamName {
  return `hookdispatch-${ulid(T0 + ms, Buffer.from(n.toString(16).padStart(20, "0"), "hex"))}`;
}

async function enlist(log: MemoryServerLog, stream: StreamName, session: string | null = null): Promise<void> {
  await new Enlister(log, new AdapterTime()).enlist(stream, session).written;
}

async function begin(log: MemoryServerLog, stream: StreamName, revisions = 1): Promise<void> {
  for (let i = 0; i < revisions; i++) {
    await log.append(stream, "any", [
      { id: randomUUID(), type: "started", content: { kind: "json", data: {}, metadata: {} } },
    ]);
  }
}

async function listed(log: MemoryServerLog, filter: Partial<StreamFilter> = {}): Promise<readonly StreamName[]> {
  const catalogue = new Catalogue(log);
  const all: StreamName[] = [];
  let after: StreamName | undefined;
  for (;;) {
    const { names, next } = await catalogue.page({
      order: "oldest",
      ...filter,
      ...(after === undefined ? {} : { after }),
    });
    all.push(...names);
    if (next === null) return all;
    after = next;
  }
}

async function unlisted(log: MemoryServerLog): Promise<readonly StreamName[]> {
  const catalogue = new Catalogue(log);
  const all: StreamName[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const { streams, next } = await catalogue.unlisted(after);
    all.push(...streams);
    after = next;
  }
  return all;
}

describe("enlisting a dispatch", () => {
  it("should send every entry before the first append, and write four streams for a dispatch with a session", async () => {
    const log = new MemoryServerLog();
    const { sent, written } = new Enlister(log, new AdapterTime()).enlist(name(0), "s");
    await sent;
    await begin(log, name(0));
    await written;
    const appends = log.calls.filter(({ kind }) => kind === "append").map(({ stream }) => stream);
    expect(appends.at(-1)).toBe(name(0));
    const id = name(0).slice("hookdispatch-".length);
    expect(new Set(appends.slice(0, -1))).toEqual(
      new Set([
        "hookindex-root",
        `hookindex-${id.slice(0, 5)}`,
        `hookindex-${id.slice(0, 7)}`,
        "hooksession-043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89",
      ]),
    );
    expect(log.peek(`hookindex-${id.slice(0, 7)}`)[0]?.content).toEqual({
      kind: "json",
      data: { dispatch: id, session: true },
      metadata: {},
    });
  });

  it("should send at once what is listed beside dispatches that it has listed before", async () => {
    const log = new MemoryServerLog();
    const enlister = new Enlister(log, new AdapterTime());
    await enlister.enlist(name(0), null).written;
    log.calls.length = 0;
    const { sent } = enlister.enlist(name(1), null);
    expect(sent).toBeNull();
    expect(log.calls.map(({ kind }) => kind)).toEqual(["append"]);
  });

  it("should let dispatches that begin together share what leads to them", async () => {
    const log = new MemoryServerLog();
    const enlister = new Enlister(log, new AdapterTime());
    await Promise.all([0, 1, 2].map((n) => enlister.enlist(name(0, n), null).written));
    expect(log.peek("hookindex-root")).toHaveLength(1);
    expect(await listed(log)).toHaveLength(3);
  });

  it("should leave no second entry in a directory when another process comes along, or when time passes", async () => {
    const log = new MemoryServerLog();
    const time = new AdapterTime();
    const enlister = new Enlister(log, time);
    await enlister.enlist(name(0), null).written;
    await enlist(log, name(1));
    time.pass(11 * MINUTE);
    await enlister.enlist(name(2), null).written;
    expect(log.peek("hookindex-root")).toHaveLength(1);
  });

  it("should write what leads to a dispatch again when the server was set up anew", async () => {
    const log = new MemoryServerLog();
    const time = new AdapterTime();
    const enlister = new Enlister(log, time);
    await enlister.enlist(name(0), null).written;
    log.remove("hookindex-root");
    time.pass(11 * MINUTE);
    await enlister.enlist(name(1), null).written;
    expect(await listed(log)).toEqual([name(0), name(1)]);
  });

  it("should try again what the server refuses or does not answer", async () => {
    for (const fault of ["unavailable", "lost-call", "lost-answer"] as const) {
      const log = new MemoryServerLog();
      const failed = new Set<string>();
      log.fault = ({ kind, stream }) => {
        if (kind !== "append" || failed.has(stream)) return undefined;
        failed.add(stream);
        return fault;
      };
      await enlist(log, name(0), "s");
      expect(failed.size).toBe(4);
      expect(await listed(log)).toEqual([name(0)]);
      expect(await listed(log, { session: "s" })).toEqual([name(0)]);
    }
  });

  it("should say in the end that the server does not take it, and list it when asked again", async () => {
    const log = new MemoryServerLog();
    const enlister = new Enlister(log, new AdapterTime());
    log.fault = ({ stream }) => (stream === "hookindex-root" ? "unavailable" : undefined);
    const { sent, written } = enlister.enlist(name(0), null);
    await sent;
    await expect(written).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    log.fault = ({ kind }) => (kind === "append" ? "lost-answer" : undefined);
    await expect(enlister.enlist(name(0), null).written).rejects.toMatchObject({ code: "HL_STORE_UNAVAILABLE" });
    log.fault = () => undefined;
    await enlister.enlist(name(0), null).written;
    expect(await listed(log)).toEqual([name(0)]);
  });

  it("should say which stream of the catalogue was deleted for good", async () => {
    const log = new MemoryServerLog();
    log.tombstone("hookindex-root");
    await expect(enlist(log, name(0))).rejects.toMatchObject({
      code: "HL_STORE_CORRUPT",
      message: "hookindex-root of the catalogue was deleted for good",
    });
  });

  it("should list an id that is no ULID", async () => {
    const log = new MemoryServerLog();
    const names: readonly StreamName[] = ["hookdispatch-__proto__", "hookdispatch-ab", "hookdispatch-root"];
    for (const stream of names) await enlist(log, stream, null);
    expect(await listed(log)).toEqual(names);
    expect(await listed(log, { order: "newest", session: null })).toEqual(names.toReversed());
    expect(await listed(log, { prefix: "ab" })).toEqual(["hookdispatch-ab"]);
  });
});

describe("a page of the catalogue", () => {
  it("should neither scan the log nor read leaves that the filter leaves out", async () => {
    const log = new MemoryServerLog();
    for (let hour = 0; hour < 48; hour++) await enlist(log, name(hour * 60 * MINUTE), hour % 2 === 0 ? "even" : null);
    log.calls.length = 0;
    const odd = await listed(log, { session: null });
    expect(odd).toHaveLength(24);
    expect(log.countOf("readAll")).toBe(0);
    log.calls.length = 0;
    const id = name(60 * MINUTE).slice("hookdispatch-".length);
    expect(await listed(log, { prefix: id })).toEqual([name(60 * MINUTE)]);
    expect(log.calls.map(({ stream }) => stream)).toEqual([`hookindex-${id.slice(0, 7)}`]);
    log.calls.length = 0;
    expect(await listed(log, { session: "even" })).toHaveLength(24);
    expect(log.calls).toHaveLength(1);
  });

  it("should read a large session once, however many pages it has, and see what is added meanwhile", async () => {
    const log = new MemoryServerLog();
    await enlist(log, name(0, 0), "s");
    const session = log.streams.find((stream) => stream.startsWith("hooksession-")) ?? "";
    const more = Array.from({ length: 20_000 }, (_, n) => name(n, n).slice("hookdispatch-".length)).reverse();
    await log.append(
      session,
      "any",
      more.map((dispatch) => ({
        id: randomUUID(),
        type: "dispatch",
        content: { kind: "json", data: { dispatch, session: "s" }, metadata: {} },
      })),
    );
    log.calls.length = 0;
    const catalogue = new Catalogue(log);
    const filter: StreamFilter = { order: "oldest", session: "s" };
    const first = await catalogue.page(filter);
    const whole = log.calls.length;
    expect(whole).toBeLessThan(10);
    await enlist(log, name(5_000, 99_999), "s");
    log.calls.length = 0;
    const seen = [...first.names];
    let pages = 0;
    for (let next = first.next; next !== null; pages++) {
      const page = await catalogue.page({ ...filter, after: next });
      seen.push(...page.names);
      next = page.next;
    }
    expect(seen).toHaveLength(20_001);
    expect(seen).toEqual([...new Set(seen)].sort());
    expect(log.calls).toHaveLength(pages);
  });

  it("should begin again with a stream that is no longer the one it remembers", async () => {
    const log = new MemoryServerLog();
    const catalogue = new Catalogue(log);
    await enlist(log, name(0));
    expect((await catalogue.page({ order: "oldest" })).names).toEqual([name(0)]);
    for (const stream of log.streams) log.remove(stream);
    expect((await catalogue.page({ order: "oldest" })).names).toEqual([]);
    await enlist(log, name(1));
    expect((await catalogue.page({ order: "oldest" })).names).toEqual([name(1)]);
  });

  it("should end after so many leaves, though it found nothing, and go on behind them", async () => {
    const log = new MemoryServerLog();
    const enlister = new Enlister(log, new AdapterTime());
    for (let n = 0; n < 300; n++) await enlister.enlist(name(n * MINUTE), n === 299 ? null : "s").written;
    for (const order of ["oldest", "newest"] as const) {
      const pages: number[] = [];
      let after: StreamName | null | undefined;
      const catalogue = new Catalogue(log);
      while (after !== null) {
        const page = await catalogue.page({ order, session: null, ...(after === undefined ? {} : { after }) });
        pages.push(page.names.length);
        after = page.next;
      }
      expect(pages).toEqual(order === "oldest" ? [0, 1] : [1, 0]);
    }
  });
});

describe("what is not listed", () => {
  it("should be found by its first event, or the first that can be seen", async () => {
    const log = new MemoryServerLog();
    await enlist(log, name(0));
    await begin(log, name(0), 3);
    await begin(log, name(1), 3);
    await begin(log, name(2 * 24 * 60 * MINUTE), 3);
    log.truncateBefore(name(2 * 24 * 60 * MINUTE), 2);
    log.scavenge();
    expect(await unlisted(log)).toEqual([name(1), name(2 * 24 * 60 * MINUTE)]);
  });

  it("should be what a directory does not lead to, though a leaf names it", async () => {
    const log = new MemoryServerLog();
    await enlist(log, name(0));
    await begin(log, name(0));
    log.remove("hookindex-root");
    expect(await listed(log)).toEqual([]);
    expect(await unlisted(log)).toEqual([name(0)]);
    await enlist(log, name(0));
    expect(await unlisted(log)).toEqual([]);
  });
});
