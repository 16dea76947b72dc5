// @ts-check
/** What a client asks first: what can this server do, and who leads. */
/** @import { handleUnaryCall } from "@grpc/grpc-js" */
/** @import { Empty } from "@eventstore/db-client/generated/shared_pb.js" */
/** @import { ClusterInfo } from "@eventstore/db-client/generated/gossip_pb.js" */
/** @import { SupportedMethods } from "@eventstore/db-client/generated/serverfeatures_pb.js" */
/** @import { Failure, Member, Node } from "./types.js" */
import { createHash } from "node:crypto";
import gossip from "@eventstore/db-client/generated/gossip_pb.js";
import serverfeatures from "@eventstore/db-client/generated/serverfeatures_pb.js";
import shared from "@eventstore/db-client/generated/shared_pb.js";
import { pass } from "./node.mjs";
import { failed } from "./statuses.mjs";

const STREAMS = "event_store.client.streams.streams";
const TICKS_A_MS = 10_000n;

/**
 * @param {Node} node
 * @returns {handleUnaryCall<Empty, SupportedMethods>}
 */
export function serverFeaturesHandler(node) {
  return (call, done) => {
    const info = { method: /** @type {const} */ ("serverFeatures"), stream: "" };
    node.calls.add(info);
    const fail = (/** @type {Failure} */ failure) => done(failed(failure));
    void pass(node, call, "arrived", info, fail, () => done(null, supportedMethods(node)));
  };
}

/** @param {Node} node */
function supportedMethods({ features }) {
  const methods = ["append", "read", "delete", "tombstone", ...(features.batchAppend ? ["batchappend"] : [])];
  const answer = new serverfeatures.SupportedMethods().setEventStoreServerVersion(features.version);
  for (const name of methods) {
    answer.addMethods(new serverfeatures.SupportedMethod().setServiceName(STREAMS).setMethodName(name));
  }
  return answer;
}

/**
 * @param {Node} node
 * @returns {handleUnaryCall<Empty, ClusterInfo>}
 */
export function gossipHandler(node) {
  return (call, done) => {
    const info = { method: /** @type {const} */ ("gossip"), stream: "" };
    node.calls.add(info);
    const fail = (/** @type {Failure} */ failure) => done(failed(failure));
    void pass(node, call, "arrived", info, fail, () => {
      done(null, new gossip.ClusterInfo().setMembersList(node.members().map(memberInfo)));
    });
  };
}

/** @param {Member} member */
function memberInfo({ endpoint, leads, alive }) {
  const { LEADER, FOLLOWER } = gossip.MemberInfo.VNodeState;
  const { address, port } = endpoint;
  return new gossip.MemberInfo()
    .setInstanceId(new shared.UUID().setString(instanceId(`${address}:${port}`)))
    .setTimeStamp(String(BigInt(Date.now()) * TICKS_A_MS))
    .setState(leads ? LEADER : FOLLOWER)
    .setIsAlive(alive)
    .setHttpEndPoint(new gossip.EndPoint().setAddress(address).setPort(port));
}

/** The same UUID for the same member. @param {string} name */
function instanceId(name) {
  const hex = createHash("sha256").update(name).digest("hex").slice(0, 32);
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
