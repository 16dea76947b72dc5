import { NO_STREAM } from "@eventstore/db-client";
import { describe, expect, it } from "vitest";
import type { Double } from "../support/eventstoredb/double.mjs";
import { aDouble, all, anEvent, clientOf, events, failure } from "./client.js";

const appends = { method: ["append", "batchAppend"] as const };

function gate() {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

async function written(double: Double, stream: string): Promise<number> {
  return double.log.last(stream) + 1;
}

describe.each([
  { path: "batch append", batchAppend: true },
  { path: "plain append", batchAppend: false },
])("a fault of a $path", ({ batchAppend }) => {
  async function ready() {
    const double = await aDouble({ features: { batchAppend } });
    const client = clientOf(double.url);
    await client.appendToStream("warm-1", anEvent());
    return { double, client };
  }

  it("should lose the reply after the write, with the connection", async () => {
    const { double, client } = await ready();
    const fault = double.faults.loseReply({ ...appends, stream: "s-1" }, "cut");
    expect(await failure(client.appendToStream("s-1", events(2)))).toBe("unavailable");
    expect([await written(double, "s-1"), fault.fired]).toEqual([2, 1]);
  });

  it("should lose the reply after the write, the call hanging", async () => {
    const { double, client } = await ready();
    const fault = double.faults.loseReply({ ...appends, stream: "s-1" });
    const append = failure(client.appendToStream("s-1", events(2), { deadline: 300 }));
    await fault.struck;
    expect(await written(double, "s-1")).toBe(2);
    if (batchAppend) double.cutAll();
    expect(await append).toBe(batchAppend ? "unavailable" : "deadline-exceeded");
  });

  it("should refuse, and serve again", async () => {
    const { double, client } = await ready();
    double.faults.refuse({ ...appends, stream: /^s-/ });
    // In a batch the node says it in a way that the client does not recognise.
    expect(await failure(client.appendToStream("s-1", anEvent()))).toBe(batchAppend ? "unknown" : "unavailable");
    expect(await written(double, "s-1")).toBe(0);
    expect(await failure(client.appendToStream("s-1", anEvent()))).toBe("resolved");
  });

  it.each([true, false])("should be the server's own timeout, written: %s", async (was) => {
    const { double, client } = await ready();
    double.faults.timeOut({ ...appends, stream: "s-1" }, { written: was });
    expect(await failure(client.appendToStream("s-1", anEvent()))).toBe(batchAppend ? "deadline-exceeded" : "timeout");
    expect(await written(double, "s-1")).toBe(was ? 1 : 0);
  });

  it("should deny one stream only", async () => {
    const { double, client } = await ready();
    double.faults.deny({ ...appends, stream: "s-1", times: Number.POSITIVE_INFINITY });
    expect(await failure(client.appendToStream("s-1", anEvent()))).toBe("access-denied");
    expect(await failure(client.appendToStream("s-2", anEvent()))).toBe("resolved");
  });

  it("should name another leader, which the client goes to", async () => {
    const { double, client } = await ready();
    const other = await aDouble();
    double.faults.notLeader({ ...appends, stream: "s-1" }, other.endpoint);
    expect(await failure(client.appendToStream("s-1", anEvent()))).toBe("not-leader");
    await client.appendToStream("s-1", anEvent());
    expect([await written(double, "s-1"), await written(other, "s-1")]).toEqual([0, 1]);
  });

  it("should strike the call that it is put in for, after those that it skips", async () => {
    const { double, client } = await ready();
    const fault = double.faults.timeOut({ ...appends, stream: "s-1", skip: 1, times: 1 }, { written: false });
    const results = [];
    for (let n = 0; n < 3; n += 1) results.push(await failure(client.appendToStream("s-1", anEvent())));
    expect(results).toEqual(["resolved", batchAppend ? "deadline-exceeded" : "timeout", "resolved"]);
    expect(fault.fired).toBe(1);
  });

  it("should cut the connection before anything is written", async () => {
    const { double, client } = await ready();
    double.faults.cut({ ...appends, stream: "s-1" });
    expect(await failure(client.appendToStream("s-1", events(3)))).toBe("unavailable");
    expect(await written(double, "s-1")).toBe(0);
  });

  it("should cut the connection in the middle of the messages of an append", async () => {
    const { double, client } = await ready();
    double.faults.cutAfterMessages({ ...appends, stream: "s-1" }, 3);
    expect(await failure(client.appendToStream("s-1", events(20), { batchAppendSize: 200 }))).toBe("unavailable");
    expect(await written(double, "s-1")).toBe(0);
    expect(await failure(client.appendToStream("s-1", events(20), { batchAppendSize: 200 }))).toBe("resolved");
  });

  it("should cut the connection in the middle of a message", async () => {
    const { double, client } = await ready();
    const cut = double.cutAfterBytes(100_000);
    expect(await failure(client.appendToStream("s-1", anEvent({ text: "x".repeat(900_000) })))).toBe("unavailable");
    await cut;
    expect(await written(double, "s-1")).toBe(0);
  });

  it("should hold a write until it is let go", async () => {
    const { double, client } = await ready();
    const { open, opened } = gate();
    const fault = double.faults.holdWrite({ ...appends, stream: "s-1" }, opened);
    const append = client.appendToStream("s-1", anEvent());
    await fault.struck;
    expect(await written(double, "s-1")).toBe(0);
    open();
    await append;
    expect(await written(double, "s-1")).toBe(1);
  });
});

describe("replies of a batch append", () => {
  it("should come in reverse order, each to its own append", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("warm-1", anEvent());
    double.faults.reverseReplies({ method: "batchAppend" }, 3);
    const order: string[] = [];
    await Promise.all(
      ["a", "b", "c"].map(async (stream, index) => {
        const { nextExpectedRevision } = await client.appendToStream(stream, events(index + 1));
        order.push(`${stream}@${nextExpectedRevision}`);
      }),
    );
    expect(order).toEqual(["c@2", "b@1", "a@0"]);
  });

  it("should keep the writes in the order in which they came, however long one is held", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("warm-1", anEvent());
    const { open, opened } = gate();
    const fault = double.faults.holdWrite({ method: "batchAppend" }, opened);
    const first = client.appendToStream("s-1", anEvent(), { expectedRevision: NO_STREAM });
    const second = client.appendToStream("s-1", anEvent(), { expectedRevision: 0n });
    await fault.struck;
    open();
    expect([(await first).nextExpectedRevision, (await second).nextExpectedRevision]).toEqual([0n, 1n]);
  });
});

describe("a restart", () => {
  it("should come up on the same port with everything that was written", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("s-1", events(2));
    const { port } = double;
    await double.restart(async () => {
      expect(await failure(client.appendToStream("s-1", anEvent()))).toBe("unavailable");
    });
    expect(double.port).toBe(port);
    const again = clientOf(double.url);
    expect(await all(again.readStream("s-1"))).toHaveLength(2);
    expect((await again.appendToStream("s-1", anEvent(), { expectedRevision: 1n })).nextExpectedRevision).toBe(2n);
  });
});

describe("a fault of a read", () => {
  it("should cut it after some events", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("s-1", events(9));
    double.faults.cutAfterMessages({ method: "read", stream: "s-1" }, 3);
    expect(await failure(all(client.readStream("s-1")))).toBe("unavailable");
    expect(await all(client.readStream("s-1"))).toHaveLength(9);
  });

  it("should cut a subscription after some events", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("s-1", events(9));
    double.faults.cutAfterMessages({ method: "subscribe" }, 3);
    expect(await failure(all(client.subscribeToStream("s-1")))).toBe("unavailable");
  });
});
