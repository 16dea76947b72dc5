/** Judges what subscribers answer, over the wire and in process. A subscriber's fault is an answer, never an exception. */

import type { HookMode } from "../core/events.js";
import { HOOK_POINTS } from "../core/points.js";
import { HookledgerError } from "../errors.js";
import type { Answer } from "./answer.js";
import { immutableDifference } from "./difference.js";
import { isPlainObject, kindOf, quotedName, ViewError } from "./encode.js";
import { type Payload, payloadFromBytes, payloadOfCanonical, variantOf } from "./payload.js";
import { recordsOf, type WireRecord } from "./records.js";
import { boundedReason, MAX_RAW_TEXT, rawText } from "./text.js";
import { encodeView } from "./view.js";
import { Cursor, LENGTH, MAX_PAYLOAD_BYTES, ReverseWriter, sameBytes, VARINT } from "./wire.js";

const MODE_NUMBERS = { observe: 1, transform: 2, veto: 3 } as const satisfies Record<HookMode, number>;
const OUTCOMES = ["observe", "transform", "veto"] as const satisfies readonly HookMode[];
const OUTCOME_NAMES = {
  observe: "ObserveAck",
  transform: "TransformResult",
  veto: "VetoResult",
} as const satisfies Record<HookMode, string>;

/** A DispatchHookRequest; the payload's bytes go into it as they are. */
export function encodeDispatchRequest(payload: Payload, mode: HookMode, subscriptionId?: string): Uint8Array {
  const out = new ReverseWriter(payload.bytes.length + (subscriptionId?.length ?? 0) + 32, Number.MAX_SAFE_INTEGER);
  if (subscriptionId !== undefined) {
    out.text(subscriptionId);
    out.tag(3, LENGTH);
  }
  out.uint(MODE_NUMBERS[mode]);
  out.tag(2, VARINT);
  out.block(payload.bytes, 0, payload.bytes.length);
  out.tag(1, LENGTH);
  return out.finish();
}

/** The answer in a DispatchHookResponse. Never throws; `bytes` are not kept. */
export function admitResponse(mode: HookMode, request: Payload, bytes: Uint8Array): Answer {
  if (bytes.byteLength > MAX_PAYLOAD_BYTES + ENVELOPE_BYTES) {
    return invalid(`answer of ${bytes.byteLength} bytes is over ${MAX_PAYLOAD_BYTES} bytes`);
  }
  return judged(() => {
    const outcome = soleField(bytes, { start: 0, end: bytes.length }, [1, 2, 3], "outcome");
    if (outcome === undefined) return invalid("empty answer: no outcome is set");
    const given = OUTCOMES[outcome.number - 1];
    if (given === undefined || given !== mode) {
      return invalid(`${given === undefined ? "no outcome" : OUTCOME_NAMES[given]} in answer to ${mode}`);
    }
    const inside = { start: requireWire(outcome, LENGTH, OUTCOME_NAMES[given]).value, end: outcome.end };
    switch (given) {
      case "observe":
        soleField(bytes, inside, [], "ObserveAck");
        return { class: "ack" };
      case "transform":
        return admitTransform(request, bytes, inside);
      case "veto":
        return admitVeto(bytes, inside);
    }
  });
}

/** Room for what surrounds the payload in an answer. */
const ENVELOPE_BYTES = 64;

type Range = { readonly start: number; readonly end: number };

function admitTransform(request: Payload, bytes: Uint8Array, inside: Range): Answer {
  const record = soleField(bytes, inside, [1], "payload");
  if (record === undefined) return invalid("TransformResult has no payload");
  const { value, end } = requireWire(record, LENGTH, "payload");
  const raw = bytes.subarray(value, end);
  if (sameBytes(raw, request.bytes)) return { class: "transformed", payload: request };
  return judgeTransformed(request, payloadFromBytes(raw));
}

function admitVeto(bytes: Uint8Array, inside: Range): Answer {
  const record = soleField(bytes, inside, [1], "decision");
  if (record === undefined) return invalid("decision is HOOK_DECISION_UNSPECIFIED");
  const cursor = new Cursor(bytes, requireWire(record, VARINT, "decision").value);
  cursor.varint(record.end);
  if (cursor.hi !== 0 || cursor.lo > 0x7fffffff) return invalid("decision is no enum number");
  switch (cursor.lo) {
    case 0:
      return invalid("decision is HOOK_DECISION_UNSPECIFIED");
    case 1:
      return { class: "allow" };
    case 2:
      return { class: "deny" };
    default:
      return invalid(`decision ${cursor.lo} is unknown`);
  }
}

/** The one field of an envelope that has one of the numbers; the others are read and ignored. */
function soleField(bytes: Uint8Array, range: Range, numbers: readonly number[], name: string): WireRecord | undefined {
  const found = recordsOf(bytes, range.start, range.end).filter(({ number }) => numbers.includes(number));
  if (found.length > 1) throw new HookledgerError("HL_PAYLOAD", `answer has ${name} more than once`);
  return found[0];
}

