/**
 * A ledger as anybody would explain it: streams are lists of events, and what was acknowledged is there. fast-check drives a real store
 * and this model through the same commands; wherever a store may choose, it is read back, and held to what it chose.
 */
import fc from "fast-check";
import { expect } from "vitest";
import type { HookledgerError } from "#src/errors.js";
import { canonicalJson } from "#src/payload/canonical-json.js";
import type { AppendRequest, AppendResult, EventDraft, EventStore, StreamName } from "#src/store/port.js";
import { chainsOf, collect, draft, expectedChain, stream } from "../support/store-fixtures.js";

/** A store under test, with what can happen to it. */
export type StoreUnderTest = {
  readonly store: EventStore;
  /** The next append is carried out or not, and reported as failed; undefined where the store knows no such fault. */
  failNext(fault: StoreFault): void;
  /** Whoever writes dies with everything that is not acknowledged under way; the store goes on, or is opened again. */
  crash(): Promise<void>;
  /** Closed, and opened again. */
  reopen(): Promise<void>;
};

export type StoreFault = "lose the reply" | "lose the request" | "refuse";

/** Number of a stream, its events, and the appends that made them. */
type Stream = { readonly events: EventDraft[]; readonly batches: Batch[]; session: string | null };
type Batch = { readonly request: AppendRequest; readonly result: AppendResult };
export type Model = { readonly streams: Map<number, Stream> };

type Command = fc.AsyncCommand<Model, StoreUnderTest>;

const SESSIONS = [undefined, "s1", "__proto__"] as const;

/** Commands for `fc.asyncModelRun`. */
export function storeCommands(maxCommands: number): fc.Arbitrary<Iterable<Command>> {
  const n = fc.nat({ max: 3 });
  const count = fc.integer({ min: 1, max: 3 });
  const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 12 }), fc.constant("x".repeat(5000)));
  const fault = fc.constantFrom<StoreFault>("lose the reply", "lose the request", "refuse");
  const appending = fc.record({ n, count, text, barrier: fc.boolean(), session: fc.constantFrom(...SESSIONS) });
  return fc.commands(
    [
      appending.map((parts) => new Append(parts)),
      appending.map((parts) => new Append(parts)),
      fc.tuple(appending, fault, fc.boolean()).map(([parts, what, read]) => new FailedAppend(parts, what, read)),
      fc.tuple(n, fc.nat(), fc.boolean()).map(([at, which, barrier]) => new Repeat(at, which, barrier)),
      fc.tuple(n, fc.constantFrom(...CONFLICTS)).map(([at, kind]) => new Conflict(at, kind)),
      fc.tuple(n, fc.array(count, { minLength: 1, maxLength: 4 }), text).map((parts) => new Crash(...parts)),
      fc.constant(new Reopen()),
      n.map((at) => new Read(at)),
      fc
        .tuple(fc.constantFrom("oldest" as const, "newest" as const), fc.constantFrom(...SESSIONS, null))
        .map((parts) => new List(...parts)),
      fc.nat().map((from) => new ReadAll(from)),
      fc.constant(new Subscribe()),
    ],
    { maxCommands },
  );
}

export function emptyModel(): Model {
  return { streams: new Map() };
}

/** Everything at once, at the end of a run. */
export async function expectAsModelled(model: Model, { store }: StoreUnderTest): Promise<void> {
  for (const n of [0, 1, 2, 3]) await expectStream(model, store, n);
  await expectLog(model, await collect(store.readAll({ after: 0 })));
}

type Appending = {
  readonly n: number;
  readonly count: number;
  readonly text: string;
  readonly barrier: boolean;
  readonly session: string | undefined;
};

