/** Deliveries in custody: real hooks in a ledger in memory, a queue that is a model, a channel that does as it is told, and time at will. */
import { onTestFinished } from "vitest";
import { createMessageHooks, type MessageHooks } from "#src/messages/create.js";
import {
  type DurableDeliveries,
  type DurableOptions,
  openDurableDeliveries,
} from "#src/messages/durable/deliveries.js";
import type { HostReplyPayload } from "#src/messages/facts.js";
import type { ChannelAdapter, SendReceipt, SendRequest } from "#src/messages/outbound/adapter.js";
import type { DeliverOptions } from "#src/messages/outbound/options.js";
import type { DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import { definePlugin, type PluginApi } from "#src/messages/plugin.js";
import type { MessageSentEvent } from "#src/messages/types.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { QueuedDelivery } from "#src/store/queue.js";
import { QueueModel, type QueueProcess } from "../../support/queue-model.js";
import { settled, VirtualClock } from "../../support/virtual-clock.js";

export const CONTEXT = { channelId: "test", accountId: "acct", sessionKey: "s-1", runId: "r-1" };

export class Channel implements ChannelAdapter {
  readonly channelId = "test";
  readonly sends: SendRequest[] = [];
  beforeDeliver: NonNullable<ChannelAdapter["beforeDeliver"]> = [];
  answer: (request: SendRequest, n: number) => SendReceipt | Promise<SendReceipt> = (_, n) => ({ messageId: `m-${n}` });

  send(request: SendRequest): SendReceipt | Promise<SendReceipt> {
    const n = this.sends.push(request);
    return this.answer(request, n);
  }

  get texts(): readonly (string | undefined)[] {
    return this.sends.map(({ part }) => part.text);
  }

  get keys(): readonly string[] {
    return this.sends.map(({ idempotencyKey }) => idempotencyKey);
  }
}

/** One that can tell what it has. */
export class TellingChannel extends Channel {
  readonly asked: string[] = [];
  tell: (key: string) => boolean | Promise<boolean> = () => false;

  wasSent(key: string): boolean | Promise<boolean> {
    this.asked.push(key);
    return this.tell(key);
  }
}

export type Scene<C extends Channel> = {
  readonly model: QueueModel;
  readonly clock: VirtualClock;
  readonly channel: C;
  readonly hooks: MessageHooks;
  readonly told: MessageSentEvent[];
  readonly log: string[];
  readonly settled: DeliveryOutcome[];
  /** A process that has the queue open. */
  open(options?: Partial<DurableOptions>): Promise<Process>;
};

export type Process = {
  readonly queue: QueueProcess;
  readonly deliveries: DurableDeliveries;
  deliver(text: string, more?: Partial<DeliverOptions>): Promise<DeliveryOutcome>;
  deliverPayload(payload: HostReplyPayload, more?: Partial<DeliverOptions>): Promise<DeliveryOutcome>;
};

export async function scene<C extends Channel>(
  channel: C,
  register: (api: PluginApi) => void = () => {},
): Promise<Scene<C>> {
  const clock = new VirtualClock();
  const model = new QueueModel();
  const told: MessageSentEvent[] = [];
  const log: string[] = [];
  const outcomes: DeliveryOutcome[] = [];
  const hooks = await createMessageHooks({
    store: openMemoryStore(),
    plugins: [
      definePlugin({ id: "p", register }),
      definePlugin({
        id: "observer",
        register: (api) => void api.on("message_sent", (event) => void told.push(event)),
      }),
    ],
    clock,
  });
  onTestFinished(() => hooks.close());
  return {
    model,
    clock,
    channel,
    hooks,
    told,
    log,
    settled: outcomes,
    async open(options = {}) {
      const queue = model.open();
      const opening = openDurableDeliveries({
        queue,
        runs: hooks.runs,
        channelOf: () => channel,
        clock,
        random: () => 1 - Number.EPSILON,
        log: ({ message }) => void log.push(message),
        onSettled: (outcome) => void outcomes.push(outcome),
        ...options,
      });
      const deliveries = await opening;
      onTestFinished(async () => {
        queue.die();
        const closing = deliveries.close();
        let closed = false;
        void closing.then(() => {
          closed = true;
        });
        await clock.run(() => closed);
      });
      const deliverPayload: Process["deliverPayload"] = async (payload, more = {}) => {
        const { outcomes: all } = await deliveries.deliver([payload], {
          runs: hooks.runs,
          route: { adapter: channel, to: "+49", context: CONTEXT },
          idempotencyKey: payload.text ?? "k",
          ...more,
        });
        return all[0] as DeliveryOutcome;
      };
      return { queue, deliveries, deliver: (text, more) => deliverPayload({ text }, more), deliverPayload };
    },
  };
}

/** Until everything that is under way waits for something. */
export async function quiet(): Promise<void> {
  for (let round = 0; round < 10; round++) await settled();
}

/** Lets `ms` pass. */
export async function pass(clock: VirtualClock, ms: number): Promise<void> {
  let passed = false;
  clock.timer(ms, () => {
    passed = true;
  });
  await clock.run(() => passed);
  await quiet();
}

/** As somebody left it who is gone. */
export function left(n: number, parts: Partial<QueuedDelivery> = {}): QueuedDelivery {
  return {
    id: `01J${String(n).padStart(23, "0")}`,
    state: "pending",
    lane: '["test","acct","+49",""]',
    idempotencyKey: `left-${n}`,
    payload: JSON.stringify({ text: `left ${n}` }),
    route: JSON.stringify({ channelId: "test", to: "+49", kind: "final", context: CONTEXT }),
    session: "s-1",
    run: "r-1",
    attempts: parts.state === undefined || parts.state === "pending" ? 0 : 1,
    partsSent: 0,
    dueAt: 0,
    createdAt: 0,
    updatedAt: 0,
    receipts: "[]",
    error: null,
    ...parts,
  };
}

export function gate<T>(): { readonly opened: Promise<T>; open(value: T): void; fail(error: unknown): void } {
  let open: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const opened = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { opened, open: (value) => open(value), fail: (error) => fail(error) };
}
