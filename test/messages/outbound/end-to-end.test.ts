import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createMessageHooks } from "#src/messages/create.js";
import type { ChannelAdapter } from "#src/messages/outbound/adapter.js";
import { createReplyDispatcher } from "#src/messages/outbound/dispatcher.js";
import type { DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import { definePlugin } from "#src/messages/plugin.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openStore } from "#src/store/open.js";

/** A chat service: takes each message once by its key, and cuts the connection instead of answering where it is told to. */
class ChatService {
  readonly taken = new Map<string, string>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer(async (request, response) => {
      const key = String(request.headers["idempotency-key"]);
      if (request.method === "HEAD") {
        response.writeHead(this.taken.has(key) ? 200 : 404).end();
        return;
      }
      let body = "";
      for await (const piece of request.setEncoding("utf8")) body += piece;
      this.taken.set(key, body);
      if (body.includes("cut")) request.socket.destroy();
      else response.end(JSON.stringify({ id: `id-${this.taken.size}` }));
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    onTestFinished(() => void this.#server.close());
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/`;
  }
}

function adapterFor(url: string): ChannelAdapter {
  return {
    channelId: "http",
    async send({ part, idempotencyKey, signal = null }) {
      const headers = { "idempotency-key": idempotencyKey };
      const answer = await fetch(url, { method: "POST", body: JSON.stringify(part), headers, signal });
      const { id } = (await answer.json()) as { id: string };
      return { messageId: id };
    },
    async wasSent(idempotencyKey) {
      return (await fetch(url, { method: "HEAD", headers: { "idempotency-key": idempotencyKey } })).ok;
    },
  };
}

describe("replies over a socket, with their hooks in a ledger on disk", () => {
  it("should arrive as the hooks left them, in order, and leave a ledger that verifies", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hookledger-outbound-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const store = await openStore(`sqlite:${join(folder, "ledger.db")}`, { mode: "write" });
    onTestFinished(() => store.close());
    const told: [string, boolean, string | undefined][] = [];
    const policy = definePlugin({
      id: "policy",
      register(api) {
        api.on("message_sending", ({ content }) => ({
          cancel: content.includes("secret"),
          content: content.toUpperCase(),
        }));
        api.on("message_sent", ({ content, success, messageId }) => void told.push([content, success, messageId]));
      },
    });
    const hooks = await createMessageHooks({ store, plugins: [policy] });
    const service = new ChatService();
    const adapter = adapterFor(await service.start());
    const outcomes: DeliveryOutcome[] = [];
    const dispatcher = createReplyDispatcher({
      runs: hooks.runs,
      route: { adapter, to: "room", context: { channelId: "http", sessionKey: "s", runId: "r" } },
      idempotencyKey: "turn-7",
      onOutcome: (_, outcome) => void outcomes.push(outcome),
    });
    dispatcher.sendToolResult({ text: "looked it up" });
    dispatcher.sendBlockReply({ text: "a secret" });
    dispatcher.sendBlockReply({ text: "cut here", presentation: { cut: true } });
    dispatcher.sendFinalReply({ text: "done" });
    expect(await dispatcher.waitForIdle()).toMatchObject({
      tool: { delivered: 1 },
      block: { cancelled: 1, failedAfterSend: 1 },
      final: { delivered: 1 },
    });
    await hooks.close();

    expect(outcomes.map(({ status }) => status)).toEqual(["sent", "suppressed", "failed", "sent"]);
    expect([...service.taken]).toEqual([
      ["turn-7:0:0", '{"text":"LOOKED IT UP"}'],
      ["turn-7:2:0", '{"text":"CUT HERE","presentation":{"cut":true}}'],
      ["turn-7:3:0", '{"text":"DONE"}'],
    ]);
    expect(told).toEqual([
      ["LOOKED IT UP", true, "id-1"],
      ["CUT HERE", false, undefined],
      ["DONE", true, "id-3"],
    ]);
    // The lost acknowledgement: nobody knows but the channel, which can be asked.
    expect(await adapter.wasSent?.("turn-7:2:0")).toBe(true);
    expect(await adapter.wasSent?.("turn-7:1:0")).toBe(false);
    // Four of message_sending, three of message_sent.
    for await (const part of verifyAll(store, "s", 1)) expect(part).toEqual({ checked: 7, open: 0, diverged: [] });
  });
});
