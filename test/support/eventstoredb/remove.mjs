// @ts-check
/** Soft delete and tombstone. */
/** @import { handleUnaryCall } from "@grpc/grpc-js" */
/** @import { DeleteReq, DeleteResp, TombstoneReq, TombstoneResp } from "@eventstore/db-client/generated/streams_pb.js" */
/** @import { Expected, Failure, Node, Removed } from "./types.js" */
import streams from "@eventstore/db-client/generated/streams_pb.js";
import { pass, refusal } from "./node.mjs";
import { failed, invalidArgument, streamDeleted, wrongVersion } from "./statuses.mjs";
import { expectedOf, streamName } from "./wire.mjs";

/**
 * @param {Node} node
 * @returns {handleUnaryCall<DeleteReq, DeleteResp>}
 */
export function deleteHandler(node) {
  return (call, done) =>
    remove(node, call, call.request.getOptions(), "delete", done, (position) =>
      new streams.DeleteResp().setPosition(
        new streams.DeleteResp.Position().setCommitPosition(position).setPreparePosition(position),
      ),
    );
}

/**
 * @param {Node} node
 * @returns {handleUnaryCall<TombstoneReq, TombstoneResp>}
 */
export function tombstoneHandler(node) {
  return (call, done) =>
    remove(node, call, call.request.getOptions(), "tombstone", done, (position) =>
      new streams.TombstoneResp().setPosition(
        new streams.TombstoneResp.Position().setCommitPosition(position).setPreparePosition(position),
      ),
    );
}

/**
 * @template R
 * @param {Node} node
 * @param {{ getPeer(): string, metadata: import("@grpc/grpc-js").Metadata }} call
 * @param {DeleteReq.Options | TombstoneReq.Options | undefined} options
 * @param {"delete" | "tombstone"} method
 * @param {import("@grpc/grpc-js").sendUnaryData<R>} done
 * @param {(position: string) => R} response
 */
function remove(node, call, options, method, done, response) {
  const stream = streamName(options?.getStreamIdentifier());
  const expected = options === undefined ? null : expectedOf(options);
  const refused = refusal(node, call.metadata, "delete", stream);
  if (refused !== null) return done(refused);
  if (expected === null) return done(invalidArgument("expected revision is a required argument"));
  const info = { method, stream, expected };
  node.calls.add(info);
  const fail = (/** @type {Failure} */ failure) => done(failed(failure));
  void pass(node, call, "arrived", info, fail, () => {
    const removed = method === "delete" ? node.log.remove(stream, expected) : node.log.tombstone(stream, expected);
    void pass(node, call, "done", info, fail, () => answer(stream, expected, removed, done, response));
  });
}

/**
 * @template R
 * @param {string} stream
 * @param {Expected} expected
 * @param {Removed} removed
 * @param {import("@grpc/grpc-js").sendUnaryData<R>} done
 * @param {(position: string) => R} response
 */
function answer(stream, expected, removed, done, response) {
  switch (removed.kind) {
    case "deleted":
      return done(streamDeleted(stream));
    case "wrong-version":
      return done(wrongVersion("Delete", stream, expected, removed.current));
    case "removed":
      return done(null, response(String(removed.position)));
  }
}
