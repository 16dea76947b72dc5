/** What an event carries beside its data: never read by the machine. */
import type { Digest } from "../../core/events.js";
import { canonicalJson } from "../../payload/canonical-json.js";
import type { RecordedEvent } from "../port.js";
import { Fields, readObject } from "./fields.js";

export const SCHEMA_VERSION = 1;

/** The part that is the same for all events of a dispatch. */
export type DispatchMetadata = {
  readonly engineVersion: string;
  /** ULID of the writing store. */
  readonly writer: string;
  readonly session?: string | undefined;
  readonly causationId?: string | undefined;
  readonly turn?: string | undefined;
  readonly traceparent?: string | undefined;
};

/** The part that is the event's own. */
export type EventMoment = {
  /** Wall clock, ISO 8601, for display only. */
  readonly at: string;
  /** ns since the dispatch began, of the call or settlement itself. */
  readonly offsetNs: number;
  /** ms by which a deadline was noticed late. */
  readonly lagMs?: number | undefined;
};

/** Builds the metadata texts of one dispatch; the fixed parts are printed once. RFC 8785 order, without chain and payloads. */
export function metadataWriter(dispatch: DispatchMetadata): (moment: EventMoment) => string {
  const before = member("$causationId", dispatch.causationId) + member("$correlationId", dispatch.session);
  const engine = member("engineVersion", dispatch.engineVersion);
  const after = `"schemaVersion":${SCHEMA_VERSION},${member("traceparent", dispatch.traceparent)}${member("turn", dispatch.turn)}"writer":${canonicalJson(dispatch.writer)}}`;
  return ({ at, offsetNs, lagMs }) =>
    `{${before}"at":"${at}",${engine}${lagMs === undefined ? "" : `"lagMs":${lagMs},`}"offsetNs":${offsetNs},${after}`;
}

/** Prints metadata that was read; what neighbouring events have in common is printed once. */
export function metadataReprinter(): (metadata: DispatchMetadata & EventMoment) => string {
  let last: DispatchMetadata | null = null;
  let print: (moment: EventMoment) => string = () => "";
  return (metadata) => {
    if (last === null || !sameDispatch(last, metadata)) {
      last = metadata;
      print = metadataWriter(metadata);
    }
    return print(metadata);
  };
}

function sameDispatch(a: DispatchMetadata, b: DispatchMetadata): boolean {
  return (
    a.engineVersion === b.engineVersion &&
    a.writer === b.writer &&
    a.session === b.session &&
    a.causationId === b.causationId &&
    a.turn === b.turn &&
    a.traceparent === b.traceparent
  );
}

function member(key: string, value: string | undefined): string {
  return value === undefined ? "" : `"${key}":${canonicalJson(value)},`;
}

/** `metadata.payloads`: small payload bytes by digest, base64. */
export function encodePayloads(payloads: ReadonlyMap<Digest, Uint8Array>): string {
  return canonicalJson(Object.fromEntries(Array.from(payloads, ([digest, bytes]) => [digest, base64(bytes)])));
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** The same from base64 texts. */
export function encodePayloadTexts(payloads: ReadonlyMap<string, string>): string {
  return canonicalJson(Object.fromEntries(payloads));
}

/** Metadata as read back: every member is known, the texts are foreign. */
export type ReadMetadata = DispatchMetadata &
  EventMoment & {
    readonly chain: string;
    /** base64 by digest. */
    readonly payloads: ReadonlyMap<string, string>;
  };

/** Throws Undecodable. A newer schema version is said first. */
export function readMetadata(value: unknown): ReadMetadata | { readonly unknownVersion: number } {
  const version = new Fields(value, "metadata").whole("schemaVersion");
  if (version !== SCHEMA_VERSION) return { unknownVersion: version };
  return readObject(value, "metadata", (data) => {
    data.whole("schemaVersion");
    return {
      engineVersion: data.text("engineVersion"),
      writer: data.text("writer"),
      at: data.text("at"),
      offsetNs: data.whole("offsetNs"),
      chain: data.text("chain"),
      session: data.has("$correlationId") ? data.text("$correlationId") : undefined,
      causationId: data.has("$causationId") ? data.text("$causationId") : undefined,
      turn: data.has("turn") ? data.text("turn") : undefined,
      traceparent: data.has("traceparent") ? data.text("traceparent") : undefined,
      lagMs: data.has("lagMs") ? data.whole("lagMs") : undefined,
      payloads: data.has("payloads") ? data.object("payloads", (payloads) => payloads.texts()) : NO_PAYLOADS,
    };
  });
}

const NO_PAYLOADS: ReadonlyMap<string, string> = new Map();

/** The metadata of a recorded event, or null where there is no event, or none that this version reads. */
export function metadataOf(event: RecordedEvent | undefined): ReadMetadata | null {
  if (event === undefined) return null;
  try {
    const read = readMetadata(JSON.parse(event.metadata));
    return "unknownVersion" in read ? null : read;
  } catch {
    return null;
  }
}
