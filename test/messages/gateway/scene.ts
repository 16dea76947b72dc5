/** A gateway with real hooks on a real ledger, and channels that remember what they were given. */
import { onTestFinished } from "vitest";
import { createGateway, type Gateway } from "#src/messages/gateway/create.js";
import type { GatewayOptions } from "#src/messages/gateway/options.js";
import type { GatewayOutcome, TurnCompletion } from "#src/messages/gateway/outcome.js";
import type { InboundMessage } from "#src/messages/inbound/message.js";
import type { ChannelAdapter, SendReceipt, SendRequest } from "#src/messages/outbound/adapter.js";
import { definePlugin, type MessagePlugin, type PluginApi } from "#src/messages/plugin.js";

export const MESSAGE: InboundMessage = {
  channelId: "chat",
  conversationId: "c-1",
  messageId: "m-1",
  from: "ada",
  senderId: "ada",
  isGroup: false,
  body: "hello",
};

export class TestChannel implements ChannelAdapter {
  readonly channelId: string;
  readonly sends: SendRequest[] = [];
  answer: (request: SendRequest) => SendReceipt | Promise<SendReceipt> = () => ({});

  constructor(channelId = "chat") {
    this.channelId = channelId;
  }

  send(request: SendRequest): SendReceipt | Promise<SendReceipt> {
    this.sends.push(request);
    return this.answer(request);
  }

  get texts(): readonly (string | undefined)[] {
    return this.sends.map(({ part }) => part.text);
  }
}

export type Scene = {
  readonly gateway: Gateway;
  readonly channel: TestChannel;
  readonly completions: TurnCompletion[];
  readonly log: string[];
  /** `MESSAGE` with other fields. */
  receive(message?: Partial<InboundMessage>, signal?: AbortSignal): Promise<GatewayOutcome>;
};

export type SceneOptions = Partial<GatewayOptions> & {
  /** Plugins by id. */
  readonly on?: { readonly [id: string]: (api: PluginApi) => void };
};

/** Its agent repeats what it is told. */
export async function scene({ on = {}, ...more }: SceneOptions = {}): Promise<Scene> {
  const channel = new TestChannel();
  const completions: TurnCompletion[] = [];
  const log: string[] = [];
  const gateway = await createGateway({
    store: "memory:",
    plugins: Object.entries(on).map(([id, register]) => plugin(id, register)),
    channels: [channel],
    agent: ({ message }) => ({ text: `You said: ${message.body}` }),
    onCompletion: (completion) => void completions.push(completion),
    log: ({ level, provider, message }) => void log.push(`${level} ${provider}: ${message}`),
    closeTimeoutMs: 2_000,
    ...more,
  });
  onTestFinished(() => gateway.close());
  return {
    gateway,
    channel,
    completions,
    log,
    receive: (message = {}, signal) =>
      gateway.receive({ ...MESSAGE, ...message }, signal === undefined ? {} : { signal }),
  };
}

export function plugin(id: string, register: (api: PluginApi) => void): MessagePlugin {
  return definePlugin({ id, register });
}

/** Resolves from outside. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Never answers. */
export function hang(): Promise<never> {
  return new Promise(() => {});
}
