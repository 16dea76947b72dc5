/** Rounds of work, death and recovery on one ledger, with what must hold after each. */
import { expect } from "vitest";
import type { Started } from "#src/core/events.js";
import type { PreToolCallPayload } from "#src/payload/messages.js";
import { payloadFromBytes } from "#src/payload/payload.js";
import { type Recovered, recover } from "#src/replay/recover.js";
import { openStore } from "#src/store/open.js";
import type { EventStore } from "#src/store/port.js";
import { payloadBytes } from "#src/store/record/payload-bytes.js";
import { type Acknowledged, KillChild, numbers, type Reading, readingOf } from "./kill.js";
import { collect } from "./store-fixtures.js";

export type Rounds = {
  /** URL of the ledger. */
  readonly url: string;
  readonly seed: number;
  readonly rounds: number;
  /** Processes that dispatch at once, all killed. */
  readonly writers: number;
  /** Processes that verify all the time. */
  readonly readers: number;
  /** Rounds after which the ledger is judged, 1 by default: it is read whole, again and again. */
  readonly judgeEvery?: number;
  /** Resolves once nothing that the dead have sent is still on its way. */
  readonly quiet?: () => Promise<void>;
};

/** Bytes that a child says at most before it is killed. */
const MAX_SAID = 6000;
/** Later than all timeouts: where a store cannot tell that the writers are dead, their age does. */
const LATER_MS = 3_600_000;

/**
 * Every other time what was left open is left to the next processes' start, which are killed as well. Returns how many decisions were
 * acknowledged in all.
 */
export async function killRounds({
  url,
  seed,
  rounds,
  writers,
  readers,
  judgeEvery = 1,
  quiet = async () => {},
}: Rounds): Promise<number> {
  const random = numbers(seed);
  const acknowledged: Acknowledged[] = [];
  const effects: number[] = [];
  // A reader needs a ledger.
  await (await openStore(url, { mode: "write" })).close();
  const reading = Array.from({ length: readers }, () => new KillChild("read", url));
  const start = (round: number) =>
    Array.from({ length: writers }, (_, writer) => {
      return new KillChild("dispatch", url, 1_000_000 * (round * writers + writer), 1_000_000);
    });
  let children = start(0);
  for (let round = 0; round < rounds; round++) {
    for (const child of children) child.proceed();
    // The next ones come up meanwhile, and touch nothing before they are told to.
    const next = round + 1 < rounds ? start(round + 1) : [];
    await Promise.all(children.map((child) => child.killAfter(random.next().value % MAX_SAID)));
    await quiet();
    for (const child of children) {
      acknowledged.push(...child.acknowledged());
      effects.push(...child.all("effect").map(Number));
    }
    children = next;
    if ((round + 1) % judgeEvery !== 0 && round + 1 < rounds) continue;
    const leave = Math.floor(round / judgeEvery) % 2 === 1 && round + 1 < rounds;
    await judge(url, acknowledged, effects, leave, `round ${round} of seed ${seed}`);
  }
  for (const reader of reading) {
    expect(await reader.stop()).toBe(0);
    expect(reader.all("diverged")).toEqual([]);
    expect(reader.all("read").length).toBeGreaterThan(0);
  }
  const last = new KillChild("dispatch", url, 0, 20);
  last.proceed();
  expect(await last.finished()).toBe(0);
  expect(last.acknowledged()).toHaveLength(20);
  return acknowledged.length;
}

/**
 * One process dispatches all the time while `disturb` does something to the ledger's server, again and again. Returns how many decisions
 * were recorded.
 */
export async function disturbedRounds({
  url,
  seed,
  rounds,
  disturb,
}: Pick<Rounds, "url" | "seed" | "rounds"> & {
  readonly disturb: (random: number) => Promise<void>;
}): Promise<number> {
  const random = numbers(seed);
  const child = new KillChild("dispatch", url, 0, 1_000_000);
  child.proceed();
  let said = 0;
  for (let round = 0; round < rounds; round++) {
    said += 1 + (random.next().value % MAX_SAID) / 4;
    await child.said(said);
    await disturb(random.next().value);
  }
  await child.said(said + MAX_SAID);
  expect(await child.stop()).toBe(0);
  const acknowledged = child.acknowledged();
  await judge(url, acknowledged, child.all("effect").map(Number), false, `seed ${seed}`);
  return acknowledged.filter(({ recorded }) => recorded).length;
}

async function judge(
  url: string,
  acknowledged: readonly Acknowledged[],
  effects: readonly number[],
  leave: boolean,
  where: string,
): Promise<void> {
  const store = await openStore(url, { mode: "write" });
  try {
    const before = await readingOf(store);
    expect(before.diverged, where).toEqual([]);
    expect(missing(acknowledged, before), where).toEqual([]);
    const called = await calledAtGuard(store);
    const unrecorded = effects.filter((n) => !called.has(n));
    expect(unrecorded, where).toEqual([]);
    if (!leave) await judgeRecovery(store, before, acknowledged, where);
  } finally {
    await store.close();
  }
}

async function judgeRecovery(
  store: EventStore,
  before: Reading,
  acknowledged: readonly Acknowledged[],
  where: string,
): Promise<void> {
  const recovered = await recovering(store);
  const after = await readingOf(store);
  expect({ diverged: after.diverged, open: after.open, allowed: after.allowed }, where).toEqual({
    diverged: [],
    open: 0,
    allowed: before.allowed,
  });
  expect(missing(acknowledged, after), where).toEqual([]);
  const skipped = recovered.filter(({ kind }) => kind === "skipped");
  expect(skipped, where).toEqual([]);
  expect(await recovering(store), where).toEqual([]);
}

async function recovering(store: EventStore): Promise<readonly Recovered[]> {
  const all: Recovered[] = [];
  for await (const recovered of recover(store, { dryRun: false, now: Date.now() + LATER_MS })) all.push(recovered);
  return all;
}

/** Numbers of the payloads with which the ledger says that the guard was called. */
async function calledAtGuard(store: EventStore): Promise<ReadonlySet<number>> {
  const called = new Set<number>();
  for (const { events } of await collect(store.readStreams({ order: "oldest" }))) {
    const [first] = events;
    if (first === undefined) continue;
    const { point, subscribers, input }: Started = JSON.parse(first.data);
    const guard = subscribers.find(({ provider }) => provider === "guard")?.index;
    const wasCalled = events.some(
      ({ type, data }) => type === "subscriber-invoked" && JSON.parse(data).index === guard,
    );
    if (point !== "pre-tool-call" || !wasCalled) continue;
    const payload = await payloadBytes(store, events, input.digest);
    if (payload.kind !== "found") throw new Error(`the input of ${first.stream} is ${payload.kind}`);
    const { call } = payloadFromBytes(payload.bytes).view as PreToolCallPayload;
    called.add(Number(call?.id.slice("payload ".length)));
  }
  return called;
}

/** Acknowledgements that the ledger does not bear out, or that should never have been given. */
function missing(acknowledged: readonly Acknowledged[], { concluded, allowed }: Reading): readonly Acknowledged[] {
  const allows = new Set(allowed);
  return acknowledged.filter(({ n, dispatchId, status, decision, payload, allowed, recorded: isRecorded }) => {
    // What could not be recorded is said to be so, and is never allowed.
    if (!isRecorded) return allowed || status !== "aborted";
    const recorded = concluded.get(dispatchId);
    const asRecorded = recorded?.status === status && recorded.decision === decision && recorded.payload === payload;
    const gated = n % 4 < 2 && n % 3 === 0;
    return !asRecorded || allowed !== allows.has(dispatchId) || allowed === gated;
  });
}
