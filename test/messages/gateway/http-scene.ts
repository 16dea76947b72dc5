/** The example's webhook and channel around a gateway, on real sockets. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { httpChannel } from "../../../examples/gateway/http-channel.mjs";
import { startWebhook } from "../../../examples/gateway/webhook.mjs";
import { type Scene, type SceneOptions, scene } from "./scene.js";

type Shown = { readonly key: string; readonly text: string };

/** A chat service that does as it is told. */
export class ChannelServer {
  /** What it has taken, each key once, in order. */
  readonly shown: Shown[] = [];
  /** Requests to send, repetitions included. */
  requests = 0;
  /** Of those, for a key that it had acknowledged before. */
  repeated = 0;
  /** In its stead: true where the request is seen to. */
  instead: (response: ServerResponse, text: string) => boolean | Promise<boolean> = () => false;
  /** Takes the message, and answers nothing. */
  takeAndHangUp = false;
  /** Whoever asks what was sent hears nothing of use. */
  cannotTell = false;
  url = "";
  readonly #server = createServer((request, response) => void this.#answer(request, response));

  async listen(port = 0): Promise<void> {
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/messages`;
  }

  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  get texts(): readonly string[] {
    return this.shown.map(({ text }) => text);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") {
      const key = decodeURIComponent(request.url?.replace("/messages/", "") ?? "");
      const status = this.shown.some((message) => message.key === key) ? 200 : 404;
      response.writeHead(this.cannotTell ? 500 : status).end();
      return;
    }
    this.requests++;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { text } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    if (await this.instead(response, text)) return;
    const key = String(request.headers["idempotency-key"]);
    if (this.shown.some((message) => message.key === key)) this.repeated++;
    else this.shown.push({ key, text });
    if (this.takeAndHangUp) {
      response.destroy();
      return;
    }
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ messageId: key }));
  }
}

export type Answer = {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: {
    readonly end?: string;
    readonly error?: string;
    readonly hook?: string;
    readonly replies?: readonly {
      readonly status: string;
      readonly reason?: string;
      readonly custody?: { readonly state: string };
    }[];
  };
};

export type HttpScene = Scene & {
  readonly server: ChannelServer;
  readonly webhook: string;
  /** What the webhook could not answer. */
  readonly faults: unknown[];
  /** A message of ada's with other fields. */
  post(message?: { readonly [field: string]: unknown }): Promise<Answer>;
  /** Any body at all. */
  send(init: RequestInit, path?: string): Promise<Answer>;
};

export type HttpSceneOptions = SceneOptions & {
  readonly server?: ChannelServer;
  readonly maxBytes?: number;
  readonly bodyTimeoutMs?: number;
  /** ms, of one request to the channel */
  readonly sendTimeoutMs?: number;
};

export async function httpScene(options: HttpSceneOptions = {}) {
  const { server = new ChannelServer(), maxBytes, bodyTimeoutMs, sendTimeoutMs, ...more } = options;
  await server.listen();
  const timeout = sendTimeoutMs === undefined ? {} : { timeoutMs: sendTimeoutMs };
  const made = await scene({ channels: [httpChannel({ url: server.url, ...timeout })], ...more });
  const faults: unknown[] = [];
  const { url, close } = await startWebhook({
    receive: (message) => made.gateway.receive(message),
    onFault: (thrown) => void faults.push(thrown),
    ...(maxBytes === undefined ? {} : { maxBytes }),
    ...(bodyTimeoutMs === undefined ? {} : { bodyTimeoutMs }),
  });
  onTestFinished(async () => {
    await made.gateway.close();
    await server.close();
    await close();
  });
  const send: HttpScene["send"] = async (init, path = "/messages") => {
    const response = await fetch(new URL(path, url), { method: "POST", ...init });
    const body = (await response.json()) as Answer["body"];
    return { status: response.status, retryAfter: response.headers.get("retry-after"), body };
  };
  const post: HttpScene["post"] = (message = {}) =>
    send({
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "m-1", from: "ada", conversation: "c-1", text: "hello", ...message }),
    });
  return { ...made, server, webhook: url, faults, post, send } satisfies HttpScene;
}
