/** What surrounds a payload on the wire, read and written by the subscriber's side. */

import type { HookMode } from "../core/events.js";
import { HookledgerError } from "../errors.js";
import type { Answer } from "../payload/answer.js";
import { type Payload, payloadFromBytes } from "../payload/payload.js";
import { recordsOf, type WireRecord } from "../payload/records.js";
import { Cursor, isUtf8Range, LENGTH, ReverseWriter, VARINT } from "../payload/wire.js";

export type DispatchRequest = {
  readonly payload: Payload;
  readonly mode: HookMode;
  readonly subscriptionId: string | undefined;
};

const FIELDS = [
  { number: 1, name: "payload", wire: LENGTH },
  { number: 2, name: "mode", wire: VARINT },
  { number: 3, name: "subscription_id", wire: LENGTH },
] as const;

/**
 * Unknown fields are ignored. Throws HL_PAYLOAD (undecodable, a field more than once, no mode that this build knows),
 * HL_LIMIT_PAYLOAD and HL_LIMIT_DEPTH.
 */
export function decodeRequest(bytes: Uint8Array): DispatchRequest {
  const [payload, mode, subscriptionId] = requestFields(bytes);
  if (payload === undefined) throw malformed("it has no payload");
  return {
    payload: payloadFromBytes(bytes.subarray(payload.value, payload.end)),
    mode: modeOf(bytes, mode),
    subscriptionId: subscriptionId === undefined ? undefined : textOf(bytes, subscriptionId),
  };
}

function requestFields(bytes: Uint8Array): readonly (WireRecord | undefined)[] {
  const records = recordsOf(bytes);
  return FIELDS.map(({ number, name, wire }) => {
    const [record, second] = records.filter((candidate) => candidate.number === number);
    if (second !== undefined) throw malformed(`it has ${name} more than once`);
    if (record !== undefined && record.wire !== wire) throw malformed(`its ${name} has wire type ${record.wire}`);
    return record;
  });
}

const MODES: readonly (HookMode | undefined)[] = [undefined, "observe", "transform", "veto"];

function modeOf(bytes: Uint8Array, record: WireRecord | undefined): HookMode {
  const cursor = new Cursor(bytes, record?.value);
  const mode = record !== undefined && cursor.varint(record.end) && cursor.hi === 0 ? MODES[cursor.lo] : undefined;
  if (mode === undefined) throw malformed("its mode is none that is known here");
  return mode;
}

function textOf(bytes: Uint8Array, { value, end }: WireRecord): string {
  if (!isUtf8Range(bytes, value, end)) throw malformed("its subscription_id is not UTF-8");
  return Buffer.from(bytes.buffer, bytes.byteOffset + value, end - value).toString("utf8");
}

function malformed(what: string): HookledgerError {
  return new HookledgerError("HL_PAYLOAD", `the request cannot be read: ${what}`);
}

/** A whole response; without an outcome, which is valid nowhere, for an answer that was judged to be none. */
export function encodeResponse(answer: Exclude<Answer, { class: "failed" }>): Uint8Array {
  switch (answer.class) {
    case "ack":
      return ACK;
    case "allow":
      return ALLOW;
    case "deny":
      return DENY;
    case "invalid":
      return NO_OUTCOME;
    case "transformed":
      return transformResponse(answer.payload.bytes);
  }
}

const ACK = Uint8Array.of(0x0a, 0);
const ALLOW = Uint8Array.of(0x1a, 2, 0x08, 1);
const DENY = Uint8Array.of(0x1a, 2, 0x08, 2);
const NO_OUTCOME = new Uint8Array(0);

function transformResponse(payload: Uint8Array): Uint8Array {
  const out = new ReverseWriter(payload.length + 16, Number.MAX_SAFE_INTEGER);
  out.block(payload, 0, payload.length);
  out.tag(1, LENGTH);
  out.uint(out.length);
  out.tag(2, LENGTH);
  return out.finish();
}
