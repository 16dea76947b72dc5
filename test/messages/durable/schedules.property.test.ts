/** Processes that die, channels that refuse, lose and keep silent, a queue that fails: whatever comes in whatever order, what must hold. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createMessageHooks } from "#src/messages/create.js";
import { openDurableDeliveries } from "#src/messages/durable/deliveries.js";
import { NotSentError } from "#src/messages/durable/not-sent.js";
import type { ChannelAdapter } from "#src/messages/outbound/adapter.js";
import type { DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import { definePlugin } from "#src/messages/plugin.js";
import { openMemoryStore } from "#src/store/memory.js";
import { type QueueCall, QueueModel } from "../../support/queue-model.js";
import { settled, VirtualClock } from "../../support/virtual-clock.js";
import { quiet } from "./scene.js";

type Fate =
  | "taken"
  | "refused"
  /** Taken, and nobody hears of it. */
  | "unacknowledged"
  /** Not taken, and nobody hears of it. */
  | "lost"
  | "silent"
  | "taken silently";
type Answer = "honest" | "down";

const plan = fc.record({
  telling: fc.boolean(),
  /** Of each delivery: its lane, its parts, and how long after the one before it comes. */
  deliveries: fc.array(
    fc.record({ lane: fc.nat(1), parts: fc.integer({ min: 1, max: 3 }), afterMs: fc.constantFrom(0, 0, 5, 40) }),
    { minLength: 1, maxLength: 6 },
  ),
  fates: fc.array(
    fc.constantFrom<Fate>("taken", "taken", "taken", "refused", "unacknowledged", "lost", "silent", "taken silently"),
    { maxLength: 16 },
  ),
  answers: fc.array(fc.constantFrom<Answer>("honest", "honest", "down"), { maxLength: 6 }),
  /** Calls of the queue that fail, by number. */
  failures: fc.array(fc.nat(30), { maxLength: 3 }),
  /** Steps after which a process dies, one process after the other. */
  deaths: fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 4 }),
});
type Plan = typeof plan extends fc.Arbitrary<infer P> ? P : never;

const MAX_ATTEMPTS = 2;

/** The channel, which outlives all processes. */
class World {
  readonly taken: string[] = [];
  readonly acknowledged: string[] = [];
  readonly told: { readonly n: number; readonly success: boolean }[] = [];
  readonly modified: string[] = [];
  readonly queue = new QueueModel();
  readonly clock = new VirtualClock();
  readonly #plan: Plan;
  #sends = 0;
  #asked = 0;
  #calls = 0;
  #deaths = 0;
  /** What an end of a delivery could not be written through: whoever is next may find the same end again. */
  settleFailed = false;
  /** Nothing goes wrong any more. */
  calm = false;

  constructor(given: Plan) {
    this.#plan = given;
  }

