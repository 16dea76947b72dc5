import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EventStore } from "#src/store/port.js";
import { DELIVERY_STATES, type DeliveryChange, type DeliveryState, type QueuedDelivery } from "#src/store/queue.js";
import { openSqliteStore } from "#src/store/sqlite/store.js";
import { spawnWriter } from "#src/store/sqlite/writer-client.js";
import { allDeliveries, delivery, deliveryId, queueIn } from "../support/deliveries.js";
import { opening, stream, temporaryFolder } from "../support/store-fixtures.js";

/** One call. What it changes is told by the model of a queue as a list, which knows nothing of SQLite. */
type Call =
  | {
      readonly call: "put";
      readonly numbers: readonly number[];
      readonly state: DeliveryState;
      readonly barrier: boolean;
    }
  | {
      readonly call: "change";
      readonly n: number;
      readonly from: readonly DeliveryState[];
      readonly to: DeliveryChange;
      readonly barrier: boolean;
    }
  | { readonly call: "append"; readonly n: number };

/** Calls that are made at once, and what comes then. */
type Step = { readonly calls: readonly Call[]; readonly end: "go on" | "reopen" | "kill the thread" };

const state = fc.constantFrom(...DELIVERY_STATES);
const n = fc.nat({ max: 5 });
const change = fc.record(
  {
    state,
    attempts: fc.nat({ max: 9 }),
    partsSent: fc.nat({ max: 9 }),
    dueAt: fc.maxSafeNat(),
    receipts: fc.string({ unit: "grapheme" }),
    error: fc.option(fc.string({ unit: "grapheme" })),
  },
  { requiredKeys: [] },
);
const call: fc.Arbitrary<Call> = fc.oneof(
  fc.record({
    call: fc.constant("put" as const),
    numbers: fc.array(n, { maxLength: 3 }),
    state,
    barrier: fc.boolean(),
  }),
  fc.record({
    call: fc.constant("change" as const),
    n,
    from: fc.subarray([...DELIVERY_STATES]),
    to: change,
    barrier: fc.boolean(),
  }),
  fc.record({ call: fc.constant("append" as const), n }),
);
const step: fc.Arbitrary<Step> = fc.record({
  calls: fc.array(call, { minLength: 1, maxLength: 8 }),
  end: fc.constantFrom("go on", "go on", "reopen", "kill the thread"),
});

type Answer = "done" | "refused" | boolean;

class Model {
  deliveries = new Map<string, QueuedDelivery>();
  streams = new Set<number>();

  /** What the call is answered. */
  carryOut(made: Call): Answer {
    switch (made.call) {
      case "append": {
        this.streams.add(made.n);
        return "done";
      }
      case "put": {
        const next = new Map(this.deliveries);
        for (const number of made.numbers) {
          const given = delivery(number, { state: made.state });
          const there = next.get(given.id);
          if (there !== undefined && JSON.stringify(there) !== JSON.stringify(given)) return "refused";
          next.set(given.id, given);
        }
        this.deliveries = next;
        return "done";
      }
      case "change": {
        const there = this.deliveries.get(deliveryId(made.n));
        if (there === undefined || !made.from.includes(there.state)) return false;
        this.deliveries.set(there.id, { ...there, ...made.to });
        return true;
      }
    }
  }

  /** Whoever has begun an attempt is gone. */
  forgetAttempts(): void {
    for (const [id, one] of this.deliveries)
      if (one.state === "attempting") this.deliveries.set(id, { ...one, state: "unknown" });
  }

  get sorted(): readonly QueuedDelivery[] {
    return [...this.deliveries.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  copy(): Model {
    const copy = new Model();
    copy.deliveries = new Map(this.deliveries);
    copy.streams = new Set(this.streams);
    return copy;
  }
}

async function makeCall(store: EventStore, made: Call): Promise<Answer | "ambiguous"> {
  const queue = queueIn(store);
  try {
    switch (made.call) {
      case "append":
        await store.append(opening(made.n, 1, { barrier: false }));
        return "done";
      case "put":
        await queue.put(
          made.numbers.map((number) => delivery(number, { state: made.state })),
          made.barrier,
        );
        return "done";
      case "change":
        return await queue.change(deliveryId(made.n), made.from, made.to, made.barrier);
    }
  } catch (error) {
    if (error instanceof Error && "code" in error) {
      if (error.code === "HL_STORE_CONFLICT") return "refused";
      if (error.code === "HL_STORE_AMBIGUOUS") return "ambiguous";
    }
    throw error;
  }
}

async function isAs(model: Model, store: EventStore): Promise<boolean> {
  const found = await allDeliveries(queueIn(store));
  const streams = await Promise.all(
    [0, 1, 2, 3, 4, 5].map(async (at) => (await store.readStream(stream(at))) !== null),
  );
  return (
    JSON.stringify(found) === JSON.stringify(model.sorted) && streams.every((is, at) => is === model.streams.has(at))
  );
}

describe("a queue in a file, whatever is done to it", () => {
  it("should be as the model says", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        const folder = temporaryFolder();
        let worker: Worker | undefined;
        const open = () =>
          openSqliteStore(join(folder.path, "ledger.db"), {
            mode: "write",
            spawnWriter: (data) => {
              worker = spawnWriter(data);
              return worker;
            },
          });
        let store = await open();
        try {
          let model = new Model();
          for (const { calls, end } of steps) {
            const answers = Promise.all(calls.map((made) => makeCall(store, made)));
            if (end === "kill the thread") {
              await new Promise((resolve) => setImmediate(resolve));
              await worker?.terminate();
            }
            const given = await answers;
            // Of what was ambiguous a beginning was carried out.
            const unsure = given.flatMap((answer, i) => (answer === "ambiguous" ? i : []));
            const candidates = [...unsure.map((_, carried) => carried), unsure.length].flatMap((carried) => {
              const candidate = model.copy();
              const fits = calls.every((made, i) => {
                if (given[i] !== "ambiguous") return candidate.carryOut(made) === given[i];
                if (unsure.indexOf(i) < carried) candidate.carryOut(made);
                return true;
              });
              return fits ? candidate : [];
            });
            const fitting: Model[] = [];
            for (const candidate of candidates) if (await isAs(candidate, store)) fitting.push(candidate);
            expect(fitting.length).toBeGreaterThan(0);
            model = fitting[0] ?? model;
            if (end === "reopen") {
              await store.close();
              store = await open();
              model.forgetAttempts();
            }
            const wanted = (["unknown", "sent"] as const).flatMap((one) => model.sorted.filter((d) => d.state === one));
            const found = await queueIn(store).deliveries({ states: ["sent", "unknown"] });
            expect(found.map(({ id }) => id)).toEqual(wanted.map(({ id }) => id).sort());
          }
        } finally {
          await store.close();
          folder.remove();
        }
      }),
      { numRuns: 20 },
    );
  }, 60_000);
});
