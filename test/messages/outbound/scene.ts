/** A gateway's outbound side with real hooks on a real ledger, and a channel that remembers what it was given. */
import { onTestFinished } from "vitest";
import { createMessageHooks, type MessageHooks, type MessageHooksOptions } from "#src/messages/create.js";
import type { HostReplyPayload, MessageContext } from "#src/messages/facts.js";
import type {
  BeforeDeliverStage,
  ChannelAdapter,
  ChannelMessage,
  SendReceipt,
  SendRequest,
} from "#src/messages/outbound/adapter.js";
import { deliver } from "#src/messages/outbound/deliver.js";
import type { DeliverOptions, DeliveryWarning } from "#src/messages/outbound/options.js";
import type { BatchOutcome, DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import { definePlugin, type PluginApi } from "#src/messages/plugin.js";
import type { HookRuns } from "#src/messages/runs.js";
import type { MessageSentEvent } from "#src/messages/types.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";

export const CONTEXT: MessageContext = {
  channelId: "test",
  accountId: "acct",
  sessionKey: "s-1",
  runId: "r-1",
  trace: "00-trace",
  traceId: "t-1",
  spanId: "sp-1",
  parentSpanId: "sp-0",
};

type Answer = (request: SendRequest, n: number) => SendReceipt | Promise<SendReceipt>;

export class TestChannel implements ChannelAdapter {
  readonly channelId = "test";
  readonly sends: SendRequest[] = [];
  beforeDeliver: readonly BeforeDeliverStage[] = [];
  answer: Answer = (_, n) => ({ messageId: `m-${n}` });

  send(request: SendRequest): SendReceipt | Promise<SendReceipt> {
    const n = this.sends.push(request);
    return this.answer(request, n);
  }

  get texts(): readonly (string | undefined)[] {
    return this.sends.map(({ part }) => part.text);
  }
}

export type Scene = {
  readonly hooks: MessageHooks;
  readonly store: EventStore;
  readonly channel: TestChannel;
  readonly warnings: DeliveryWarning[];
  /** What is delivered goes through here. */
  readonly options: DeliverOptions;
  deliver(payloads: readonly HostReplyPayload[], more?: Partial<DeliverOptions>): Promise<BatchOutcome>;
  /** One payload's outcome. */
  deliverOne(payload: HostReplyPayload, more?: Partial<DeliverOptions>): Promise<DeliveryOutcome>;
  /** Once everybody has been told: what `message_sent` said, in order. */
  told(): Promise<readonly MessageSentEvent[]>;
};

export type SceneOptions = Pick<MessageHooksOptions, "hooks" | "clock"> & {
  readonly context?: MessageContext;
  readonly store?: EventStore;
};

/** Hooks of one plugin, "p", beside an observer of `message_sent`. */
export async function scene(register: (api: PluginApi) => void = () => {}, more: SceneOptions = {}): Promise<Scene> {
  const { context = CONTEXT, store = openMemoryStore(), ...hookOptions } = more;
  const told: MessageSentEvent[] = [];
  const hooks = await createMessageHooks({
    store,
    plugins: [
      definePlugin({ id: "p", register }),
      definePlugin({
        id: "observer",
        register: (api) => void api.on("message_sent", (event) => void told.push(event)),
      }),
    ],
    ...hookOptions,
  });
  onTestFinished(() => hooks.close());
  const channel = new TestChannel();
  const warnings: DeliveryWarning[] = [];
  const options: DeliverOptions = {
    runs: hooks.runs,
    route: { adapter: channel, to: "+49", threadId: "th-1", context },
    idempotencyKey: "k",
    onWarning: (warning) => void warnings.push(warning),
    ...(more.clock === undefined ? {} : { clock: more.clock }),
  };
  return {
    hooks,
    store,
    channel,
    warnings,
    options,
    deliver: (payloads, own = {}) => deliver(payloads, { ...options, ...own }),
    deliverOne: async (payload, own = {}) => {
      const { outcomes } = await deliver([payload], { ...options, ...own });
      return outcomes[0] as DeliveryOutcome;
    },
    told: async () => {
      await hooks.close();
      return told;
    },
  };
}

export function stage(run: BeforeDeliverStage["run"], timeoutMs?: number): BeforeDeliverStage {
  return timeoutMs === undefined ? { run } : { run, timeoutMs };
}

/** A message whose text says that it passed. */
export function marked(message: ChannelMessage, mark: string): ChannelMessage {
  return { ...message, text: `${message.text ?? ""}${mark}` };
}

/** Resolves from outside. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Other answers to some of the questions. */
export function withRuns(runs: HookRuns, others: Partial<HookRuns>): HookRuns {
  return {
    claim: (...given) => runs.claim(...given),
    rewrite: (...given) => runs.rewrite(...given),
    waterfall: (...given) => runs.waterfall(...given),
    notify: (...given) => runs.notify(...given),
    hasHooks: (...given) => runs.hasHooks(...given),
    ...others,
  };
}
