/**
 * Deliveries in durable custody: what the hooks have left is kept before anything is sent, together with the evidence of the attempt, and
 * whatever a crash leaves is gone on with, without asking the hooks again.
 */

import { setMaxListeners } from "node:events";
import { type Clock, systemClock } from "../../dispatch/clock.js";
import { STORE_TIMEOUT_MS } from "../../dispatch/patient-store.js";
import { said } from "../../dispatch/said.js";
import { SparseLog } from "../../dispatch/sparse-log.js";
import { HookledgerError } from "../../errors.js";
import type { DeliveryQueue, DeliveryState, QueuedDelivery } from "../../store/queue.js";
import { thrownText } from "../../subscribers/fault.js";
import { type LogSink, loggerFor } from "../../subscribers/log.js";
import type { HostReplyPayload } from "../facts.js";
import { hostLog } from "../host-log.js";
import { requireMs } from "../limits.js";
import { tell } from "../listener.js";
import type { ChannelAdapter } from "../outbound/adapter.js";
import { requireStages } from "../outbound/before-deliver.js";
import { type DeliveryFailure, failureOf } from "../outbound/failure.js";
import { tellSent } from "../outbound/message-sent.js";
import { type DeliverOptions, type Delivery, type DeliveryWarning, deliveries } from "../outbound/options.js";
import {
  type BatchOutcome,
  type CustodyRef,
  type DeliveryOutcome,
  type Ended,
  projectBatch,
} from "../outbound/outcome.js";
import { hookRunsOf, type Prepared, prepare } from "../outbound/prepare.js";
import { contentOf } from "../outbound/transcript.js";
import type { HookRuns } from "../runs.js";
import { Custody } from "./custody.js";
import { type ChannelAddress, entryOf, laneOf, payloadOf, receiptsOf, routeOf } from "./entry.js";
import { Lanes, type Place } from "./lanes.js";
import { orderedIds } from "./ordered-ids.js";
import { type Pursued, Pursuit } from "./pursuit.js";
import { type RetryPolicy, retryPolicy } from "./retry.js";
import { elapsedOrCut, settledOrCut } from "./waiting.js";

export type DurableOptions = {
  readonly queue: DeliveryQueue;
  /** Who is told by `message_sent` of what is gone on with. */
  readonly runs: HookRuns;
  /** The channel of a delivery that is gone on with; without it, the delivery waits. */
  readonly channelOf: (address: ChannelAddress) => ChannelAdapter | null | undefined;
  readonly retry?: Partial<RetryPolicy>;
  /** ms that an answer of a channel is waited for, 60 000 by default; one that comes later still counts. */
  readonly sendTimeoutMs?: number;
  /** ms that an answer of the queue is waited for, 30 000 by default. */
  readonly storeTimeoutMs?: number;
  /** ms between looks at what others left in the queue, 5 000 by default: an operator's `retry`, another gateway that died. */
  readonly pollMs?: number;
  /** ms that `close` waits for attempts under way, 10 000 by default. */
  readonly drainMs?: number;
  readonly log?: LogSink;
  /** Of what is logged, and of errors in the queue. The payload itself is kept as it is: it is what is sent. */
  readonly redact?: (text: string) => string;
  readonly clock?: Clock;
  /** In [0, 1). */
  readonly random?: () => number;
  readonly onWarning?: (warning: DeliveryWarning) => void;
  /** Told of each delivery that this process brings to an end, or has to leave unknown. */
  readonly onSettled?: (outcome: DeliveryOutcome) => void;
};

/** ms */
const SEND_TIMEOUT_MS = 60_000;
const POLL_MS = 5000;
const DRAIN_MS = 10_000;

/** By queue: what somebody in this process works on. */
const HELD = new WeakMap<DeliveryQueue, Set<string>>();

/** Goes on with what earlier processes left. Throws RangeErrors for options, and as the store. */
export async function openDurableDeliveries(options: DurableOptions): Promise<DurableDeliveries> {
  const { sendTimeoutMs, storeTimeoutMs, pollMs, drainMs } = options;
  requireMs({ sendTimeoutMs, storeTimeoutMs, pollMs, drainMs });
  const opened = new DurableDeliveries(options);
  await opened.begin();
  return opened;
}

