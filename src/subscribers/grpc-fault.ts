/**
 * What a call's end means. Everything that grpc-js makes up itself when a transport breaks is told from what the peer said:
 * a status of its own carries no metadata, and its texts are few and fixed. A peer that imitates them changes a category and
 * never a verdict: every end but a readable answer is a failure.
 */

import { type Metadata, status as Status, type StatusObject } from "@grpc/grpc-js";
import type { HookMode } from "../core/events.js";
import type { Answer } from "../payload/answer.js";
import { isGrpc, type Reply } from "./channel.js";
import { crashed, failed, invalid, timedOut } from "./fault.js";

type CallFacts = {
  readonly mode: HookMode;
  /** bytes */
  readonly requestSize: number;
  /** bytes */
  readonly maxMessageBytes: number;
  readonly remainingMs: () => number;
};

/** The bytes of the one message of a call that ended well, with the peer's trailing metadata; or the fault as an answer. */
export type Received =
  | { readonly ok: true; readonly message: Buffer; readonly trailers: Metadata }
  | { readonly ok: false; readonly answer: Answer };

export function receive(reply: Reply, facts: CallFacts): Received {
  switch (reply.end) {
    case "ambiguous":
      return fault(invalid("the peer sent more than one message for one call"));
    case "foreign":
      return fault(foreign(reply.contentType));
    case "status": {
      const { status, headers, message } = reply;
      if (headers === null && !isOwn(status)) {
        // One frame of headers was all there was, so that they must say what the peer speaks.
        const contentType = String(status.metadata.get("content-type")[0] ?? "");
        if (!isGrpc(contentType)) return fault(foreign(contentType));
      }
      if (status.code !== Status.OK) return fault(statusFault(status, facts));
      if (message === null) return fault(invalid("the peer ended the call without a whole message"));
      return { ok: true, message, trailers: status.metadata };
    }
  }
}

function fault(answer: Answer): Received {
  return { ok: false, answer };
}

function foreign(contentType: string): Answer {
  return crashed(
    contentType === ""
      ? "the peer does not speak gRPC: its answer has no content type"
      : `the peer does not speak gRPC: its answer is ${contentType.slice(0, 200)}`,
  );
}

function statusFault(status: StatusObject, facts: CallFacts): Answer {
  const text = `${Status[status.code] ?? `status ${status.code}`}: ${plain(status.details)}`;
  if (isOwn(status)) {
    // A frame whose compression was not announced makes grpc-js end the call without any code.
    if (status.code === undefined) return invalid("the peer sent a frame that cannot be decoded");
    const own = ownFault(status, facts);
    if (own !== null) return own;
  }
  switch (status.code) {
    case Status.UNAVAILABLE:
      return crashed(text);
    case Status.DEADLINE_EXCEEDED:
      return facts.remainingMs() <= 0 ? timedOut(text) : failed(facts.mode, text);
    case Status.RESOURCE_EXHAUSTED:
      return failed(
        facts.mode,
        `the peer ran out of a resource on a request of ${facts.requestSize} bytes (bound here: ${facts.maxMessageBytes} bytes): ${text}`,
      );
    default:
      return failed(facts.mode, text);
  }
}

/** Without the times that grpc-js puts in, and what it leaves empty. */
function plain(details: string | undefined): string {
  return (details ?? "").replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/g, "").replace(/ Resolution note: $/, "");
}

/** Not from the wire: grpc-js made it. */
function isOwn(status: StatusObject): boolean {
  return Object.keys(status.metadata.getMap()).length === 0;
}

/** The transport broke, or there was none. */
const BROKEN = [
  /^Received RST_STREAM with code /,
  /^Received HTTP status code /,
  /^Connection dropped$/,
  /^Stream refused by server$/,
  /^Bandwidth exhausted or memory limit exceeded$/,
  /^Protocol not secure enough$/,
  /^No status information received$/,
  /^Write (?:error|failed)/,
  /^Failed to start HTTP\/2 stream/,
];

const UNDECODABLE = /^(?:Failed to decompress |Response message parsing error)/;
const OVERSIZE =
  /^Received message (?:larger than max \((?<size>\d+) vs \d+\)|that decompresses to a size larger than \d+)$/;

function ownFault(status: StatusObject, facts: CallFacts): Answer | null {
  const { details } = status;
  if (status.code === Status.DEADLINE_EXCEEDED && details.startsWith("Deadline exceeded after "))
    return timedOut(details);
  if (BROKEN.some((pattern) => pattern.test(details))) return crashed(details);
  // RST_STREAM(CANCEL) of the peer; our own cancelling has an ended deadline or nobody who listens.
  if (status.code === Status.CANCELLED && details === "Call cancelled") return crashed("the peer reset the call");
  if (UNDECODABLE.test(details)) return invalid("the peer sent a frame that cannot be decoded");
  const oversize = OVERSIZE.exec(details);
  const size = oversize?.groups?.["size"];
  if (oversize !== null && (size === undefined || Number(size) > facts.maxMessageBytes)) {
    return invalid(
      `the answer is larger than ${facts.maxMessageBytes} bytes${size === undefined ? "" : `: ${size} bytes`}`,
    );
  }
  return null;
}
