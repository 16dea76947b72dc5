// @ts-check
/** Reads and subscriptions: one call of the server, told apart by its count option. */
/** @import { handleServerStreamingCall, ServerWritableStream } from "@grpc/grpc-js" */
/** @import { ReadReq, ReadResp } from "@eventstore/db-client/generated/streams_pb.js" */
/** @import { Item } from "./cursors.mjs" */
/** @import { CallInfo, Failure, Filter, Node, Recorded } from "./types.js" */
import { randomUUID } from "node:crypto";
import streams from "@eventstore/db-client/generated/streams_pb.js";
import { AllCursor, isLetThrough, StreamCursor } from "./cursors.mjs";
import { pass, refusal } from "./node.mjs";
import { Outlet } from "./outlet.mjs";
import { failed, invalidArgument, streamDeleted, tooSlow } from "./statuses.mjs";
import {
  caughtUpResponse,
  checkpointResponse,
  confirmationResponse,
  eventResponse,
  filterOf,
  notFoundResponse,
  streamName,
} from "./wire.mjs";

/** @typedef {{ readonly stream: string, readonly from: number | "start" | "end", readonly backwards: boolean, readonly max: number, readonly filter: Filter | null }} Request */

/**
 * @param {Node} node
 * @returns {handleServerStreamingCall<ReadReq, ReadResp>}
 */
export function readHandler(node) {
  return (call) => {
    const outlet = new Outlet(call);
    const options = call.request.getOptions();
    const request = options === undefined ? null : requestOf(options);
    if (options === undefined || request === null) return outlet.fail(invalidArgument("The combination is invalid."));
    const refused = refusal(node, call.metadata, "read", request.stream);
    if (refused !== null) return outlet.fail(refused);

    /** @type {CallInfo} */
    const info = { method: options.hasSubscription() ? "subscribe" : "read", stream: request.stream };
    node.calls.add(info);
    const answer = new Answer(node, call, outlet, info);
    void pass(node, call, "arrived", info, answer.failWith, () => {
      const running = options.hasSubscription() ? subscribe(node, answer, request) : read(node, answer, request);
      running.catch((error) => outlet.fail(invalidArgument(String(error))));
    });
  };
}

/** What a read sends: events, each of which a fault may make the last. */
class Answer {
  #node;
  #call;
  #info;

  /**
   * @param {Node} node
   * @param {ServerWritableStream<ReadReq, ReadResp>} call
   * @param {Outlet} outlet
   * @param {CallInfo} info
   */
  constructor(node, call, outlet, info) {
    this.#node = node;
    this.#call = call;
    this.#info = info;
    this.outlet = outlet;
  }

  failWith = (/** @type {Failure} */ failure) => this.outlet.fail(failed(failure));

  /**
   * null: go on at once.
   * @param {Recorded} event
   */
  send(event) {
    const room = this.outlet.send(eventResponse(event));
    const struck = pass(this.#node, this.#call, "part", this.#info, this.failWith, () => {});
    return room === null || struck === null ? (room ?? struck) : Promise.all([room, struck]).then(() => {});
  }
}

/**
 * @param {Node} node
 * @param {Answer} answer
 * @param {Request} request
 */
async function read(node, answer, request) {
  const { outlet } = answer;
  if (request.stream === "$all") {
    for (const event of eventsOfAll(node, request)) {
      const wait = answer.send(event);
      if (wait !== null) await wait;
      if (outlet.closed) return;
    }
    return outlet.end();
  }
  const found = node.log.readStream(request.stream, {
    direction: request.backwards ? "backwards" : "forwards",
    from: request.from,
    max: request.max,
  });
  if (found.kind === "deleted") return outlet.fail(streamDeleted(request.stream));
  if (found.kind === "not-found") await outlet.send(notFoundResponse(request.stream));
  for (const event of found.kind === "events" ? found.events : []) {
    const wait = answer.send(event);
    if (wait !== null) await wait;
    if (outlet.closed) return;
  }
  outlet.end();
}

/**
 * Forwards a position is inclusive; backwards the event at it is not read, as it ends behind it.
 * @param {Node} node
 * @param {Request} request
 * @returns {Generator<Recorded>}
 */
function* eventsOfAll({ log }, { from, backwards, max, filter }) {
  const step = backwards ? -1 : 1;
  let at = from === "start" ? 0 : from === "end" ? log.length : log.indexOf(from);
  if (backwards) at -= 1;
  for (let left = max, event = log.at(at); left > 0 && event !== undefined; at += step, event = log.at(at)) {
    if (!isLetThrough(filter, event)) continue;
    left -= 1;
    yield event;
  }
}

/**
 * @param {Node} node
 * @param {Answer} answer
 * @param {Request} request
 */
async function subscribe(node, answer, request) {
  const { outlet } = answer;
  const { log, features } = node;
  const cursor =
    request.stream === "$all"
      ? new AllCursor(log, request.from, request.filter)
      : new StreamCursor(log, request.stream, request.from);
  let live = false;
  /** @type {() => void} */
  let wake = () => {};
  const stop = log.onCommit(() => {
    wake();
    const slow = live && outlet.blocked && cursor.waiting(features.liveBuffer + 1) > features.liveBuffer;
    if (!slow) return;
    if (features.slowConsumer === "abort") outlet.fail(tooSlow());
    else live = false;
  });
  outlet.onClose(() => wake());
  try {
    await outlet.send(confirmationResponse(randomUUID()));
    while (!outlet.closed) {
      const item = cursor.next();
      if (item !== null) {
        const wait = sendItem(answer, item, request.stream);
        if (wait !== null) await wait;
      } else if (!live) {
        live = true;
        await outlet.send(caughtUpResponse());
      } else {
        await new Promise((/** @type {(value: void) => void} */ resolve) => {
          wake = resolve;
        });
      }
    }
  } finally {
    stop();
  }
}

/**
 * @param {Answer} answer
 * @param {Item} item
 * @param {string} stream
 * @returns {Promise<void> | null}
 */
function sendItem(answer, item, stream) {
  switch (item.kind) {
    case "event":
      return answer.send(item.event);
    case "checkpoint":
      return answer.outlet.send(checkpointResponse(item.position));
    case "deleted":
      answer.outlet.fail(streamDeleted(stream));
      return null;
  }
}

/**
 * null: not a read, or its pattern is none.
 * @param {ReadReq.Options} options
 * @returns {Request | null}
 */
function requestOf(options) {
  const { ReadDirection } = streams.ReadReq.Options;
  const rest = {
    backwards: options.getReadDirection() === ReadDirection.BACKWARDS,
    max: options.hasCount() ? Number(options.getCount()) : Number.POSITIVE_INFINITY,
  };
  const stream = options.getStream();
  if (stream !== undefined) {
    const from = stream.hasStart() ? "start" : stream.hasEnd() ? "end" : Number(stream.getRevision());
    return { ...rest, stream: streamName(stream.getStreamIdentifier()), from, filter: null };
  }
  const all = options.getAll();
  const filter = filterOf(options);
  if (all === undefined || filter === "invalid") return null;
  const from = all.hasStart() ? "start" : all.hasEnd() ? "end" : Number(all.getPosition()?.getCommitPosition());
  return { ...rest, stream: "$all", from, filter };
}