class DurableDeliveries {
  readonly #options: DurableOptions;
  readonly #clock: Clock;
  readonly #custody: Custody;
  readonly #lanes = new Lanes();
  readonly #held: Set<string>;
  /** Unknown, of channels that can tell and did not. */
  readonly #doubtful = new Set<string>();
  readonly #pursuits = new Map<string, Pursuit>();
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #retry: RetryPolicy;
  readonly #newId: () => string;
  readonly #complaints: SparseLog;
  readonly #warn: (warning: DeliveryWarning) => void;
  #closed: Promise<void> | null = null;

  constructor(options: DurableOptions) {
    const { queue, clock = systemClock, log = () => {}, redact = (text) => text, onWarning } = options;
    this.#options = options;
    this.#clock = clock;
    this.#retry = retryPolicy(options.retry);
    this.#newId = orderedIds(() => clock.wall());
    const logger = loggerFor("deliveries", hostLog(log, { text: redact }));
    this.#complaints = new SparseLog(clock, (text) => logger.error(text));
    this.#custody = new Custody({
      queue,
      clock,
      redact,
      timeoutMs: options.storeTimeoutMs ?? STORE_TIMEOUT_MS,
      complain: (text) => this.#complaints.say(text),
    });
    // Every delivery that waits listens to it.
    setMaxListeners(0, this.#closing.signal);
    this.#held = HELD.get(queue) ?? new Set();
    HELD.set(queue, this.#held);
    this.#warn = (warning) => tell(onWarning, warning);
  }

  async begin(): Promise<void> {
    await this.#goOnWith(["pending", "attempting", "unknown"]);
    this.#track(this.#poll());
  }

  /** As `deliver` of the direct way; rejects with a RangeError as it does, else never. */
  async deliver(payloads: readonly HostReplyPayload[], options: DeliverOptions): Promise<BatchOutcome> {
    requireStages(options.route.adapter.beforeDeliver ?? []);
    const delivery = deliveries({ ...options, clock: options.clock ?? this.#clock });
    const outcomes: DeliveryOutcome[] = [];
    for (const [n, payload] of payloads.entries()) outcomes.push(await this.deliverOne(payload, delivery(n)));
    return projectBatch(outcomes);
  }

  /**
   * Resolves when the delivery has ended, and also where it is left for a while: `custody` says how it stands in the queue. What fails
   * without `custody` is in no queue, and was not sent. For a dispatcher's `deliverOne`. Never rejects.
   */
  readonly deliverOne = (payload: HostReplyPayload, given: Delivery): Promise<DeliveryOutcome> => {
    const delivery = {
      ...given,
      usage: undefined,
      deferred: true,
      idempotencyKey: given.idempotencyKey.toWellFormed(),
    };
    const place = this.#lanes.enter(laneOf(delivery.route));
    return this.#track(
      this.#accept(payload, delivery, place).catch(async (fault: unknown) => {
        place.leave();
        return this.#refuse(failureOf("before-send", fault), contentOf(payload), delivery, { asked: [] });
      }),
    );
  };

  /** Looks at once at what others left in the queue. Rejects as the store. */
  refresh(): Promise<void> {
    return this.#goOnWith(["pending", "attempting"]);
  }

  /** Begins no attempt any more, and waits for those under way, for `drainMs` at most; what is left stays in the queue. Idempotent. */
  close(): Promise<void> {
    this.#closed ??= this.#drain();
    return this.#closed;
  }

  async #drain(): Promise<void> {
    this.#closing.abort();
    const late = new AbortController();
    const idle = this.#idle().then(() => late.abort());
    await elapsedOrCut(this.#options.drainMs ?? DRAIN_MS, this.#clock, [late.signal]);
    if (late.signal.aborted) await idle;
    else this.#complaints.say(`closed while ${this.#underWay.size} deliveries were under way`);
    this.#complaints.flush();
  }

  async #idle(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
  }

  async #accept(payload: HostReplyPayload, delivery: Delivery, place: Place): Promise<DeliveryOutcome> {
    if (this.#closing.signal.aborted) {
      place.leave();
      const closed = new HookledgerError("HL_KERNEL_CLOSED", "deliveries are closed");
      return this.#refuse(failureOf("before-send", closed), contentOf(payload), delivery, { asked: [] });
    }
    const id = this.#newId();
    const prepared = await prepare(payload, delivery);
    switch (prepared.end) {
      case "suppressed":
        place.leave();
        return { ...prepared.outcome, payload: null, hookRuns: await hookRunsOf(prepared) };
      case "failed":
        place.leave();
        return this.#refuse(prepared.failure, prepared.content, delivery, prepared);
      case "ready":
        return this.#keep(id, prepared, delivery, place);
    }
  }

  async #keep(
    id: string,
    prepared: Extract<Prepared, { end: "ready" }>,
    delivery: Delivery,
    place: Place,
  ): Promise<DeliveryOutcome> {
    const state = place.first ? "attempting" : "pending";
    const attempts = state === "attempting" ? 1 : 0;
    this.#held.add(id);
    let row: QueuedDelivery;
    try {
      row = { ...entryOf(id, prepared.payload, delivery, Math.floor(this.#clock.wall())), state, attempts };
      await this.#custody.put(row);
    } catch (error) {
      this.#held.delete(id);
      place.leave();
      this.#complaints.say(`a delivery is not sent, its custody cannot be written: ${said(error)}`);
      return this.#refuse(failureOf("before-send", error), contentOf(prepared.payload), delivery, prepared);
    }
    const hookRuns = await hookRunsOf(prepared);
    const kept = payloadOf(row) ?? prepared.payload;
    const pursued: Pursued = {
      id,
      lane: row.lane,
      payload: kept,
      delivery,
      attempts,
      receipts: [],
      dueAt: row.dueAt,
    };
    return new Promise((resolve) => {
      this.#track(
        this.#pursue(pursued, place, state, (outcome, left) =>
          resolve({ ...outcome, custody: { id, state: left }, payload: kept, hookRuns }),
        ),
      );
    });
  }

  /** Nothing of it is in the queue, and nothing was sent. */
  async #refuse(
    failure: DeliveryFailure,
    content: string,
    delivery: Delivery,
    prepared: Pick<Prepared, "asked">,
  ): Promise<DeliveryOutcome> {
    const outcome = { status: "failed", failure } as const;
    tellSent(outcome, content, delivery);
    return { ...outcome, payload: null, hookRuns: await hookRunsOf(prepared) };
  }

  async #pursue(
    pursued: Pursued,
    place: Place,
    state: "pending" | "attempting" | "unknown",
    told: (outcome: Ended, state: CustodyRef["state"]) => void,
  ): Promise<void> {
    const { id, delivery, payload } = pursued;
    const { sendTimeoutMs = SEND_TIMEOUT_MS, random = Math.random } = this.#options;
    const pursuit = new Pursuit(pursued, place, {
      custody: this.#custody,
      lanes: this.#lanes,
      clock: this.#clock,
      retry: this.#retry,
      random,
      sendTimeoutMs,
      closing: this.#closing.signal,
      complain: (text) => this.#complaints.say(text),
      report: (outcome, left) => {
        told(outcome, left);
        if (left === "unknown" && delivery.route.adapter.wasSent !== undefined) this.#doubtful.add(id);
        if (left !== "pending") this.#settled({ ...outcome, custody: { id, state: left }, payload, hookRuns: [] });
      },
    });
    this.#pursuits.set(id, pursuit);
    await pursuit.run(state);
    this.#pursuits.delete(id);
    this.#held.delete(id);
  }

  #settled(outcome: DeliveryOutcome): void {
    tell(this.#options.onSettled, outcome, (thrown) =>
      this.#warn({ kind: "listener-failed", message: thrownText(thrown) }),
    );
  }

  async #poll(): Promise<void> {
    const { pollMs = POLL_MS } = this.#options;
    const { signal } = this.#closing;
    for (;;) {
      await elapsedOrCut(pollMs, this.#clock, [signal]);
      if (signal.aborted) return;
      try {
        await this.refresh();
      } catch (error) {
        this.#complaints.say(`the queue of deliveries cannot be read: ${said(error)}`);
      }
    }
  }

  /** Takes up, in their order, what nobody here works on. What another process works on keeps its lane from being touched. */
  async #goOnWith(states: readonly DeliveryState[]): Promise<void> {
    const elsewhere = new Set<string>();
    const waiting = new Map(Array.from(this.#pursuits, ([id, { waitsUntil }]) => [id, waitsUntil] as const));
    const inDoubt = new Set([...this.#pursuits].flatMap(([id, pursuit]) => (pursuit.inDoubt ? [id] : [])));
    let unknown = 0;
    for (const id of [...this.#doubtful]) {
      const row = this.#held.has(id) ? null : await this.#custody.read(id);
      this.#doubtful.delete(id);
      if (row?.state === "unknown") this.#resume(row);
    }
    for await (const row of this.#custody.all(states)) {
      if (this.#held.has(row.id)) {
        const until = waiting.get(row.id) ?? null;
        if (until !== null && row.state === "pending" && row.dueAt >= until) waiting.delete(row.id);
        if (row.state === "pending" && inDoubt.has(row.id)) this.#pursuits.get(row.id)?.sendAgain();
        continue;
      }
      if (row.state === "attempting") elsewhere.add(row.lane);
      if (row.state === "unknown") unknown++;
      if (row.state === "unknown" || (row.state === "pending" && !elsewhere.has(row.lane))) this.#resume(row);
    }
    // An operator has said something else of them.
    for (const id of waiting.keys()) this.#pursuits.get(id)?.nudge();
    if (unknown > 0) this.#complaints.say(`of ${unknown} deliveries nobody has recorded whether they were sent`);
  }

  #resume({ id, lane }: Pick<QueuedDelivery, "id" | "lane">): void {
    if (this.#closing.signal.aborted) return;
    this.#held.add(id);
    const place = this.#lanes.enter(lane);
    this.#track(
      this.#goOn(id, place)
        .catch((error: unknown) => this.#complaints.say(`delivery ${id} is left as it is: ${said(error)}`))
        .finally(() => {
          place.leave();
          this.#held.delete(id);
        }),
    );
  }

  /** Read when it is its turn: what waits is not kept in memory, and may be another's by then. */
  async #goOn(id: string, place: Place): Promise<void> {
    await settledOrCut(place.reached, [this.#closing.signal]);
    if (this.#closing.signal.aborted) return;
    const row = await this.#custody.read(id);
    if (row === null || (row.state !== "pending" && row.state !== "unknown")) return;
    const payload = payloadOf(row);
    const stored = routeOf(row);
    if (payload === null || stored === null) {
      await this.#custody.settle(id, [row.state], {
        state: "failed",
        receipts: receiptsOf(row),
        error: "what the queue has of it cannot be read",
      });
      return;
    }
    const { channelId, kind, ...route } = stored;
    const { accountId } = route.context;
    const adapter = this.#options.channelOf({ channelId, ...(accountId ? { accountId } : {}) });
    if (adapter === null || adapter === undefined) {
      this.#complaints.say(`delivery ${id} waits for its channel "${channelId}"`);
      return;
    }
    requireStages(adapter.beforeDeliver ?? []);
    const delivery: Delivery = {
      runs: this.#options.runs,
      route: { ...route, adapter },
      kind,
      signal: undefined,
      usage: undefined,
      deferred: true,
      idempotencyKey: row.idempotencyKey,
      clock: this.#clock,
      warn: this.#warn,
    };
    const { lane, attempts, dueAt } = row;
    const pursued = { id, lane, payload, delivery, attempts, receipts: receiptsOf(row), dueAt };
    await this.#pursue(pursued, place, row.state, () => {});
  }

  #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    const done = (): void => {
      this.#underWay.delete(work);
    };
    work.then(done, done);
    return work;
  }
}

export type { DurableDeliveries };
