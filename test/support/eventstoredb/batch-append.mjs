// @ts-check
/** The batch append: many appends over one call, each in messages under its correlation id, each with a status of its own. */
/** @import { handleBidiStreamingCall, ServerDuplexStream } from "@grpc/grpc-js" */
/** @import { UUID } from "@eventstore/db-client/generated/shared_pb.js" */
/** @import { Status } from "@eventstore/db-client/generated/status_pb.js" */
/** @import { BatchAppendReq, BatchAppendResp } from "@eventstore/db-client/generated/streams_pb.js" */
/** @import { Appended, CallInfo, Expected, Failure, Node, Proposed } from "./types.js" */
import shared from "@eventstore/db-client/generated/shared_pb.js";
import streams from "@eventstore/db-client/generated/streams_pb.js";
import empty from "google-protobuf/google/protobuf/empty_pb.js";
import { count } from "./append.mjs";
import { ledElsewhere, pass } from "./node.mjs";
import {
  batchBadRequest,
  batchDeleted,
  batchDenied,
  batchNotReady,
  batchTimedOut,
  batchTooLarge,
  batchWrongVersion,
  notLeader,
  unauthenticated,
} from "./statuses.mjs";
import { expectedOf, identifier, proposed, sizeOnDisk, streamName, uuid } from "./wire.mjs";

/**
 * One append of the call, until its last message is there.
 * @typedef {object} Pending
 * @property {UUID | undefined} correlationId
 * @property {string} stream
 * @property {Expected} expected
 * @property {Proposed[]} events
 * @property {number} size
 * @property {NodeJS.Timeout | null} timer
 */

/**
 * @param {Node} node
 * @returns {handleBidiStreamingCall<BatchAppendReq, BatchAppendResp>}
 */
export function batchAppendHandler(node) {
  return (call) => new BatchAppend(node, call);
}

class BatchAppend {
  #node;
  #call;
  /** @type {Map<string, Pending>} */
  #pending = new Map();
  /** Appends that are complete and not answered. */
  #open = 0;
  #ended = false;
  /** A write that is held, and what waits behind it, read or not: writes are done in the order in which they arrive. @type {Promise<void> | null} */
  #held = null;

