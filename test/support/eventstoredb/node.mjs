// @ts-check
/** What every call handler begins and ends with. */
/** @import { Metadata } from "@grpc/grpc-js" */
/** @import { Access, CallInfo, Failure, Node, Point } from "./types.js" */
import { accessDenied, notLeader, unauthenticated } from "./statuses.mjs";

/**
 * Lets the faults have their say about a call at a point, then goes on, fails, is silent or cuts the connection. Null where no
 * fault struck: then `goOn` has run already.
 * @param {Node} node
 * @param {{ getPeer(): string }} call
 * @param {Point} point
 * @param {CallInfo} info
 * @param {(failure: Failure) => void} fail
 * @param {() => void} goOn
 * @returns {Promise<void> | null}
 */
export function pass(node, call, point, info, fail, goOn) {
  const met = node.faults.meet(point, info);
  if (met === null) {
    goOn();
    return null;
  }
  return met.then((outcome) => {
    switch (outcome.kind) {
      case "go-on":
        return goOn();
      case "fail":
        return fail(outcome.failure);
      case "cut":
        return node.cut(call.getPeer());
      case "silence":
        return undefined;
    }
  });
}

/**
 * Why this call is not served here; null if it is.
 * @param {Node} node
 * @param {Metadata} headers
 * @param {Access["action"]} action
 * @param {string} stream
 */
export function refusal(node, headers, action, stream) {
  const admission = node.admit(headers, action, stream);
  if (admission === "unauthenticated") return unauthenticated();
  if (admission === "denied") return accessDenied();
  return ledElsewhere(node, headers);
}

/** Followers pass writes on to the leader, unless the client asks for the leader itself. @param {Node} node @param {Metadata} headers */
export function ledElsewhere(node, headers) {
  const leader = node.otherLeader();
  return leader !== null && headers.get("requires-leader")[0] === "true" ? notLeader(leader) : null;
}
