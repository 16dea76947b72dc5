/** Over real HTTP and a SQLite ledger: what a channel refuses, loses or leaves in doubt. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HookledgerError } from "#src/errors.js";
import { NotSentError } from "#src/messages/durable/not-sent.js";
import { createGateway } from "#src/messages/gateway/create.js";
import type { DeliveryOutcome } from "#src/messages/outbound/outcome.js";
import type { PluginApi } from "#src/messages/plugin.js";
import { openStore } from "#src/store/open.js";
import { queueOf } from "#src/store/queue-of.js";
import { ChannelServer, httpScene } from "./http-scene.js";
import { hang, MESSAGE } from "./scene.js";

function ledger(): string {
  const folder = mkdtempSync(join(tmpdir(), "hookledger-gateway-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return `sqlite:${join(folder, "ledger.db")}`;
}

async function states(store: string): Promise<readonly string[]> {
  const opened = await openStore(store, { mode: "read" });
  const found = (await queueOf(opened)?.deliveries({})) ?? [];
  await opened.close();
  return found.map(({ state }) => state);
}

const RETRY = { retry: { baseMs: 10, capMs: 20, maxAttempts: 1_000 }, pollMs: 20 };

/** Counts how often the rewriting hook is asked, and what the observer is told. */
function witness() {
  const seen = { asked: 0, told: [] as boolean[] };
  const on = {
    witness(api: PluginApi) {
      api.on("message_sending", ({ content }) => {
        seen.asked++;
        return { content: `${content}!` };
      });
      api.on("message_sent", ({ success }) => void seen.told.push(success));
    },
  };
  return { seen, on };
}

describe("a reply in durable custody", () => {
  it("should be sent once, of a message that comes any number of times, with the ledger and queue in one file", async () => {
    const store = ledger();
    const { seen, on } = witness();
    const { post, server, gateway } = await httpScene({ store, durable: RETRY, on });
    const answers = await Promise.all(Array.from({ length: 10 }, () => post()));
    expect(answers.filter(({ body }) => body.end === "answered")).toMatchObject([
      { body: { replies: [{ status: "sent", custody: { state: "sent" } }] } },
    ]);
    await gateway.close();
    expect([server.texts, seen, await states(store)]).toEqual([
      ["You said: hello!"],
      { asked: 1, told: [true] },
      ["sent"],
    ]);
  });

  it("should leave the message retryable where it cannot be kept, and answer it once there is room", async () => {
    const opened = await openStore(ledger(), { mode: "write" });
    const queue = queueOf(opened)!;
    const put = queue.put.bind(queue);
    queue.put = () => Promise.reject(new HookledgerError("HL_STORE_FULL", "there is no room left"));
    const { post, server, gateway } = await httpScene({ store: opened, durable: RETRY });
    expect(await post()).toMatchObject({ status: 503, body: { end: "failed" } });
    expect(server.texts).toEqual([]);
    queue.put = put;
    expect(await post()).toMatchObject({ status: 200, body: { end: "answered" } });
    expect(server.texts).toEqual(["You said: hello"]);
    await gateway.close();
    await opened.close();
  });

  it("should wait where the channel refuses it for now, and be sent without asking the hooks again", async () => {
    const { seen, on } = witness();
    const { post, server, gateway } = await httpScene({ store: ledger(), durable: RETRY, on });
    server.instead = (response) => {
      response.writeHead(503).end();
      return true;
    };
    expect(await post()).toMatchObject({
      status: 200,
      body: { end: "answered", replies: [{ status: "failed", custody: { state: "pending" } }] },
    });
    await expect.poll(() => server.requests).toBeGreaterThan(3);
    server.instead = () => false;
    await expect.poll(() => server.texts).toEqual(["You said: hello!"]);
    await gateway.close();
    expect(seen).toEqual({ asked: 1, told: [true] });
  });

  it("should be sent by the next gateway on the ledger, where the one before it had to leave it", async () => {
    const store = ledger();
    const { seen, on } = witness();
    const first = await httpScene({ store, durable: { retry: { baseMs: 200 } }, on });
    first.server.instead = (response) => {
      response.writeHead(503).end();
      return true;
    };
    await first.post();
    await first.gateway.close();
    expect(await states(store)).toEqual(["pending"]);
    const settled: DeliveryOutcome[] = [];
    const next = await httpScene({
      store,
      on,
      durable: { ...RETRY, onSettled: (outcome) => void settled.push(outcome) },
    });
    await expect.poll(() => next.server.texts).toEqual(["You said: hello!"]);
    await next.gateway.close();
    expect([seen.asked, settled.length, await states(store)]).toEqual([1, 1, ["sent"]]);
  });

  it("should not be sent again where the channel took it and hung up, and says so when it is asked", async () => {
    const store = ledger();
    const { post, server, gateway } = await httpScene({ store, durable: RETRY });
    server.takeAndHangUp = true;
    await post();
    await expect.poll(() => states(store)).toEqual(["sent"]);
    await gateway.close();
    expect([server.requests, server.texts]).toEqual([1, ["You said: hello"]]);
  });

  it("should stay in doubt where nobody can tell, seen by the operator, and never be sent again by itself", async () => {
    const store = ledger();
    const server = new ChannelServer();
    server.cannotTell = true;
    const { post, gateway } = await httpScene({ store, durable: RETRY, server });
    server.takeAndHangUp = true;
    expect((await post()).body.replies).toMatchObject([{ status: "failed", custody: { state: "unknown" } }]);
    server.takeAndHangUp = false;
    expect((await post({ id: "m-2", from: "bob", conversation: "c-2" })).body.replies).toMatchObject([
      { status: "sent" },
    ]);
    await gateway.close();
    expect([server.requests, await states(store)]).toEqual([2, ["unknown", "sent"]]);
  });

  it("should not be where the host does not want it", async () => {
    const store = ledger();
    const { post, gateway } = await httpScene({ store, durable: false });
    expect((await post()).body.replies).toMatchObject([{ status: "sent" }]);
    await gateway.close();
    expect(await states(store)).toEqual([]);
  });
});

describe("a reply that is kept while its turn goes on", () => {
  it("should stay kept for the next gateway where this one closes, and aborts the turn", async () => {
    const store = ledger();
    const refuse = (): never => {
      throw new NotSentError("not now", { retryAfterMs: 60_000 });
    };
    const first = await createGateway({
      store,
      channels: [{ channelId: "chat", send: refuse }],
      closeTimeoutMs: 100,
      agent: ({ dispatcher }) => {
        dispatcher.sendBlockReply({ text: "kept" });
        return hang();
      },
    });
    const turn = first.receive(MESSAGE);
    await expect.poll(() => states(store)).toEqual(["pending"]);
    await first.close();
    expect(await turn).toMatchObject({ end: "aborted", retryable: false });
    expect(await states(store)).toEqual(["pending"]);
  });
});

describe("a limit that a gateway is given", () => {
  it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])("should be refused at once as %d ms", async (ms) => {
    const options = { store: ledger(), agent: () => null, channels: [] };
    for (const limit of ["startTimeoutMs", "closeTimeoutMs", "storeTimeoutMs"])
      await expect(createGateway({ ...options, [limit]: ms })).rejects.toThrow(`${limit} is ${ms}`);
    for (const limit of ["sendTimeoutMs", "pollMs"])
      await expect(createGateway({ ...options, durable: { [limit]: ms } })).rejects.toThrow(`${limit} is ${ms}`);
  });
});
