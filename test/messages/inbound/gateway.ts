/** A gateway's inbound side with real hooks on a real ledger; its dispatcher remembers what it admitted. */
import { expect, onTestFinished } from "vitest";
import { createMessageHooks, type MessageHooks, type MessageHooksOptions } from "#src/messages/create.js";
import type { HostReplyPayload, MediaFact, ReplyKind } from "#src/messages/facts.js";
import { type BindingsOptions, ConversationBindings } from "#src/messages/inbound/bindings.js";
import { InboundDedupe } from "#src/messages/inbound/dedupe.js";
import type { InboundMessage } from "#src/messages/inbound/message.js";
import { type Received, type ReceiveOptions, receiveMessage } from "#src/messages/inbound/receive.js";
import { definePlugin, type MessagePlugin, type PluginApi } from "#src/messages/plugin.js";
import type { DispatchReceipt, LaneCounts, ReplyDispatcher } from "#src/messages/reply-dispatcher.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore } from "#src/store/port.js";
import { decodeEvent } from "#src/store/record/decode.js";

export const MESSAGE: InboundMessage = {
  channelId: "telegram",
  accountId: "acct",
  conversationId: "chat-1",
  messageId: "m-1",
  from: "+49",
  senderId: "u-1",
  isGroup: false,
  body: "hello",
  sessionKey: "s-1",
  runId: "r-1",
};

/** An image at its provider. */
export const REMOTE: MediaFact = { path: "/provider/a.png", url: "https://cdn.test/a", contentType: "image/png" };

type Admitted = { readonly kind: ReplyKind; readonly payload: HostReplyPayload };

const NO_REPLIES: LaneCounts = {
  delivered: 0,
  deliveredNotVisible: 0,
  cancelled: 0,
  failedBeforeSend: 0,
  failedAfterSend: 0,
};

export class NotingDispatcher implements ReplyDispatcher {
  readonly admitted: Admitted[] = [];
  /** What it answers. */
  admits = true;

  sendToolResult(payload: HostReplyPayload): boolean {
    return this.#admit("tool", payload);
  }

  sendBlockReply(payload: HostReplyPayload): boolean {
    return this.#admit("block", payload);
  }

  sendFinalReply(payload: HostReplyPayload): boolean {
    return this.#admit("final", payload);
  }

  getQueuedCounts(): { tool: number; block: number; final: number } {
    const counts = { tool: 0, block: 0, final: 0 };
    for (const { kind } of this.admitted) counts[kind]++;
    return counts;
  }

  waitForIdle(): Promise<DispatchReceipt> {
    return Promise.resolve({ tool: NO_REPLIES, block: NO_REPLIES, final: NO_REPLIES, anyVisibleDelivered: false });
  }

  #admit(kind: ReplyKind, payload: HostReplyPayload): boolean {
    if (this.admits) this.admitted.push({ kind, payload });
    return this.admits;
  }
}

export type Gateway = {
  readonly hooks: MessageHooks;
  readonly store: EventStore;
  readonly dispatcher: NotingDispatcher;
  readonly options: ReceiveOptions;
  /** Warnings and errors, with whose they are. */
  readonly log: string[];
  /** `MESSAGE` with other fields. */
  receive(message?: Partial<InboundMessage>, options?: Partial<ReceiveOptions>): Promise<Received>;
  /** Once every run is over: the points of the runs in the ledger, in order. */
  recordedPoints(): Promise<readonly string[]>;
};

export type GatewayOptions = Partial<MessageHooksOptions> & {
  /** Plugins by id. */
  readonly on?: { readonly [id: string]: (api: PluginApi) => void };
  /** Who owns the conversations. */
  readonly owner?: string;
  readonly noticeOf?: NonNullable<BindingsOptions["noticeOf"]>;
};

export async function gateway({ on = {}, owner, noticeOf, ...more }: GatewayOptions = {}): Promise<Gateway> {
  const store = openMemoryStore();
  const log: string[] = [];
  const hooks = await createMessageHooks({
    store,
    plugins: Object.entries(on).map(([id, register]): MessagePlugin => definePlugin({ id, register })),
    log: ({ level, provider, message }) => void log.push(`${level} ${provider}: ${message}`),
    ...more,
  });
  onTestFinished(async () => {
    await hooks.close();
    expect(log.filter((line) => line.includes(MUST_NOT_BE_ASKED))).toEqual([]);
  });
  const dispatcher = new NotingDispatcher();
  const bindings = new ConversationBindings({
    plugins: hooks.plugins,
    ownerOf: () => (owner === undefined ? null : { pluginId: owner }),
    ...(noticeOf === undefined ? {} : { noticeOf }),
  });
  const options: ReceiveOptions = {
    runs: hooks.runs,
    dedupe: new InboundDedupe(),
    bindings,
    dispatcher,
    log: ({ level, message }) => void log.push(`${level} ${message}`),
  };
  return {
    hooks,
    store,
    dispatcher,
    options,
    log,
    receive: (message = {}, own = {}) => receiveMessage({ ...MESSAGE, ...message }, { ...options, ...own }),
    recordedPoints: async () => {
      await hooks.close();
      return recordedPoints(store);
    },
  };
}

const MUST_NOT_BE_ASKED = "must not be asked";

/** A handler, or a part of the host, whose call fails the test of its gateway. */
export function never(): never {
  throw new Error(MUST_NOT_BE_ASKED);
}

async function recordedPoints(store: EventStore): Promise<readonly string[]> {
  const points: string[] = [];
  for await (const page of store.readStreams({ order: "oldest" })) {
    for (const { type, data } of page.flatMap(({ events }) => events)) {
      const decoded = decodeEvent(type, data);
      if ("event" in decoded && decoded.event.type === "started") points.push(decoded.event.point);
    }
  }
  return points;
}

/** Resolves from outside. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