/** The next append of a stream. */
function request(model: Model, { n, count, text, barrier, session }: Appending): AppendRequest {
  const have = model.streams.get(n)?.events.length ?? 0;
  return {
    stream: stream(n),
    expected: have === 0 ? "none" : have - 1,
    events: Array.from({ length: count }, (_, i) =>
      draft(have + i, {
        id: `0191abcd-0000-8000-8${String(n).padStart(3, "0")}-${String(have + i).padStart(12, "0")}`,
        data: canonicalJson({ index: have + i, text: text.isWellFormed() ? text : "" }),
        metadata: canonicalJson({
          ...(session === undefined ? {} : { $correlationId: session }),
          at: "2026-01-01T00:00:00.000Z",
          offsetNs: have + i,
        }),
        ...(i === 0 ? { payloads: '{"sha256:00":"AAAA"}' } : {}),
      }),
    ),
    barrier,
    ...(have === 0 && session !== undefined ? { session } : {}),
  };
}

function keep(model: Model, n: number, appended: AppendRequest, result: AppendResult): void {
  const known = model.streams.get(n) ?? { events: [], batches: [], session: appended.session ?? null };
  model.streams.set(n, known);
  known.events.push(...appended.events);
  known.batches.push({ request: appended, result });
  expect(result.revision).toBe(known.events.length - 1);
}

