/** Ledger and queue in one SQLite file: what a send waits for, and what is there afterwards. */
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { createMessageHooks } from "#src/messages/create.js";
import { openDurableDeliveries } from "#src/messages/durable/deliveries.js";
import { definePlugin } from "#src/messages/plugin.js";
import { verifyAll } from "#src/replay/verify-all.js";
import { openStore } from "#src/store/open.js";
import { queueOf } from "#src/store/queue-of.js";
import { temporaryFolder } from "../../support/store-fixtures.js";

describe("durable delivery on a SQLite ledger", () => {
  it("should wait for one barrier before each send, behind the records of both hooks", async () => {
    const folder = temporaryFolder();
    onTestFinished(() => folder.remove());
    const store = await openStore(`sqlite:${join(folder.path, "ledger.db")}`, { mode: "write" });
    const queue = queueOf(store);
    if (queue === null) throw new Error("no queue");
    const asked: string[] = [];
    const append = store.append.bind(store);
    store.append = async (request) => {
      const point: unknown = JSON.parse(request.events[0]?.data ?? "{}").point ?? "later";
      asked.push(`${request.barrier ? "barrier" : "append"} ${point}`);
      return append(request);
    };
    const put = queue.put.bind(queue);
    queue.put = async (rows, barrier) => {
      asked.push(`${barrier ? "barrier" : "append"} queue`);
      await put(rows, barrier);
      asked.push("durable");
    };
    const hooks = await createMessageHooks({
      store,
      plugins: [
        definePlugin({
          id: "p",
          register(api) {
            api.on("reply_payload_sending", () => {});
            api.on("message_sending", () => {});
            api.on("message_sent", () => {});
          },
        }),
      ],
    });
    const adapter = {
      channelId: "test",
      send() {
        asked.push("send");
        return {};
      },
    };
    const deliveries = await openDurableDeliveries({ queue, runs: hooks.runs, channelOf: () => adapter });
    const { outcomes } = await deliveries.deliver([{ text: "one" }, { text: "two" }], {
      runs: hooks.runs,
      route: { adapter, to: "+49", context: { channelId: "test", sessionKey: "s-1", runId: "r-1" } },
    });
    await deliveries.close();
    await hooks.close();
    expect(outcomes).toMatchObject([
      { status: "sent", hookRuns: [{ recorded: true }, { recorded: true }] },
      { status: "sent", hookRuns: [{ recorded: true }, { recorded: true }] },
    ]);
    expect(asked.filter((what) => what.startsWith("barrier"))).toEqual(["barrier queue", "barrier queue"]);
    const first = asked.slice(0, asked.indexOf("send") + 1);
    expect(first.slice(-3)).toEqual(["barrier queue", "durable", "send"]);
    expect(first.filter((what) => what.startsWith("append"))).toContain("append message_sending");
    expect((await queue.deliveries({})).map(({ state, session }) => [state, session])).toEqual([
      ["sent", "s-1"],
      ["sent", "s-1"],
    ]);
    for await (const part of verifyAll(store, undefined, 1)) expect([part.open, part.diverged]).toEqual([0, []]);
    await store.close();
  });
});
