import { FOLLOWER } from "@eventstore/db-client";
import { describe, expect, it, onTestFinished } from "vitest";
import { startCluster } from "../support/eventstoredb/cluster.mjs";
import { aDouble, all, anEvent, clientOf, failure } from "./client.js";

async function aCluster(size: number) {
  const cluster = await startCluster(size);
  onTestFinished(() => cluster.stop());
  return cluster;
}

describe("gossip", () => {
  it("should lead a client to a single double", async () => {
    const double = await aDouble();
    const client = clientOf(double.discoverUrl);
    await client.appendToStream("s-1", anEvent());
    expect(double.calls.count("gossip")).toBe(1);
  });

  it("should lead a client to who leads, or follows", async () => {
    const cluster = await aCluster(3);
    cluster.moveLeader(2);
    await clientOf(cluster.url).appendToStream("s-1", anEvent());
    expect(cluster.members.map(({ calls }) => calls.count("batchAppend"))).toEqual([0, 0, 1]);
    const follower = clientOf(cluster.url, `&nodePreference=${FOLLOWER}`);
    expect(await all(follower.readStream("s-1"))).toHaveLength(1);
    expect(cluster.member(2).calls.count("read")).toBe(0);
  });

  it("should lead a client to the next leader when a member is gone", async () => {
    const cluster = await aCluster(3);
    const client = clientOf(cluster.url, "&gossipTimeout=1");
    await client.appendToStream("s-1", anEvent());
    await cluster.leader.stop();
    cluster.moveLeader(1);
    expect(await failure(client.appendToStream("s-1", anEvent()))).toBe("unavailable");
    await client.appendToStream("s-1", anEvent());
    expect(cluster.member(1).calls.count("batchAppend")).toBe(1);
    expect(cluster.log.last("s-1")).toBe(1);
  });
});

describe("a follower", () => {
  it("should pass writes on, but send away who wants the leader", async () => {
    const cluster = await aCluster(2);
    const client = clientOf(cluster.member(0).url);
    await client.appendToStream("s-1", anEvent());
    cluster.moveLeader(1);
    await client.appendToStream("s-1", anEvent());
    const other = clientOf(cluster.member(0).url);
    expect(await failure(other.appendToStream("s-1", anEvent(), { requiresLeader: true }))).toBe("not-leader");
    await other.appendToStream("s-1", anEvent(), { requiresLeader: true });
    expect(cluster.member(1).calls.count("batchAppend")).toBe(1);
    expect(cluster.log.last("s-1")).toBe(2);
  });
});
