/** Payloads without the fields that this contract does not have, and what a transform lost of those. */

import { HOOK_POINTS } from "../core/points.js";
import type { MessageType } from "../payload/descriptor.js";
import { type Payload, payloadOfCanonical, variantOf } from "../payload/payload.js";
import { hookPayloadType } from "../payload/schema.js";
import { encodeView } from "../payload/view.js";
import { sameBytes } from "../payload/wire.js";

export function withoutUnknown(payload: Payload): Payload {
  const { field } = variantOf(payload.bytes);
  return payloadOfCanonical(encodeView(hookPayloadType(), { [field.jsonName]: bare(payload.view) }));
}

export function hasUnknown(payload: Payload): boolean {
  return !sameBytes(withoutUnknown(payload).bytes, payload.bytes);
}

/**
 * Full name of a message, in a field that a transform may change, that came back as it was but for the unknown fields that it
 * had; undefined when there is none.
 */
export function lostUnknown(asked: Payload, answered: Payload): string | undefined {
  const { message } = variantOf(asked.bytes).field;
  const mutable = HOOK_POINTS[asked.point].mutable.flatMap((name) => message.byName.get(name) ?? []);
  for (const field of mutable) {
    if (!("message" in field)) continue;
    const sent = new Map<string, Set<string>>();
    for (const one of messagesIn(field.message, member(asked.view, field.jsonName))) {
      const key = keyOf(one);
      sent.set(key, (sent.get(key) ?? new Set()).add(textOf(one.type, one.value)));
    }
    for (const one of messagesIn(field.message, member(answered.view, field.jsonName))) {
      if (sent.get(keyOf(one))?.has(textOf(one.type, one.value)) === false) return one.type.name;
    }
  }
  return undefined;
}

type Placed = { readonly type: MessageType; readonly value: object };

/** The messages of a list or tree, plain data left out. Payloads nest at most 100 messages. */
function* messagesIn(type: MessageType, value: unknown): Generator<Placed> {
  if (Array.isArray(value)) {
    for (const element of value) yield* messagesIn(type, element);
    return;
  }
  if (typeof value !== "object" || value === null || type.wellKnown !== undefined) return;
  yield { type, value };
  for (const field of type.fields) {
    if ("message" in field) yield* messagesIn(field.message, member(value, field.jsonName));
  }
}

function keyOf({ type, value }: Placed): string {
  return `${type.name} ${textOf(type, bare(value))}`;
}

function textOf(type: MessageType, value: unknown): string {
  return Buffer.from(encodeView(type, value)).toString("latin1");
}

function member(view: object, name: string): unknown {
  return Object.hasOwn(view, name) ? Reflect.get(view, name) : undefined;
}

/** Unknown fields ride on a symbol, which entries leave out. */
function bare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(bare);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, bare(inner)]));
}
