/** A kernel that begins where another was killed. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKernel, type KernelOptions } from "#src/dispatch/kernel.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { chain, decided, invoked, started } from "../support/given.js";
import { isSettled } from "../support/kernels.js";
import { KillChild, readingOf } from "../support/kill.js";
import { ulidOf } from "../support/ledger.js";
import { intoMemory, intoSqlite } from "../support/ledgers.js";
import { ledgerOf } from "../support/ledgers-random.js";
import { opening, stream, temporaryFolder } from "../support/store-fixtures.js";
import { settled, VirtualClock } from "../support/virtual-clock.js";

let folder: ReturnType<typeof temporaryFolder>;
let path: string;
beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder.path, "ledger.db");
  writeFileSync(join(folder.path, "agent.hcl"), "settings {\n}\n");
});
afterEach(() => folder.remove());

const OPEN = [started(chain("veto:guard@200")), invoked(0)];
const CLOSED = [started([]), decided("allow", "kernel:default")];

/** As a process leaves it that is killed: dispatches of ULID 0, and its lock, held by nobody. */
async function leftOpen(...numbers: readonly number[]): Promise<void> {
  await intoSqlite(path, await ledgerOf(...numbers.map((n) => ({ n, log: n % 3 === 0 ? CLOSED : OPEN }))));
  leaveLock();
}

function leaveLock(): void {
  mkdirSync(`${path}.writers`, { recursive: true, mode: 0o700 });
  writeFileSync(join(`${path}.writers`, `${ulidOf(0)}.lock`), "", { mode: 0o600 });
}

function kernelOn(store: EventStore | string, options: Partial<KernelOptions> = {}) {
  return createKernel({ config: join(folder.path, "agent.hcl"), store, ...options });
}

describe("a kernel that begins after a crash", () => {
  it("should close what was left open, once, and remember nothing of it", async () => {
    await leftOpen(1, 2, 3, 4);
    const lines: string[] = [];
    const kernel = await kernelOn(`sqlite:${path}`, { log: ({ level, message }) => lines.push(`${level} ${message}`) });
    expect(await kernel.recovered).toEqual([4, 2, 1].map(ulidOf));
    expect(lines).toEqual(["info 3 dispatches that a crash had left open are closed"]);
    await kernel.close();
    expect(readdirSync(`${path}.writers`)).toEqual([]);
    const next = await kernelOn(`sqlite:${path}`);
    expect(await next.recovered).toEqual([]);
    await next.close();
    const store = await openSqliteStore(path, { mode: "read" });
    expect(await readingOf(store)).toMatchObject({ diverged: [], open: 0, allowed: [ulidOf(3)] });
    await store.close();
  });

  it("should have closed a dispatch before it says what became of it", async () => {
    await leftOpen(1);
    const kernel = await kernelOn(`sqlite:${path}`);
    const again = kernel.dispatch({ sessionEnd: { sessionId: "another" } }, { id: ulidOf(1) });
    await expect(again).rejects.toMatchObject({ code: "HL_DISPATCH_CONFLICT" });
    await kernel.close();
    const store = await openSqliteStore(path, { mode: "read" });
    expect((await readingOf(store)).concluded.get(ulidOf(1))?.status).toBe("aborted");
    await store.close();
  });

  it("should leave it to others where it is told to, and look for nothing where every writer has closed", async () => {
    await leftOpen(1);
    const idle = await kernelOn(`sqlite:${path}`, { recoverOnStart: false });
    expect(await idle.recovered).toEqual([]);
    await idle.close();
    expect(readdirSync(`${path}.writers`)).toEqual([`${ulidOf(0)}.lock`]);

    await leftOpenByNobody();
    const other = await kernelOn(`sqlite:${join(folder.path, "other.db")}`);
    expect(await other.recovered).toEqual([]);
    await other.close();
  });

  async function leftOpenByNobody(): Promise<void> {
    await intoSqlite(join(folder.path, "other.db"), await ledgerOf({ n: 1, log: OPEN }));
  }

  it("should stop when it is closed, and leave the rest to the next", async () => {
    await leftOpen(...Array.from({ length: 200 }, (_, n) => n + 1));
    const first = await kernelOn(`sqlite:${path}`);
    await first.close();
    expect((await first.recovered).length).toBeLessThan(134);
    expect(readdirSync(`${path}.writers`)).toEqual([`${ulidOf(0)}.lock`]);
    const next = await kernelOn(`sqlite:${path}`);
    expect((await next.recovered).length + (await first.recovered).length).toBe(134);
    await next.close();
    expect(readdirSync(`${path}.writers`)).toEqual([]);
  });

  it("should share the work with another that begins at the same time, in another process", async () => {
    await leftOpen(...Array.from({ length: 300 }, (_, n) => n + 1));
    const children = [1, 2, 3].map(() => new KillChild("start", `sqlite:${path}`));
    for (const child of children) child.proceed();
    expect(await Promise.all(children.map((child) => child.finished()))).toEqual([0, 0, 0]);
    const closed = children.flatMap((child) => child.all("recovered")).sort();
    expect(closed).toEqual(
      Array.from({ length: 300 }, (_, n) => n + 1)
        .filter((n) => n % 3 !== 0)
        .map(ulidOf),
    );
    const store = await openSqliteStore(path, { mode: "read" });
    expect(await readingOf(store)).toMatchObject({ diverged: [], open: 0 });
    await store.close();
  });

  it("should touch nothing of a writer that lives", async () => {
    const live = new KillChild("dispatch", `sqlite:${path}`, 0, 1_000_000);
    live.proceed();
    await live.said(500);
    leaveLock();
    const kernel = await kernelOn(`sqlite:${path}`);
    expect(await kernel.recovered).toEqual([]);
    await kernel.close();
    expect(await live.stop()).toBe(0);
  });
});