class Append implements Command {
  readonly #parts: Appending;
  constructor(parts: Appending) {
    this.#parts = parts;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, { store }: StoreUnderTest): Promise<void> {
    const appended = request(model, this.#parts);
    keep(model, this.#parts.n, appended, await store.append(appended));
  }
  toString(): string {
    return `append(${canonicalJson({ ...this.#parts, session: this.#parts.session ?? null })})`;
  }
}

/** Reported as failed; whoever asked reads back if they like, and repeats it. */
class FailedAppend implements Command {
  readonly #parts: Appending;
  readonly #fault: StoreFault;
  readonly #readsBack: boolean;
  constructor(parts: Appending, fault: StoreFault, readsBack: boolean) {
    this.#parts = parts;
    this.#fault = fault;
    this.#readsBack = readsBack;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, under: StoreUnderTest): Promise<void> {
    const appended = request(model, this.#parts);
    under.failNext(this.#fault);
    const outcome = await settle(under.store.append(appended));
    if ("result" in outcome) {
      // A store may have mended it by itself.
      keep(model, this.#parts.n, appended, outcome.result);
      return;
    }
    expect(["HL_STORE_AMBIGUOUS", "HL_STORE_UNAVAILABLE"]).toContain(outcome.error.code);
    if (this.#readsBack) {
      const have = (await under.store.readStream(appended.stream))?.events.length ?? 0;
      const before = model.streams.get(this.#parts.n)?.events.length ?? 0;
      expect([before, before + appended.events.length]).toContain(have);
      if (outcome.error.code === "HL_STORE_UNAVAILABLE") expect(have).toBe(before);
    }
    keep(model, this.#parts.n, appended, await under.store.append(appended));
  }
  toString(): string {
    return `failed append(${this.#parts.n}, ${this.#parts.count}, ${this.#fault}, ${this.#readsBack})`;
  }
}

/** An identical batch at its exact revision, however long ago. */
class Repeat implements Command {
  readonly #n: number;
  readonly #which: number;
  readonly #barrier: boolean;
  constructor(n: number, which: number, barrier: boolean) {
    this.#n = n;
    this.#which = which;
    this.#barrier = barrier;
  }
  check({ streams }: Readonly<Model>): boolean {
    return streams.has(this.#n);
  }
  async run({ streams }: Model, { store }: StoreUnderTest): Promise<void> {
    const batches = streams.get(this.#n)?.batches ?? [];
    const batch = batches[this.#which % batches.length]!;
    expect(await store.append({ ...batch.request, barrier: this.#barrier })).toEqual(batch.result);
  }
  toString(): string {
    return `repeat(${this.#n}, ${this.#which})`;
  }
}

const CONFLICTS = ["behind", "ahead", "new", "overlap", "other id", "other data"] as const;

class Conflict implements Command {
  readonly #n: number;
  readonly #kind: (typeof CONFLICTS)[number];
  constructor(n: number, kind: (typeof CONFLICTS)[number]) {
    this.#n = n;
    this.#kind = kind;
  }
  check({ streams }: Readonly<Model>): boolean {
    return streams.has(this.#n);
  }
  async run(model: Model, { store }: StoreUnderTest): Promise<void> {
    const outcome = await settle(store.append(this.#request(model)));
    expect("error" in outcome ? outcome.error.code : outcome).toBe("HL_STORE_CONFLICT");
    await expectStream(model, store, this.#n);
  }
  #request({ streams }: Model): AppendRequest {
    const { events, batches } = streams.get(this.#n)!;
    const last = batches.at(-1)!.request;
    const other = draft(99, { id: "0191abcd-0000-8000-8000-999999999999" });
    const name = stream(this.#n);
    switch (this.#kind) {
      case "behind":
        return {
          stream: name,
          expected: events.length === 1 ? "none" : events.length - 2,
          events: [other],
          barrier: true,
        };
      case "ahead":
        return { stream: name, expected: events.length, events: [other], barrier: true };
      case "new":
        return { stream: name, expected: "none", events: [other], barrier: true };
      case "overlap":
        return { stream: name, expected: last.expected, events: [...last.events, other], barrier: true };
      case "other id":
        return { ...last, events: [...last.events.slice(0, -1), { ...last.events.at(-1)!, id: other.id }] };
      case "other data":
        return { ...last, events: [...last.events.slice(0, -1), { ...last.events.at(-1)!, data: '{"index":-1}' }] };
    }
  }
  toString(): string {
    return `conflict(${this.#n}, ${this.#kind})`;
  }
}

/** Several appends under way when the writer dies: a prefix of them is there, and repeating them all mends it. */
class Crash implements Command {
  readonly #n: number;
  readonly #counts: readonly number[];
  readonly #text: string;
  constructor(n: number, counts: readonly number[], text: string) {
    this.#n = n;
    this.#counts = counts;
    this.#text = text;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, under: StoreUnderTest): Promise<void> {
    const planned: Model = { streams: new Map(structuredClone([...model.streams])) };
    const requests = this.#counts.map((count) => {
      const parts = { n: this.#n, count, text: this.#text, barrier: false, session: undefined };
      const appended = request(planned, parts);
      const have = planned.streams.get(this.#n)?.events.length ?? 0;
      keep(planned, this.#n, appended, { revision: have + count - 1, position: 0 });
      return appended;
    });
    const outcomes = Promise.all(requests.map((appended) => settle(under.store.append(appended))));
    await under.crash();
    const acknowledged = (await outcomes).filter((outcome) => "result" in outcome).length;
    expect((await outcomes).slice(0, acknowledged).every((outcome) => "result" in outcome)).toBe(true);
    const have = (await under.store.readStream(stream(this.#n)))?.events.length ?? 0;
    const before = model.streams.get(this.#n)?.events.length ?? 0;
    const sums = this.#counts.map((_, i) => before + this.#counts.slice(0, i + 1).reduce((a, b) => a + b));
    expect([before, ...sums].slice(acknowledged)).toContain(have);
    for (const appended of requests) keep(model, this.#n, appended, await under.store.append(appended));
  }
  toString(): string {
    return `crash(${this.#n}, ${this.#counts.join("+")})`;
  }
}

class Reopen implements Command {
  check(): boolean {
    return true;
  }
  async run(_model: Model, under: StoreUnderTest): Promise<void> {
    await under.reopen();
  }
  toString(): string {
    return "reopen";
  }
}

class Read implements Command {
  readonly #n: number;
  constructor(n: number) {
    this.#n = n;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, { store }: StoreUnderTest): Promise<void> {
    await expectStream(model, store, this.#n);
  }
  toString(): string {
    return `read(${this.#n})`;
  }
}

class List implements Command {
  readonly #order: "oldest" | "newest";
  readonly #session: string | null | undefined;
  constructor(order: "oldest" | "newest", session: string | null | undefined) {
    this.#order = order;
    this.#session = session;
  }
  check(): boolean {
    return true;
  }
  async run({ streams }: Model, { store }: StoreUnderTest): Promise<void> {
    const matching = [...streams]
      .filter(([, { session }]) => this.#session === undefined || session === this.#session)
      .map(([n, { events }]) => ({ stream: stream(n), revision: events.length - 1 }))
      .sort((a, b) => (a.stream < b.stream ? -1 : 1));
    const expected = this.#order === "oldest" ? matching : matching.reverse();
    const filter = { order: this.#order, ...(this.#session === undefined ? {} : { session: this.#session }) };
    const heads = await collect(store.list(filter));
    expect(heads.map(({ stream: name, revision }) => ({ stream: name, revision }))).toEqual(expected);
    const whole = await collect(store.readStreams(filter));
    expect(whole.map(({ head }) => head)).toEqual(heads);
  }
  toString(): string {
    return `list(${this.#order}, ${this.#session})`;
  }
}

class ReadAll implements Command {
  readonly #from: number;
  constructor(from: number) {
    this.#from = from;
  }
  check(): boolean {
    return true;
  }
  async run(model: Model, { store }: StoreUnderTest): Promise<void> {
    const all = await collect(store.readAll({ after: 0 }));
    expectLog(model, all);
    const from = this.#from % (all.length + 1);
    expect(await collect(store.readAll({ after: all[from - 1]?.position ?? 0 }))).toEqual(all.slice(from));
  }
  toString(): string {
    return `read all(${this.#from})`;
  }
}

/** Everything so far, each event once, in the order of the ledger. */
class Subscribe implements Command {
  check({ streams }: Readonly<Model>): boolean {
    return streams.size > 0;
  }
  async run(model: Model, { store }: StoreUnderTest): Promise<void> {
    const abort = new AbortController();
    const total = [...model.streams.values()].reduce((sum, { events }) => sum + events.length, 0);
    const seen = [];
    for await (const page of store.subscribe({ after: 0, signal: abort.signal })) {
      seen.push(...page);
      if (seen.length >= total) abort.abort();
    }
    expectLog(model, seen);
  }
  toString(): string {
    return "subscribe";
  }
}

type Told = { readonly stream: StreamName; readonly revision: number; readonly position: number; readonly id: string };

function expectLog({ streams }: Model, log: readonly Told[]): void {
  const positions = log.map(({ position }) => position);
  expect(positions).toEqual([...new Set(positions)].sort((a, b) => a - b));
  for (const [n, { events }] of streams) {
    const own = log.filter((event) => event.stream === stream(n));
    expect(own.map(({ id, revision }) => [revision, id])).toEqual(events.map(({ id }, revision) => [revision, id]));
  }
  expect(log).toHaveLength([...streams.values()].reduce((sum, { events }) => sum + events.length, 0));
}

async function expectStream({ streams }: Model, store: EventStore, n: number): Promise<void> {
  const found = await store.readStream(stream(n));
  const known = streams.get(n);
  if (known === undefined) {
    expect(found).toBeNull();
    return;
  }
  if (found === null) throw new Error(`stream ${n} is missing`);
  expect(found.events.map(({ id, type, data, revision }) => ({ id, type, data, revision }))).toEqual(
    known.events.map(({ id, type, data }, revision) => ({ id, type, data, revision })),
  );
  const chains = expectedChain(found.events);
  expect(chainsOf(found.events)).toEqual(chains);
  expect(found.head).toMatchObject({ revision: known.events.length - 1, session: known.session, chain: chains.at(-1) });
}

type Settled = { readonly result: AppendResult } | { readonly error: HookledgerError };

function settle(append: Promise<AppendResult>): Promise<Settled> {
  return append.then(
    (result) => ({ result }),
    (error: HookledgerError) => ({ error }),
  );
}
