/** A HookPayload in canonical form, with what is derived from it computed once, on demand. */

import type { Ref } from "../core/events.js";
import { HOOK_POINTS, type HookPoint, isHookPoint } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import { canonicalize } from "./canonical.js";
import type { Json } from "./canonical-json.js";
import type { Field, MessageType } from "./descriptor.js";
import { digest } from "./digest.js";
import { ViewError } from "./encode.js";
import { encodeJson, jsonOf } from "./json.js";
import type { HookPayloadInput } from "./messages.js";
import { recordsOf, type WireRecord } from "./records.js";
import { hookPayloadType } from "./schema.js";
import { encodeView } from "./view.js";
import { decodeCanonical } from "./view-decode.js";
import { Cursor, MAX_PAYLOAD_BYTES } from "./wire.js";

export interface Payload {
  readonly point: HookPoint;
  /** Canonical encoding of the whole HookPayload message. Never modified by anybody. */
  readonly bytes: Uint8Array;
  /** The point's own message as subscribers in this process see it: deep-frozen, decoded once. */
  readonly view: object;
  /** Digest and size of `bytes`, computed once. */
  readonly ref: Ref;
}

/** The oneof member that is set: which one, and where its message lies in the payload's bytes. */
type Variant = { readonly field: VariantField; readonly record: WireRecord };
type VariantField = Field & { readonly message: MessageType };

class CanonicalPayload implements Payload {
  readonly point: HookPoint;
  readonly bytes: Uint8Array;
  #view: object | undefined;
  #ref: Ref | undefined;

  constructor(point: HookPoint, bytes: Uint8Array) {
    this.point = point;
    this.bytes = bytes;
  }

  get view(): object {
    if (this.#view === undefined) {
      const { field, record } = variantOf(this.bytes);
      this.#view = decodeCanonical(field.message, this.bytes, record.value, record.end);
    }
    return this.#view;
  }

  get ref(): Ref {
    const { bytes } = this;
    this.#ref ??= { digest: digest("payload", bytes), size: bytes.byteLength, encoding: "proto" };
    return this.#ref;
  }
}

/** Takes whatever a host may hand over; a Payload is returned as it is. Throws as the constructor of its kind does. */
export function payloadFrom(input: HookPayloadInput | Payload | Uint8Array): Payload {
  if (input instanceof CanonicalPayload) return input;
  // Callers in JavaScript are not held by the type.
  if (typeof input !== "object" || input === null) throw new HookledgerError("HL_PAYLOAD", "the payload is no object");
  if (input instanceof Uint8Array) return payloadFromBytes(input);
  if ("point" in input) return payloadFromBytes(input.bytes);
  return payloadFromView(input);
}

/**
 * The bytes are copied. Throws HL_PAYLOAD (undecodable, no variant, more than one, or one more than once), HL_LIMIT_PAYLOAD
 * over `maxBytes` (default and most: 64 MiB) and HL_LIMIT_DEPTH over 100 messages.
 */
export function payloadFromBytes(bytes: Uint8Array, options: { readonly maxBytes?: number } = {}): Payload {
  const maxBytes = Math.min(options.maxBytes ?? MAX_PAYLOAD_BYTES, MAX_PAYLOAD_BYTES);
  if (bytes.byteLength > maxBytes) {
    throw new HookledgerError("HL_LIMIT_PAYLOAD", `payload of ${bytes.byteLength} bytes is over ${maxBytes} bytes`);
  }
  const copy = new Uint8Array(bytes);
  requireOneVariant(copy);
  return payloadOfCanonical(canonicalize(hookPayloadType(), copy));
}

/** For bytes that are known to be canonical and to set one variant. */
export function payloadOfCanonical(bytes: Uint8Array): Payload {
  return new CanonicalPayload(pointOf(variantOf(bytes).field), bytes);
}

/**
 * `{ preModelCall: { … } }`, exactly one key; properties are read once. Throws HL_PAYLOAD naming the property,
 * HL_LIMIT_PAYLOAD, HL_LIMIT_DEPTH, and whatever a getter throws.
 */
export function payloadFromView(input: HookPayloadInput): Payload {
  return payloadOfEncoded(() => encodeView(hookPayloadType(), input));
}

/**
 * proto3 JSON of a HookPayload, `{"preModelCall": {…}}`. Throws HL_PAYLOAD, HL_LIMIT_PAYLOAD over 64 MiB and HL_LIMIT_DEPTH over
 * 100 messages, naming the JSON path.
 */
export function payloadFromJson(text: string | Uint8Array): Payload {
  return payloadOfEncoded(() => encodeJson(hookPayloadType(), text));
}

/** The payload as proto3 JSON data. Fields that this build does not know are left out. */
export function payloadToJson(payload: Payload): Json {
  const { field } = variantOf(payload.bytes);
  return { [field.jsonName]: jsonOf(field.message, payload.view) };
}

/** Runs an encoder of HookPayload. Throws HL_PAYLOAD where it throws a ViewError or sets no variant. */
function payloadOfEncoded(encodePayload: () => Uint8Array): Payload {
  let bytes: Uint8Array;
  try {
    bytes = encodePayload();
  } catch (error) {
    if (error instanceof ViewError) throw new HookledgerError(error.code, error.message, { cause: error });
    throw error;
  }
  requireOneVariant(bytes);
  return payloadOfCanonical(bytes);
}

/** Of a valid payload. */
export function variantOf(bytes: Uint8Array): Variant {
  for (const record of recordsOf(bytes)) {
    const field = hookPayloadType().byNumber[record.number];
    if (field !== undefined && "message" in field) return { field, record };
  }
  throw new HookledgerError("HL_PAYLOAD", "payload sets no hook point");
}

/**
 * Libraries merge repeated members and take the last of several; here either is a fault. Throws HL_PAYLOAD. What is malformed is
 * left to the reader after this one.
 */
function requireOneVariant(bytes: Uint8Array): void {
  const type = hookPayloadType();
  const cursor = new Cursor(bytes);
  const set: string[] = [];
  while (cursor.pos < bytes.length && cursor.tag(bytes.length)) {
    const field = type.byNumber[cursor.lo >>> 3];
    const wire = cursor.lo & 7;
    if (field !== undefined) set.push(field.jsonName);
    if (set.length > 1)
      throw new HookledgerError("HL_PAYLOAD", `payload sets more than one hook point: ${set.join(" and ")}`);
    if (!cursor.skip(wire, bytes.length)) return;
  }
  if (set.length === 0 && cursor.pos >= bytes.length)
    throw new HookledgerError("HL_PAYLOAD", "payload sets no hook point");
}

const points = new Map(Object.entries(HOOK_POINTS).map(([point, { variant }]) => [variant as string, point]));

function pointOf(field: Field): HookPoint {
  const point = points.get(field.name);
  if (point === undefined || !isHookPoint(point))
    throw new HookledgerError("HL_PAYLOAD", `${field.name} is no hook point`);
  return point;
}
