/** Bytes that stand in place of a DispatchHookRequest and are none, or none that a kernel would send. */

import fc from "fast-check";
import { HOOK_POINTS } from "../core/points.js";
import { encodeDispatchRequest } from "../payload/admission.js";
import { hookPayloadType } from "../payload/schema.js";
import { LENGTH, ReverseWriter, VARINT } from "../payload/wire.js";
import type { Stand } from "./ask.js";
import { payloadsOf } from "./payloads.js";

export function hostileRequests(stand: Stand): fc.Arbitrary<Uint8Array> {
  const valid = payloadsOf(stand.point, "sparse").map((payload) => encodeDispatchRequest(payload, stand.mode));
  return fc.oneof(
    { withCrossShrink: true },
    { weight: 2, arbitrary: fc.constantFrom(...fixedRequests(stand)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 32 }) },
    { weight: 2, arbitrary: fc.tuple(valid, fc.nat()).map(([bytes, at]) => bytes.subarray(0, at % bytes.length)) },
    {
      weight: 2,
      arbitrary: fc.tuple(valid, fc.nat(), fc.nat(255)).map(([bytes, at, byte]) => spoilt(bytes, at, byte)),
    },
  );
}

/** Smallest first: that is where shrinking leads. */
function fixedRequests({ point, mode }: Stand): readonly Uint8Array[] {
  const variant = hookPayloadType().byName.get(HOOK_POINTS[point].variant)?.number ?? 1;
  const payload = inField(variant, new Uint8Array(0));
  const wire = { observe: 1, transform: 2, veto: 3 }[mode];
  return [
    // Nothing; no variant; no mode; modes that are none.
    new Uint8Array(0),
    request(new Uint8Array(0), wire),
    request(payload, 0),
    request(payload, 99),
    request(payload, 2 ** 31),
    // Two variants; the payload twice; a payload that is a number.
    request(Buffer.concat([payload, inField(variant === 1 ? 2 : 1, new Uint8Array(0))]), wire),
    Buffer.concat([request(payload, wire), request(payload, wire)]),
    Uint8Array.of(0x08, 0x01, 0x10, wire),
    // Field 0; a varint without an end; a length beyond the end; text that is no UTF-8; a group that is not closed.
    Uint8Array.of(0x00, 0x00),
    new Uint8Array(16).fill(0xff),
    Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0xff, 0x07),
    Buffer.concat([request(payload, wire), inField(3, Uint8Array.of(0xc3, 0x28))]),
    new Uint8Array(2_000).fill(0x0b),
    // Tool results inside tool results.
    request(inField(2, inField(1, nested([2, 3], 5_000))), wire),
    // More than the 4 MiB that gRPC libraries take unless they are told otherwise.
    request(inField(variant, inField(1, new Uint8Array(5 * 1024 * 1024).fill(0x20))), wire),
  ];
}

/** A DispatchHookRequest; `mode` is any number of 32 bits. */
function request(payload: Uint8Array, mode: number): Uint8Array {
  const out = new ReverseWriter(payload.length + 16);
  out.uint(mode);
  out.tag(2, VARINT);
  out.block(payload, 0, payload.length);
  out.tag(1, LENGTH);
  return out.finish();
}

function inField(number: number, bytes: Uint8Array): Uint8Array {
  const out = new ReverseWriter(bytes.length + 16);
  out.block(bytes, 0, bytes.length);
  out.tag(number, LENGTH);
  return out.finish();
}

/** Fields inside each other, the first of `numbers` outermost, over and over. */
function nested(numbers: readonly number[], levels: number): Uint8Array {
  const out = new ReverseWriter(levels * numbers.length * 4);
  for (let level = 0; level < levels; level++) {
    for (const number of numbers.toReversed()) {
      out.uint(out.length);
      out.tag(number, LENGTH);
    }
  }
  return out.finish();
}

function spoilt(bytes: Uint8Array, at: number, byte: number): Uint8Array {
  const copy = new Uint8Array(bytes);
  copy[at % copy.length] = byte;
  return copy;
}