  /**
   * @param {Node} node
   * @param {ServerDuplexStream<BatchAppendReq, BatchAppendResp>} call
   */
  constructor(node, call) {
    this.#node = node;
    this.#call = call;
    call.on("error", () => {});
    call.on("data", (/** @type {BatchAppendReq} */ request) => this.#inOrder(() => this.#receive(request)));
    call.on("end", () => {
      this.#ended = true;
      this.#endWhenAnswered();
    });
    call.on("cancelled", () => {
      for (const { timer } of this.#pending.values()) clearTimeout(timer ?? undefined);
      this.#pending.clear();
    });
  }

  /** @param {() => Promise<void> | null} step */
  #inOrder(step) {
    const next = this.#held === null ? step() : this.#held.then(step).then(() => {});
    if (next === null) return;
    this.#call.pause();
    const held = next.then(() => {
      if (this.#held !== held) return;
      this.#held = null;
      this.#call.resume();
      this.#endWhenAnswered();
    });
    this.#held = held;
  }

  /**
   * @param {BatchAppendReq} request
   * @returns {Promise<void> | null}
   */
  #receive(request) {
    const id = uuid(request.getCorrelationId());
    const options = request.getOptions();
    if (options !== undefined && !this.#begin(id, request.getCorrelationId(), options, request.getIsFinal()))
      return null;
    const pending = this.#pending.get(id);
    if (pending === undefined) return null;

    for (const message of request.getProposedMessagesList()) {
      const event = proposed(message);
      if (event === null) return this.#refuse(id, pending, batchBadRequest("The given key was not present"));
      pending.events.push(event);
      pending.size += sizeOnDisk(event);
    }
    const max = this.#node.features.maxAppendBytes;
    if (pending.size > max) return this.#refuse(id, pending, batchTooLarge(max));

    const info = infoOf(pending);
    if (!request.getIsFinal()) {
      return pass(
        this.#node,
        this.#call,
        "part",
        info,
        (failure) => this.#fail(pending, failure),
        () => {},
      );
    }
    this.#forget(id);
    this.#open += 1;
    this.#node.calls.add(info);
    return pass(
      this.#node,
      this.#call,
      "arrived",
      info,
      (failure) => this.#fail(pending, failure),
      () => this.#write(pending, info),
    );
  }

  /**
   * @param {string} id
   * @param {UUID | undefined} correlationId
   * @param {BatchAppendReq.Options} options
   * @param {boolean} complete
   */
  #begin(id, correlationId, options, complete) {
    const stream = streamName(options.getStreamIdentifier());
    const expected = expectedOf(options);
    /** @type {Pending} */
    const pending = { correlationId, stream, expected: expected ?? "any", events: [], size: 0, timer: null };
    const admission = this.#node.admit(this.#call.metadata, "write", stream);
    if (admission === "unauthenticated") {
      this.#call.emit("error", unauthenticated());
      return false;
    }
    if (admission === "denied") return this.#answerAtOnce(pending, batchDenied());
    if (expected === null) return this.#answerAtOnce(pending, batchBadRequest("expected position not set"));

    const deadline = options.getDeadline()?.toDate().getTime() ?? Number.POSITIVE_INFINITY;
    const timeout = Math.min(deadline - Date.now(), this.#node.features.writeTimeoutMs);
    if (timeout <= 0) return this.#answerAtOnce(pending, batchTimedOut());
    if (!complete) {
      pending.timer = setTimeout(() => {
        if (this.#pending.delete(id)) this.#answerAtOnce(pending, batchTimedOut());
      }, timeout);
    }
    if (!this.#pending.has(id)) this.#pending.set(id, pending);
    return true;
  }

  /**
   * @param {Pending} pending
   * @param {CallInfo} info
   */
  #write(pending, info) {
    const elsewhere = ledElsewhere(this.#node, this.#call.metadata);
    if (elsewhere !== null) {
      this.#call.emit("error", elsewhere);
      return;
    }
    const appended = this.#node.log.append(pending.stream, pending.expected, pending.events);
    count(this.#node, appended, pending.events.length);
    // A reply that is held does not hold the writes behind it.
    void pass(
      this.#node,
      this.#call,
      "done",
      info,
      (failure) => this.#fail(pending, failure),
      () => this.#answer(response(pending, appended)),
    );
  }

  /**
   * @param {Pending} pending
   * @param {Failure} failure
   */
  #fail(pending, failure) {
    switch (failure.kind) {
      case "denied":
        return this.#answer(errorResponse(pending, batchDenied()));
      case "timeout":
        return this.#answer(errorResponse(pending, batchTimedOut()));
      case "unavailable":
        return this.#answer(errorResponse(pending, batchNotReady()));
      case "not-leader":
        // The server throws here, which ends the call for every append on it.
        this.#call.emit("error", notLeader(failure.leader));
        return undefined;
    }
  }

  /**
   * @param {string} id
   * @param {Pending} pending
   * @param {Status} status
   */
  #refuse(id, pending, status) {
    this.#forget(id);
    this.#answerAtOnce(pending, status);
    return null;
  }

  /** @param {string} id */
  #forget(id) {
    clearTimeout(this.#pending.get(id)?.timer ?? undefined);
    this.#pending.delete(id);
  }

  /**
   * @param {Pending} pending
   * @param {Status} status
   */
  #answerAtOnce(pending, status) {
    this.#open += 1;
    this.#answer(errorResponse(pending, status));
    return false;
  }

  /** @param {BatchAppendResp} answer */
  #answer(answer) {
    this.#open -= 1;
    if (this.#call.cancelled) return;
    this.#call.write(answer);
    this.#endWhenAnswered();
  }

  #endWhenAnswered() {
    if (this.#ended && this.#open === 0 && this.#held === null) this.#call.end();
  }
}

/**
 * @param {Pending} pending
 * @returns {CallInfo}
 */
function infoOf({ stream, events, expected }) {
  return { method: "batchAppend", stream, events, expected };
}

/**
 * @param {Pending} pending
 * @param {Status} status
 */
function errorResponse({ correlationId, stream }, status) {
  return new streams.BatchAppendResp()
    .setCorrelationId(correlationId)
    .setStreamIdentifier(identifier(stream))
    .setError(status);
}

/**
 * @param {Pending} pending
 * @param {Appended} appended
 */
function response(pending, appended) {
  switch (appended.kind) {
    case "deleted":
      return errorResponse(pending, batchDeleted(Buffer.from(pending.stream)));
    case "wrong-version":
      return errorResponse(pending, batchWrongVersion(pending.expected, appended.current));
    case "written":
    case "repeated":
      return new streams.BatchAppendResp()
        .setCorrelationId(pending.correlationId)
        .setStreamIdentifier(identifier(pending.stream))
        .setSuccess(successOf(appended));
  }
}

/** @param {Extract<Appended, { kind: "written" | "repeated" }>} appended */
function successOf({ revision, position }) {
  const success = new streams.BatchAppendResp.Success();
  if (revision < 0) success.setNoStream(new empty.Empty());
  else success.setCurrentRevision(String(revision));
  if (position === null) success.setNoPosition(new empty.Empty());
  else {
    const at = String(position);
    success.setPosition(new shared.AllStreamPosition().setCommitPosition(at).setPreparePosition(at));
  }
  return success;
}
