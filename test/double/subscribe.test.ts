import { END, START, streamNameFilter } from "@eventstore/db-client";
import { describe, expect, it } from "vitest";
import { aDouble, anEvent, clientOf, events } from "./client.js";

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
