// @ts-check
/** How the server says what went wrong: a gRPC status with trailers, or inside a batch append a google.rpc.Status. */
/** @import { Endpoint, Expected, Failure } from "./types.js" */
import codes from "@eventstore/db-client/generated/code_pb.js";
import shared from "@eventstore/db-client/generated/shared_pb.js";
import rpc from "@eventstore/db-client/generated/status_pb.js";
import { Metadata, status } from "@grpc/grpc-js";
import any from "google-protobuf/google/protobuf/any_pb.js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";

/** @typedef {{ code: status, details: string, metadata: Metadata }} CallError */

/**
 * @param {status} code
 * @param {string} details
 * @param {Readonly<Record<string, string>>} [trailers]
 * @returns {CallError}
 */
function callError(code, details, trailers = {}) {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(trailers)) metadata.set(key, value.replace(/[^\x20-\x7e]/g, "?"));
  return { code, details, metadata };
}

export const unavailable = () => callError(status.UNAVAILABLE, "Server Is Not Ready");
export const unauthenticated = () => callError(status.UNAUTHENTICATED, "Unauthenticated");
export const timedOut = () => callError(status.ABORTED, "Operation timed out: WriteEvents");
export const tooSlow = () =>
  callError(
    status.ABORTED,
    "Operation timed out: Consumer too slow to handle event while live. Client resubscription required.",
  );
export const accessDenied = () => callError(status.PERMISSION_DENIED, "Access Denied", { exception: "access-denied" });
/** @param {string} message */
export const invalidArgument = (message) => callError(status.INVALID_ARGUMENT, message);

/** @param {Endpoint | null} leader */
export function notLeader(leader) {
  if (leader === null) return callError(status.UNKNOWN, "No leader info available in response");
  return callError(status.NOT_FOUND, "Leader info available", {
    exception: "not-leader",
    "leader-endpoint-host": leader.address,
    "leader-endpoint-port": String(leader.port),
  });
}

/** @param {string} stream */
export function streamDeleted(stream) {
  return callError(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: "stream-deleted",
    "stream-name": stream,
  });
}

/**
 * @param {string} operation
 * @param {string} stream
 * @param {Expected} expected
 * @param {number} current
 */
export function wrongVersion(operation, stream, expected, current) {
  const wanted = String(typeof expected === "number" ? expected : { none: -1, any: -2, exists: -4 }[expected]);
  return callError(
    status.FAILED_PRECONDITION,
    `${operation} failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: ${wanted}, Actual version: ${current}`,
    {
      exception: "wrong-expected-version",
      "stream-name": stream,
      "expected-version": wanted,
      "actual-version": String(current),
    },
  );
}

/** @param {number} max bytes */
export function tooLarge(max) {
  return callError(status.INVALID_ARGUMENT, `Maximum Append Size of ${max} Exceeded.`, {
    exception: "maximum-append-size-exceeded",
    "maximum-append-size": String(max),
  });
}

/** @param {Failure} failure @returns {CallError} */
export function failed(failure) {
  switch (failure.kind) {
    case "unavailable":
      return unavailable();
    case "timeout":
      return timedOut();
    case "denied":
      return accessDenied();
    case "not-leader":
      return notLeader(failure.leader);
  }
}

// --- inside a batch append -----------------------------------------------------------------------------------------------

/**
 * @param {number} code
 * @param {string} name of the message that is packed
 * @param {Uint8Array} details
 * @param {string} [message]
 */
function batchStatus(code, name, details, message = name.slice(name.lastIndexOf(".") + 1)) {
  const packed = new any.Any();
  packed.pack(details, name);
  return new rpc.Status().setCode(code).setMessage(message).setDetails(packed);
}

export const batchDenied = () =>
  batchStatus(
    codes.Code.PERMISSION_DENIED,
    "event_store.client.AccessDenied",
    new shared.AccessDenied().serializeBinary(),
  );
export const batchTimedOut = () =>
  batchStatus(codes.Code.DEADLINE_EXCEEDED, "event_store.client.Timeout", new shared.Timeout().serializeBinary());
/** A node that is not ready says so like this, and the client does not recognise it. */
export const batchNotReady = () =>
  batchStatus(codes.Code.OK, "google.protobuf.Empty", new empty.Empty().serializeBinary(), "Server Is Not Ready");

/** @param {Uint8Array} stream name as it came */
export function batchDeleted(stream) {
  const details = new shared.StreamDeleted().setStreamIdentifier(new shared.StreamIdentifier().setStreamName(stream));
  return batchStatus(codes.Code.NOT_FOUND, "event_store.client.StreamDeleted", details.serializeBinary());
}

/** @param {number} max bytes */
export function batchTooLarge(max) {
  const details = new shared.MaximumAppendSizeExceeded().setMaxappendsize(max);
  return batchStatus(
    codes.Code.INVALID_ARGUMENT,
    "event_store.client.MaximumAppendSizeExceeded",
    details.serializeBinary(),
  );
}

/** @param {string} message */
export function batchBadRequest(message) {
  const details = new shared.BadRequest().setMessage(message);
  return batchStatus(codes.Code.INVALID_ARGUMENT, "event_store.client.BadRequest", details.serializeBinary());
}

/**
 * @param {Expected} expected
 * @param {number} current -1: no stream
 */
export function batchWrongVersion(expected, current) {
  const details = new shared.WrongExpectedVersion();
  if (current < 0) details.setCurrentNoStream(new empty.Empty());
  else details.setCurrentStreamRevision(String(current));
  if (expected === "any") details.setExpectedAny(new empty.Empty());
  else if (expected === "exists") details.setExpectedStreamExists(new empty.Empty());
  else if (expected === "none") details.setExpectedNoStream(new empty.Empty());
  else details.setExpectedStreamPosition(String(expected));
  return batchStatus(codes.Code.ALREADY_EXISTS, "event_store.client.WrongExpectedVersion", details.serializeBinary());
}
