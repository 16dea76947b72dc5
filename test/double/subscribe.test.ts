import { END, eventTypeFilter, excludeSystemEvents, START, streamNameFilter } from "@eventstore/db-client";
import { describe, expect, it } from "vitest";
import { aDouble, all, anEvent, clientOf, events, failure } from "./client.js";

describe("a subscription to $all with a filter", () => {
  it("should confirm, deliver what is there, say that it has caught up, and go on with what is appended", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("a-1", events(2));
    await client.appendToStream("b-1", anEvent());
    const said: string[] = [];
    const subscription = client.subscribeToAll({
      fromPosition: START,
      filter: streamNameFilter({ prefixes: ["a-"] }),
    });
    subscription.on("confirmation", () => said.push("confirmation"));
    subscription.on("caughtUp", () => {
      said.push("caught up");
      void client.appendToStream("a-2", anEvent());
    });
    for await (const { event } of subscription) {
      said.push(`${event?.streamId}@${event?.revision}`);
      if (event?.streamId === "a-2") break;
    }
    expect(said).toEqual(["confirmation", "a-1@0", "a-1@1", "caught up", "a-2@0"]);
  });

  it("should begin behind the position that it is given", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    const { position } = await client.appendToStream("a-1", anEvent());
    await client.appendToStream("a-2", anEvent());
    if (position === undefined) throw new Error("no position");
    for await (const { event } of client.subscribeToAll({ fromPosition: position })) {
      expect(event?.streamId).toBe("a-2");
      break;
    }
  });

  it("should deliver only what comes after, from the end", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("a-1", anEvent());
    const subscription = client.subscribeToAll({ fromPosition: END });
    subscription.on("caughtUp", () => void client.appendToStream("a-2", anEvent()));
    for await (const { event } of subscription) {
      expect(event?.streamId).toBe("a-2");
      break;
    }
  });

  it("should say where it is while nothing passes its filter", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    const { position } = await client.appendToStream("b-1", events(9));
    const checkpoints: bigint[] = [];
    const reached = new Promise<void>((resolve) => {
      client
        .subscribeToAll({
          filter: streamNameFilter({
            prefixes: ["a-"],
            maxSearchWindow: 5,
            checkpointInterval: 2,
            checkpointReached: (_subscription, { commit }) => {
              checkpoints.push(commit);
              resolve();
            },
          }),
        })
        .on("error", () => {});
    });
    await reached;
    expect(checkpoints).toEqual([position?.commit]);
  });
});

describe("a filter", () => {
  it.each([
    { name: "stream names by pattern", filter: streamNameFilter({ regex: "^[ac]-" }), seen: ["a-1", "c-1"] },
    { name: "types by prefix", filter: eventTypeFilter({ prefixes: ["happ"] }), seen: ["a-1", "b-1", "c-1"] },
    { name: "what is not the system's", filter: excludeSystemEvents(), seen: ["a-1", "b-1", "c-1"] },
  ])("should let through $name", async ({ filter, seen }) => {
    const double = await aDouble();
    const client = clientOf(double.url);
    for (const stream of ["a-1", "b-1", "c-1"]) await client.appendToStream(stream, anEvent());
    const subscription = client.subscribeToAll({ filter });
    const found: unknown[] = [];
    for await (const { event } of subscription) {
      found.push(event?.streamId);
      if (event?.streamId === "c-1") break;
    }
    expect(found).toEqual(seen);
  });

  it("should be refused if it is no pattern", async () => {
    const double = await aDouble();
    const filter = streamNameFilter({ regex: "(" });
    expect(await failure(all(clientOf(double.url).subscribeToAll({ filter })))).toBe("unknown");
  });
});

describe("a subscription to a stream", () => {
  it("should begin behind a revision, and wait for a stream that is not there yet", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    const subscription = client.subscribeToStream("s-1", { fromRevision: 1n });
    subscription.on("caughtUp", () => void client.appendToStream("s-1", events(4)));
    const seen: unknown[] = [];
    for await (const { event } of subscription) {
      seen.push(event?.revision);
      if (seen.length === 2) break;
    }
    expect(seen).toEqual([2n, 3n]);
  });

  it("should end where the stream is tombstoned", async () => {
    const double = await aDouble();
    const client = clientOf(double.url);
    await client.appendToStream("s-1", anEvent());
    const subscription = client.subscribeToStream("s-1");
    subscription.on("caughtUp", () => void client.tombstoneStream("s-1"));
    expect(await failure(all(subscription))).toBe("stream-deleted");
  });
});

describe("a subscriber that does not read", () => {
  const big = () => Array.from({ length: 20 }, () => anEvent({ text: "x".repeat(40_000) }));

  /** Caught up, and then behind by more than fits anywhere. */
  async function leftBehind(slowConsumer: "abort" | "catch-up") {
    const double = await aDouble({ features: { slowConsumer } });
    const client = clientOf(double.url);
    const subscription = client.subscribeToStream("s-1", {}, { highWaterMark: 1 });
    await new Promise((resolve) => subscription.once("caughtUp", resolve));
    for (let batch = 0; batch < 10; batch += 1) await client.appendToStream("s-1", big());
    return subscription;
  }

  it("should be dropped once more events wait than the server keeps", async () => {
    const subscription = await leftBehind("abort");
    await expect(all(subscription)).rejects.toMatchObject({
      type: "timeout",
      message: expect.stringMatching(/too slow/),
    });
  });

  it("should get everything late from a server that lets it catch up", async () => {
    const subscription = await leftBehind("catch-up");
    let count = 0;
    for await (const { event } of subscription) {
      expect(event?.revision).toBe(BigInt(count));
      count += 1;
      if (count === 200) break;
    }
    expect(count).toBe(200);
  });
});