  fate(): Fate {
    return this.calm ? "taken" : (this.#plan.fates[this.#sends++] ?? "taken");
  }

  answer(): Answer {
    return this.calm ? "honest" : (this.#plan.answers[this.#asked++] ?? "honest");
  }

  failsNext(call: QueueCall): boolean {
    const fails = !this.calm && this.#plan.failures.includes(this.#calls++) && call.op !== "read";
    if (fails && call.op === "change" && call.change.state !== "attempting") this.settleFailed = true;
    return fails;
  }

  nextDeath(): number {
    return this.calm ? Number.POSITIVE_INFINITY : (this.#plan.deaths[this.#deaths++] ?? Number.POSITIVE_INFINITY);
  }
}

async function processOf(world: World, telling: boolean) {
  const queue = world.queue.open();
  let left = world.nextDeath();
  const step = async (): Promise<void> => {
    if (--left === 0) queue.die();
    if (!queue.alive) await new Promise<never>(() => {});
  };
  queue.before = async (call) => {
    await step();
    if (world.failsNext(call)) throw new Error("the queue fails");
  };
  const adapter: ChannelAdapter = {
    channelId: "test",
    async send({ idempotencyKey }) {
      await step();
      const fate = world.fate();
      if (fate === "taken" || fate === "unacknowledged" || fate === "taken silently") world.taken.push(idempotencyKey);
      await step();
      switch (fate) {
        case "taken":
          world.acknowledged.push(idempotencyKey);
          return { messageId: idempotencyKey };
        case "refused":
          throw new NotSentError("refused");
        case "unacknowledged":
        case "lost":
          throw new Error("reset");
        case "silent":
        case "taken silently":
          return new Promise<never>(() => {});
      }
    },
    ...(telling
      ? {
          async wasSent(key: string) {
            await step();
            if (world.answer() === "down") throw new Error("down");
            return world.taken.includes(key);
          },
        }
      : {}),
  };
  const hooks = await createMessageHooks({
    store: openMemoryStore(),
    plugins: [
      definePlugin({
        id: "p",
        register(api) {
          api.on(
            "reply_payload_sending",
            ({ payload }) => void world.modified.push(`payload ${payload.mediaUrls?.[0]}`),
          );
          api.on("message_sending", ({ metadata }) => void world.modified.push(`content ${JSON.stringify(metadata)}`));
          api.on("message_sent", ({ content, success }) => {
            if (queue.alive) world.told.push({ n: Number(content), success });
          });
        },
      }),
    ],
    clock: world.clock,
  });
  const opening = openDurableDeliveries({
    queue,
    runs: hooks.runs,
    channelOf: () => adapter,
    clock: world.clock,
    random: () => 0.5,
    retry: { maxAttempts: MAX_ATTEMPTS, baseMs: 10 },
    sendTimeoutMs: 50,
    pollMs: 100,
  });
  // It may die, or its queue fail, while it opens.
  let deliveries: Awaited<typeof opening> | null = null;
  opening.then(
    (opened) => {
      deliveries = opened;
    },
    () => queue.die(),
  );
  await quiet();
  return { queue, hooks, adapter, deliveries: () => (queue.alive ? deliveries : null) };
}

async function played(given: Plan) {
  const world = new World(given);
  const outcomes = new Map<number, DeliveryOutcome>();
  const opened: Awaited<ReturnType<typeof processOf>>[] = [];
  const living = async () => {
    for (;;) {
      const last = opened.at(-1);
      const deliveries = last?.deliveries() ?? null;
      if (last !== undefined && deliveries !== null) return { ...last, deliveries };
      last?.queue.die();
      opened.push(await processOf(world, given.telling));
    }
  };
  for (const [n, { lane, parts, afterMs }] of given.deliveries.entries()) {
    if (afterMs > 0) await passing(world.clock, afterMs);
    const { queue, hooks, adapter, deliveries } = await living();
    const mediaUrls = Array.from({ length: parts }, (_, part) => `${n}/${part}`);
    void deliveries
      .deliver([{ text: String(n), mediaUrls }], {
        runs: hooks.runs,
        route: { adapter, to: `lane ${lane}`, context: { channelId: "test" } },
        idempotencyKey: `d${n}`,
      })
      .then(({ outcomes: [outcome] }) => {
        if (queue.alive && outcome !== undefined) outcomes.set(n, outcome);
      });
    await settled();
  }
  for (let round = 0; round < 8; round++) {
    await living();
    await passing(world.clock, 1000);
  }
  // What a process left attempting whose queue failed, or whose channel never answered, is for the next one.
  world.calm = true;
  opened.at(-1)?.queue.die();
  await living();
  await passing(world.clock, 1000);
  return { world, outcomes };
}

async function passing(clock: VirtualClock, ms: number): Promise<void> {
  let passed = false;
  clock.timer(ms, () => {
    passed = true;
  });
  await clock.run(() => passed);
}

describe("deliveries under any schedule of deaths, refusals, lost acknowledgements and failures of the queue", () => {
  it("should lose nothing that was kept, send nothing twice, ask no hook twice, and leave visible what nobody knows", async () => {
    const ends = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(plan, async (given) => {
        const { world, outcomes } = await played(given);
        const rows = world.queue.all;
        const byKey = new Map(rows.map((row) => [row.idempotencyKey, row]));
        const { taken, acknowledged, told, modified } = world;
        for (const { state } of rows) ends.set(state, (ends.get(state) ?? 0) + 1);

        expect(new Set(taken).size, "sent twice").toBe(taken.length);
        expect(new Set(modified).size, "modified twice").toBe(modified.length);
        expect(rows.length).toBe(byKey.size);
        for (const key of taken)
          expect(byKey.get(key.slice(0, -2))?.attempts, "sent without evidence").toBeGreaterThan(0);
        for (const [n, { custody, status }] of outcomes) {
          const row = byKey.get(`d${n}:0`);
          expect(row !== undefined && row.error !== "its custody was not acknowledged", "kept").toBe(
            custody !== undefined,
          );
          if (status === "sent") expect(row?.state === "sent" || world.settleFailed, "said to be sent").toBe(true);
        }
        for (const { idempotencyKey, state, attempts, partsSent } of rows) {
          const n = Number(idempotencyKey.slice(1, -2));
          const parts = given.deliveries[n]?.parts ?? 0;
          const out = taken.filter((key) => key.startsWith(`${idempotencyKey}:`)).length;
          const heard = acknowledged.filter((key) => key.startsWith(`${idempotencyKey}:`)).length;
          const end = told.filter((one) => one.n === n);
          if (!world.settleFailed) expect(end.length, "told twice").toBeLessThanOrEqual(1);
          for (const { success } of end) if (success) expect(out, "told of success").toBe(parts);
          switch (state) {
            case "sent":
              expect([out, partsSent]).toEqual([parts, parts]);
              break;
            case "failed":
              expect(attempts).toBeGreaterThanOrEqual(MAX_ATTEMPTS);
              expect([out, heard <= out]).toEqual([partsSent, true]);
              break;
            case "unknown":
              expect(given.telling, "a channel that can tell was not asked").toBe(false);
              expect(out - partsSent).toBeLessThanOrEqual(parts);
              break;
            case "dropped":
              expect(out).toBe(0);
              break;
            case "pending":
            case "attempting":
              expect.fail(`${idempotencyKey} is ${state}`);
          }
        }
      }),
      { numRuns: 1_000 },
    );
    // The schedules are worth something: deliveries end in every way that there is.
    for (const state of ["sent", "failed", "unknown"]) expect(ends.get(state), state).toBeGreaterThan(5);
  });
});