describe("a kernel on a store that cannot tell who died", () => {
  const unknowing = (store: EventStore): EventStore =>
    Object.assign(store, { writerState: async () => "unknown" as const });

  it("should close what is older than its timeouts and 30 s", async () => {
    const store = unknowing(await intoMemory(await ledgerOf({ n: 1, log: OPEN })));
    const at = Date.UTC(2026, 1, 28, 9, 30) + 1;
    const wall = (ms: number) => Object.assign(new VirtualClock(), { wall: () => ms });
    const early = await kernelOn(store, { clock: wall(at + 30_200) });
    expect(await early.recovered).toEqual([]);
    // A clock that was moved back makes nothing older.
    const back = await kernelOn(store, { clock: wall(at - 86_400_000) });
    expect(await back.recovered).toEqual([]);
    const late = await kernelOn(store, { clock: wall(at + 30_201) });
    expect(await late.recovered).toEqual([ulidOf(1)]);
    await Promise.all([early, back, late].map((kernel) => kernel.close()));
  });

  it("should look at the newest thousand only", async () => {
    const store = unknowing(await intoMemory(await ledgerOf({ n: 1, log: OPEN })));
    for (let n = 0; n < 1000; n++) await store.append(opening(n, 1, { stream: later(n) }));
    const kernel = await kernelOn(store);
    expect(await kernel.recovered).toEqual([]);
    expect((await store.readStream(`hookdispatch-${ulidOf(1)}`))?.events).toHaveLength(2);
    await kernel.close();
  });

  /** A stream that begins after the ledger's own, and does not replay. */
  function later(n: number): ReturnType<typeof stream> {
    return `hookdispatch-7${stream(n).slice("hookdispatch-0".length)}`;
  }

  it("should give up on a store that does not answer, and hold nobody up any longer", async () => {
    const silent = unknowing(openMemoryStore());
    const clock = new VirtualClock();
    const lines: string[] = [];
    const kernel = await kernelOn(
      Object.assign(silent, {
        list: () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) }),
      }),
      { clock, storeTimeoutMs: 1000, log: ({ level, message }) => lines.push(`${level} ${message}`) },
    );
    const dispatched = kernel.dispatch({ sessionEnd: { sessionId: "s" } }, { id: ulidOf(7) });
    expect(await isSettled(dispatched)).toBe(false);
    await clock.run();
    expect(await dispatched).toMatchObject({ recorded: true });
    expect(clock.now()).toBe(1000);
    expect(lines).toEqual([
      "warn what a crash may have left open is not all closed: HL_STORE_UNAVAILABLE: it took more than 1000 ms",
    ]);
    await kernel.close();
  });

  it("should begin all the same where looking fails, and say so", async () => {
    const broken = unknowing(openMemoryStore());
    const lines: string[] = [];
    const kernel = await kernelOn(
      Object.assign(broken, {
        list() {
          throw new Error("no such index");
        },
      }),
      { log: ({ level, message }) => lines.push(`${level} ${message}`) },
    );
    await settled();
    expect(await kernel.recovered).toEqual([]);
    expect(lines).toEqual(["warn what a crash may have left open is not all closed: no such index"]);
    expect(await kernel.dispatch({ sessionEnd: { sessionId: "s" } })).toMatchObject({ recorded: true });
    await kernel.close();
  });
});
