// @ts-check
/** The plain append: a client stream of options and events, one answer. */
/** @import { handleClientStreamingCall, sendUnaryData, ServerReadableStream } from "@grpc/grpc-js" */
/** @import { AppendReq, AppendResp } from "@eventstore/db-client/generated/streams_pb.js" */
/** @import { Appended, Expected, Node, Proposed } from "./types.js" */
import shared from "@eventstore/db-client/generated/shared_pb.js";
import streams from "@eventstore/db-client/generated/streams_pb.js";
import { pass, refusal } from "./node.mjs";
import { failed, invalidArgument, streamDeleted, tooLarge } from "./statuses.mjs";
import { expectedOf, proposed, sizeOnDisk, streamName } from "./wire.mjs";

/**
 * @param {Node} node
 * @returns {handleClientStreamingCall<AppendReq, AppendResp>}
 */
export function appendHandler(node) {
  return (call, done) => new PlainAppend(node, call, done);
}

class PlainAppend {
  #node;
  #call;
  #done;
  #answered = false;
  #stream = "";
  /** @type {Expected | null} */
  #expected = null;
  /** @type {Proposed[]} */
  #events = [];
  #size = 0;

  /**
   * @param {Node} node
   * @param {ServerReadableStream<AppendReq, AppendResp>} call
   * @param {sendUnaryData<AppendResp>} done
   */
  constructor(node, call, done) {
    this.#node = node;
    this.#call = call;
    this.#done = done;
    call.on("error", () => {});
    call.on("data", (/** @type {AppendReq} */ request) => this.#receive(request));
    // The request stream also ends when its connection does, and says so a moment later: then the append is not complete.
    call.on("end", () => setImmediate(() => this.#complete()));
  }

  /** @param {AppendReq} request */
  #receive(request) {
    if (this.#answered) return;
    const options = request.getOptions();
    if (options !== undefined) {
      this.#stream = streamName(options.getStreamIdentifier());
      this.#expected = expectedOf(options);
      const refused = refusal(this.#node, this.#call.metadata, "write", this.#stream);
      if (refused !== null) this.#fail(refused);
      return;
    }
    const message = request.getProposedMessage();
    const event = message === undefined ? null : proposed(message);
    if (event === null) return this.#fail(invalidArgument("Required Metadata Property is missing"));
    this.#events.push(event);
    this.#size += sizeOnDisk(event);
    const max = this.#node.features.maxAppendBytes;
    if (this.#size > max) return this.#fail(tooLarge(max));
    void pass(this.#node, this.#call, "part", this.#info, this.#failWith, () => {});
  }

  #complete() {
    const expected = this.#expected;
    if (this.#answered || this.#call.cancelled) return;
    if (expected === null) return this.#fail(invalidArgument("expected revision is a required argument"));
    this.#node.calls.add(this.#info);
    void pass(this.#node, this.#call, "arrived", this.#info, this.#failWith, () => {
      const appended = this.#node.log.append(this.#stream, expected, this.#events);
      count(this.#node, appended, this.#events.length);
      void pass(this.#node, this.#call, "done", this.#info, this.#failWith, () => this.#answer(expected, appended));
    });
  }

  /**
   * @param {Expected} expected
   * @param {Appended} appended
   */
  #answer(expected, appended) {
    switch (appended.kind) {
      case "deleted":
        return this.#fail(streamDeleted(this.#stream));
      case "wrong-version":
        return this.#done(null, wrongVersionResponse(expected, appended.current));
      case "written":
      case "repeated":
        return this.#done(null, successResponse(appended));
    }
  }

  /** @returns {import("./types.js").CallInfo} */
  get #info() {
    const info = { method: /** @type {const} */ ("append"), stream: this.#stream, events: this.#events };
    return this.#expected === null ? info : { ...info, expected: this.#expected };
  }

  #failWith = (/** @type {import("./types.js").Failure} */ failure) => this.#fail(failed(failure));

  /** @param {import("./statuses.mjs").CallError} error */
  #fail(error) {
    this.#answered = true;
    this.#done(error);
  }
}

/**
 * @param {Node} node
 * @param {Appended} appended
 * @param {number} events
 */
export function count(node, appended, events) {
  if (appended.kind !== "written") return;
  node.calls.eventsWritten += events;
  node.calls.bytesWritten += appended.bytes;
}

/** @param {Extract<Appended, { kind: "written" | "repeated" }>} appended */
function successResponse({ revision, position }) {
  const success = new streams.AppendResp.Success();
  if (revision < 0) success.setNoStream(new shared.Empty());
  else success.setCurrentRevision(String(revision));
  if (position === null) success.setNoPosition(new shared.Empty());
  else {
    const at = String(position);
    success.setPosition(new streams.AppendResp.Position().setCommitPosition(at).setPreparePosition(at));
  }
  return new streams.AppendResp().setSuccess(success);
}

/**
 * @param {Expected} expected
 * @param {number} current
 */
function wrongVersionResponse(expected, current) {
  const wrong = new streams.AppendResp.WrongExpectedVersion();
  if (current < 0) wrong.setCurrentNoStream(new shared.Empty());
  else wrong.setCurrentRevision(String(current));
  if (expected === "any") wrong.setExpectedAny(new shared.Empty());
  else if (expected === "exists") wrong.setExpectedStreamExists(new shared.Empty());
  else if (expected === "none") wrong.setExpectedNoStream(new shared.Empty());
  else wrong.setExpectedRevision(String(expected));
  return new streams.AppendResp().setWrongExpectedVersion(wrong);
}
