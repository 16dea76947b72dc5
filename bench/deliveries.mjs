// Replies in durable custody through four plugins: hooks, ledger and queue in one SQLite file, and what has to be on the disk before a send.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createMessageHooks, openDurableDeliveries } from "hookledger/messages";
import { openStore } from "#src/store/open.js";
import { queueOf } from "#src/store/queue-of.js";
import { heading, percentile, row } from "./measure.mjs";

const AT_ONCE = 64;
const WARM_UP = 1000;
const DELIVERIES = 4000;
const ROUNDS = 5;

const PLUGINS = [
  { id: "shape", register: (api) => void api.on("reply_payload_sending", ({ payload }) => ({ payload })) },
  { id: "rewrite", register: (api) => void api.on("message_sending", ({ content }) => ({ content: `${content} ` })) },
  { id: "secrets", register: (api) => void api.on("message_sending", ({ content }) => ({ cancel: content === "" })) },
  { id: "log", register: (api) => void api.on("message_sent", () => {}) },
];

export async function durableDeliveries() {
  heading(
    "a reply in durable custody: 4 plugins, 3 hooks, ledger and queue in one SQLite file",
    "hooks, custody and evidence on the disk, a send that answers at once, message_sent; deliveries with 64 at once, and one at a time",
    "a channel that takes time, retries",
  );
  const folder = mkdtempSync(join(tmpdir(), "hookledger-bench-"));
  const store = await openStore(`sqlite:${join(folder, "ledger.db")}`, { mode: "write" });
  const barriers = { all: 0 };
  const counted = countingBarriers(store, queueOf(store), barriers);
  const hooks = await createMessageHooks({ store: counted.store, plugins: PLUGINS });
  const adapter = { channelId: "bench", send: () => ({ messageId: "m" }) };
  const deliveries = await openDurableDeliveries({
    queue: counted.queue,
    runs: hooks.runs,
    channelOf: () => adapter,
  });
  const one = async (n) => {
    const start = performance.now();
    const { status } = await deliveries.deliver([{ text: `Your order ${n} has left the warehouse.` }], {
      runs: hooks.runs,
      route: {
        adapter,
        to: `+49${n % 1000}`,
        context: { channelId: "bench", sessionKey: `s-${n % 1000}`, runId: `r-${n}` },
      },
    });
    if (status !== "sent") throw new Error(`delivery ${n}: ${status}`);
    return performance.now() - start;
  };
  await many(one, WARM_UP);
  const rates = [];
  const waits = [];
  for (let round = 0; round < ROUNDS; round++) {
    const start = performance.now();
    waits.push(...(await many(one, DELIVERIES)));
    rates.push(DELIVERIES / ((performance.now() - start) / 1000));
  }
  barriers.all = 0;
  const alone = [];
  for (let n = 0; n < 200; n++) alone.push(await one(n));
  const perDelivery = barriers.all / alone.length;
  await deliveries.close();
  await hooks.close();
  await store.close();
  rmSync(folder, { recursive: true });
  rates.sort((a, b) => a - b);
  row(
    "64 at once",
    `${Math.round(rates[Math.floor(ROUNDS / 2)])} /s`,
    `target ≥ 1000 /s; rounds: ${rates.map(Math.round).join(", ")}`,
  );
  row("  one of them, median", `${percentile(waits, 50).toFixed(1)} ms`, `p99 ${percentile(waits, 99).toFixed(1)} ms`);
  row("one at a time, median", `${percentile(alone, 50).toFixed(2)} ms`, `p99 ${percentile(alone, 99).toFixed(2)} ms`);
  row(
    "barriers a delivery",
    perDelivery.toFixed(2),
    "target 1: all that is waited for on the disk, before its send or after",
  );
}

async function many(run, count) {
  const waits = [];
  let next = 0;
  const lane = async () => {
    while (next < count) waits.push(await run(next++));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
  return waits;
}

/** The same store and queue, which count what is asked to be on the disk. */
function countingBarriers(store, queue, barriers) {
  const note = (barrier) => {
    if (barrier) barriers.all++;
  };
  return {
    store: new Proxy(store, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        if (name !== "append") return value.bind(target);
        return (request) => {
          note(request.barrier);
          return target.append(request);
        };
      },
    }),
    queue: {
      put: (rows, barrier) => {
        note(barrier);
        return queue.put(rows, barrier);
      },
      change: (id, from, to, barrier) => {
        note(barrier);
        return queue.change(id, from, to, barrier);
      },
      deliveries: (filter) => queue.deliveries(filter),
    },
  };
}
