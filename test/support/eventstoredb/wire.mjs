// @ts-check
/** Between the messages of the client package's definitions and the words of the log. */
/** @import { AppendReq, BatchAppendReq, DeleteReq, ReadReq, TombstoneReq } from "@eventstore/db-client/generated/streams_pb.js" */
/** @import { StreamIdentifier, UUID } from "@eventstore/db-client/generated/shared_pb.js" */
/** @import { Expected, Filter, Proposed, Recorded } from "./types.js" */
import shared from "@eventstore/db-client/generated/shared_pb.js";
import streams from "@eventstore/db-client/generated/streams_pb.js";
import { DELETED } from "./retention.mjs";

const TICKS_A_MS = 10_000n;
const LAST_REVISION = "9223372036854775807";

/** @param {StreamIdentifier | undefined} identifier */
export function streamName(identifier) {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString();
}

/** @param {string} name */
export function identifier(name) {
  return new shared.StreamIdentifier().setStreamName(Buffer.from(name));
}

/** @param {UUID | undefined} id @returns {string} lower case */
export function uuid(id) {
  const structured = id?.getStructured();
  if (structured === undefined) return (id?.getString() ?? "").toLowerCase();
  const half = (/** @type {string} */ bits) => BigInt.asUintN(64, BigInt(bits)).toString(16).padStart(16, "0");
  const hex = half(structured.getMostSignificantBits()) + half(structured.getLeastSignificantBits());
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/**
 * null: a property that every event must have is missing.
 * @param {AppendReq.ProposedMessage | BatchAppendReq.ProposedMessage} message
 * @returns {Proposed | null}
 */
export function proposed(message) {
  const properties = message.getMetadataMap();
  const type = properties.get("type");
  const contentType = properties.get("content-type");
  if (type === undefined || contentType === undefined) return null;
  return {
    id: uuid(message.getId()),
    type,
    json: contentType === "application/json",
    data: message.getData_asU8(),
    metadata: message.getCustomMetadata_asU8(),
  };
}

/** Bytes of an event as the server holds them against its append limit. @param {Proposed} event */
export function sizeOnDisk({ data, metadata, type }) {
  return data.length + metadata.length + 2 * type.length;
}

/**
 * null: not set.
 * @param {AppendReq.Options | BatchAppendReq.Options | DeleteReq.Options | TombstoneReq.Options} options
 * @returns {Expected | null}
 */
export function expectedOf(options) {
  if (options.hasNoStream()) return "none";
  if (options.hasAny()) return "any";
  if (options.hasStreamExists()) return "exists";
  if ("hasStreamPosition" in options) {
    return options.hasStreamPosition() ? Number(options.getStreamPosition()) : null;
  }
  return options.hasRevision() ? Number(options.getRevision()) : null;
}

/** @param {Recorded} event */
export function eventResponse(event) {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(event.id))
    .setStreamIdentifier(identifier(event.stream))
    .setStreamRevision(event.revision === DELETED ? LAST_REVISION : String(event.revision))
    .setCommitPosition(String(event.position))
    .setPreparePosition(String(event.position))
    .setData(event.data)
    .setCustomMetadata(event.metadata);
  recorded
    .getMetadataMap()
    .set("type", event.type)
    .set("created", String(BigInt(Math.trunc(event.created)) * TICKS_A_MS))
    .set("content-type", event.json ? "application/json" : "application/octet-stream");
  const read = new streams.ReadResp.ReadEvent().setEvent(recorded).setCommitPosition(String(event.position));
  return new streams.ReadResp().setEvent(read);
}

/** @param {number} position */
export function checkpointResponse(position) {
  const at = String(position);
  return new streams.ReadResp().setCheckpoint(
    new streams.ReadResp.Checkpoint().setCommitPosition(at).setPreparePosition(at),
  );
}

/** @param {string} id */
export function confirmationResponse(id) {
  return new streams.ReadResp().setConfirmation(new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(id));
}

export function caughtUpResponse() {
  return new streams.ReadResp().setCaughtUp(new streams.ReadResp.CaughtUp());
}

/** @param {string} stream */
export function notFoundResponse(stream) {
  return new streams.ReadResp().setStreamNotFound(
    new streams.ReadResp.StreamNotFound().setStreamIdentifier(identifier(stream)),
  );
}

/** Events looked at a page where the client names no window. */
const WINDOW = 32;

/**
 * null: there is none.
 * @param {ReadReq.Options} options
 * @returns {Filter | null | "invalid"}
 */
export function filterOf(options) {
  const filter = options.getFilter();
  if (filter === undefined) return null;
  const on = filter.hasStreamIdentifier() ? "stream" : "type";
  const expression = on === "stream" ? filter.getStreamIdentifier() : filter.getEventType();
  const prefixes = expression?.getPrefixList() ?? [];
  const regex = regexOf(expression?.getRegex() ?? "");
  if (regex === "invalid") return "invalid";
  const window = filter.hasMax() ? filter.getMax() : WINDOW;
  return {
    on,
    test: (text) => (regex === null ? prefixes.some((prefix) => text.startsWith(prefix)) : regex.test(text)),
    checkpointEvery: window * filter.getCheckpointintervalmultiplier(),
  };
}

/** @param {string} pattern */
function regexOf(pattern) {
  try {
    return pattern === "" ? null : new RegExp(pattern);
  } catch {
    return "invalid";
  }
}
