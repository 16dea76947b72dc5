/** Rounds of durable deliveries and death on one ledger, to a channel that outlives them all, with what must hold after each. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { openStore } from "#src/store/open.js";
import type { QueuedDelivery } from "#src/store/queue.js";
import { queueOf } from "#src/store/queue-of.js";
import { KillChild, numbers } from "./kill.js";

const CHANNEL = fileURLToPath(new URL("./delivery-channel.mjs", import.meta.url));
const CHILD = fileURLToPath(new URL("./delivery-child.mjs", import.meta.url));

/** Bytes that a child says at most before it is killed: some hundred deliveries. */
const MAX_SAID = 20_000;
const PER_ROUND = 100_000;

type Taken = { readonly key: string; readonly text: string };
type Outcome = { readonly n: number; readonly status: string; readonly id?: string; readonly state?: string };

export type DeliveryRounds = {
  /** URL of the ledger. */
  readonly url: string;
  readonly seed: number;
  readonly rounds: number;
};

export type Judged = {
  /** Deliveries in the queue. */
  readonly kept: number;
  /** Ids of those of which nobody knows whether they were sent. */
  readonly unknown: readonly string[];
};

/** Kills whoever delivers, again and again, then lets the last one finish. */
export async function deliveryRounds({ url, seed, rounds }: DeliveryRounds): Promise<Judged> {
  const random = numbers(seed);
  const channel = await Channel.start();
  const lives: KillChild[] = [];
  const start = (round: number, count: number): KillChild =>
    new KillChild({ script: CHILD }, url, channel.port, round * PER_ROUND, count);
  try {
    let child = start(0, PER_ROUND);
    for (let round = 0; round < rounds; round++) {
      child.proceed();
      // The next one comes up meanwhile, and touches nothing before it is told to.
      const next = start(round + 1, round + 1 < rounds ? PER_ROUND : 64);
      await child.killAfter(random.next().value % MAX_SAID);
      await channel.quiet();
      lives.push(child);
      child = next;
      await judge(url, await channel.taken(), lives, `round ${round} of seed ${seed}`);
    }
    child.proceed();
    lives.push(child);
    expect(await child.finished(), child.lines().slice(-20).join("\n")).toBe(0);
    const rows = await judge(url, await channel.taken(), lives, `the end of seed ${seed}`);
    expect(rows.filter(({ state }) => state !== "sent" && state !== "unknown")).toEqual([]);
    const unknown = rows.filter(({ state }) => state === "unknown");
    expect(unknown.filter(({ route }) => JSON.parse(route).channelId !== "mute")).toEqual([]);
    return { kept: rows.length, unknown: unknown.map(({ id }) => id) };
  } finally {
    await channel.stop();
  }
}

async function judge(
  url: string,
  taken: readonly Taken[],
  lives: readonly KillChild[],
  where: string,
): Promise<readonly QueuedDelivery[]> {
  const rows = await rowsOf(url);
  const byKey = new Map(rows.map((row) => [row.idempotencyKey, row]));
  const parts = new Set(taken.map(({ key }) => key));
  expect(rows.length, where).toBe(byKey.size);
  // Nothing is sent twice, nothing without evidence, and everything as the hooks left it.
  expect(taken.length, where).toBe(parts.size);
  const strays = taken.filter(({ key, text }) => {
    const row = byKey.get(key.slice(0, -":0".length));
    return row === undefined || row.attempts === 0 || JSON.parse(row.payload).text !== text || !/\d\?!$/.test(text);
  });
  expect(strays, where).toEqual([]);
  const unsent = rows.filter(({ state, idempotencyKey }) => state === "sent" && !parts.has(`${idempotencyKey}:0`));
  expect(unsent, where).toEqual([]);
  // Nothing that anybody was told of is lost.
  const said = lives.flatMap((life) => life.all("outcome").map((json): Outcome => JSON.parse(json)));
  const lost = said.filter(
    ({ n, status, id }) => id === undefined || !byKey.has(`k-${n}:0`) || status === "suppressed",
  );
  expect(lost, where).toEqual([]);
  const unacknowledged = said.filter(({ n, status }) => status === "sent" && !parts.has(`k-${n}:0:0`));
  expect(unacknowledged, where).toEqual([]);
  for (const word of ["shaped", "rewritten", "told"]) {
    const all = lives.flatMap((life) => life.all(word).map((rest) => rest.split(" ")[0]));
    expect(all.length, `${word}, ${where}`).toBe(new Set(all).size);
  }
  expect(
    lives.flatMap((life) => life.all("failed")),
    where,
  ).toEqual([]);
  return rows;
}

async function rowsOf(url: string): Promise<readonly QueuedDelivery[]> {
  const store = await openStore(url, { mode: "read" });
  try {
    const queue = queueOf(store);
    const rows: QueuedDelivery[] = [];
    for (let page = await queue?.deliveries({}); page !== undefined && page.length > 0; ) {
      rows.push(...page);
      page = await queue?.deliveries({ after: rows.at(-1)?.id ?? "" });
    }
    return rows;
  } finally {
    await store.close();
  }
}

class Channel {
  readonly port: number;
  readonly #process: ChildProcess;

  private constructor(process: ChildProcess, port: number) {
    this.#process = process;
    this.port = port;
  }

  static async start(): Promise<Channel> {
    const child = spawn(process.execPath, [CHANNEL], { stdio: ["pipe", "pipe", "inherit"] });
    const [said] = await once(child.stdout, "data");
    return new Channel(child, Number(String(said)));
  }

  async taken(): Promise<readonly Taken[]> {
    return (await this.#ask("/taken")).json();
  }

  async quiet(): Promise<void> {
    await this.#ask("/quiet");
  }

  async stop(): Promise<void> {
    const ended = once(this.#process, "close");
    this.#process.stdin?.end();
    await ended;
  }

  #ask(path: string): Promise<Response> {
    return fetch(`http://127.0.0.1:${this.port}${path}`, { headers: { connection: "close" } });
  }
}