function requireWire(record: WireRecord, wire: number, name: string): WireRecord {
  if (record.wire === wire) return record;
  throw new HookledgerError("HL_PAYLOAD", `${name} has wire type ${record.wire}`);
}

/**
 * What a handler in this process returned. Throws whatever reading it throws, which is the handler's own failure; everything
 * else is an answer.
 */
export function admitReturned(mode: HookMode, request: Payload, returned: unknown): Answer {
  switch (mode) {
    case "observe":
      return { class: "ack" };
    case "transform":
      return admitReturnedPayload(request, returned);
    case "veto":
      return admitVerdict(returned);
  }
}

function admitReturnedPayload(request: Payload, returned: unknown): Answer {
  if (returned === request.view) return { class: "transformed", payload: request };
  if (!isPlainObject(returned)) return invalid(`transform returned ${kindOf(returned)}, not the payload`);
  const { field, record } = variantOf(request.bytes);
  const { mutable } = HOOK_POINTS[request.point];
  // One reading: what is looked at here must be what is encoded.
  const copy: Record<PropertyKey, unknown> = { ...returned };
  for (const name of mutable) {
    const jsonName = field.message.byName.get(name)?.jsonName ?? name;
    if (copy[jsonName] === undefined) return invalid(`transform returned a payload without ${jsonName}`);
  }
  return judged(() => {
    // The variant stands one message deep in HookPayload.
    const body = encodeView(field.message, copy, 2);
    const { bytes } = request;
    const out = new ReverseWriter(bytes.length + body.length);
    out.raw(bytes, record.end, bytes.length);
    out.block(body, 0, body.length);
    out.tag(record.number, LENGTH);
    out.raw(bytes, 0, record.start);
    return judgeTransformed(request, payloadOfCanonical(out.finish()));
  });
}

/**
 * What goes on is the request's payload with the mutable fields of the answer. Both are canonical, so once all else is found
 * equal that is the answer's own encoding.
 */
function judgeTransformed(request: Payload, answer: Payload): Answer {
  if (sameBytes(answer.bytes, request.bytes)) return { class: "transformed", payload: request };
  if (answer.point !== request.point) {
    const asked = HOOK_POINTS[request.point].variant;
    return invalid(`payload variant ${HOOK_POINTS[answer.point].variant} in answer to ${asked}`);
  }
  const changed = immutableDifference(request, answer);
  if (changed !== undefined) return invalid(CHANGED + changed);
  return { class: "transformed", payload: answer };
}

const CHANGED = "changed immutable field ";

/** Stands before what a peer itself says of its answer that is none. */
export const PEER_SAYS = "; the peer says: ";

/**
 * The field for whose change alone an answer is invalid, as `immutableDifference` names it; undefined for every other answer. A peer that
 * notices it itself answers nothing, and says so.
 */
export function changedImmutable(answer: Answer): string | undefined {
  if (answer.class !== "invalid") return undefined;
  const { message } = answer.error;
  const why = message.slice(message.startsWith(CHANGED) ? 0 : message.indexOf(PEER_SAYS) + PEER_SAYS.length);
  return why.startsWith(CHANGED) ? why.slice(CHANGED.length) : undefined;
}

function admitVerdict(returned: unknown): Answer {
  if (returned === "allow" || returned === "deny") return { class: returned };
  if (typeof returned === "string") return invalid('veto returned a string other than "allow" and "deny"');
  if (!isPlainObject(returned)) return invalid(`veto returned ${kindOf(returned)}, not a verdict`);
  const keys = Reflect.ownKeys(returned);
  const foreign = keys.find((key) => key !== "decision" && key !== "reason");
  if (foreign !== undefined) return invalid(`veto returned a verdict with a property ${nameOf(foreign)}`);
  const decision = keys.includes("decision") ? returned["decision"] : undefined;
  const reason = keys.includes("reason") ? returned["reason"] : undefined;
  if (decision !== "allow" && decision !== "deny") return invalid('decision is neither "allow" nor "deny"');
  if (reason !== undefined && typeof reason !== "string") return invalid(`reason is ${kindOf(reason)}, not a string`);
  if (decision === "allow") return { class: "allow" };
  return reason === undefined ? { class: "deny" } : { class: "deny", reason: boundedReason(reason, MAX_RAW_TEXT) };
}

function nameOf(key: string | symbol): string {
  return typeof key === "symbol" ? "that is a symbol" : quotedName(key);
}

/** What the codecs refuse is an invalid answer; anything else thrown is not theirs. */
function judged(judge: () => Answer): Answer {
  try {
    return judge();
  } catch (error) {
    if (error instanceof ViewError || error instanceof HookledgerError) return invalid(error.message);
    throw error;
  }
}

function invalid(message: string): Answer {
  return { class: "invalid", error: { category: "INVALID_RESPONSE", message: rawText(message) } };
}
