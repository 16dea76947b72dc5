/** Payloads as a kernel may send them: arbitrary ones of each hook point, made from the wire contract's own tables. */

import fc from "fast-check";
import { HOOK_POINTS, type HookPoint } from "../core/points.js";
import type { Field, MessageType } from "../payload/descriptor.js";
import { type Payload, payloadOfCanonical } from "../payload/payload.js";
import { hookPayloadType } from "../payload/schema.js";
import { encodeView, UNKNOWN_FIELDS } from "../payload/view.js";
import { anyText, plainText } from "./texts.js";

export type Flavour =
  /** Every message and enum that is not optional is there; texts, numbers, bytes and plain data are whatever they may be. */
  | "full"
  /** What may be missing may be missing, and what is there is plain. */
  | "sparse"
  /** As `full`, with fields that this contract does not have. */
  | "unknown";

/** Messages that lists and trees nest, counted from the point's own. */
const DEPTH = 6;

export function payloadsOf(point: HookPoint, flavour: Flavour): fc.Arbitrary<Payload> {
  const type = hookPayloadType();
  const field = type.byName.get(HOOK_POINTS[point].variant);
  if (field === undefined || !("message" in field)) throw new TypeError(`${point} has no message`);
  const messages = new Messages(flavour);
  const views = messages.of(field.message, DEPTH).map((message): View => ({ [field.jsonName]: message }));
  return messages.withUnknown(views).map((view) => payloadOfCanonical(encodeView(type, view)));
}

type View = { readonly [key: PropertyKey]: unknown };
type Entry = readonly [name: string, value: unknown];

/** A field that is not there. */
const ABSENT: fc.Arbitrary<Entry | null> = fc.constant(null);

class Messages {
  readonly #flavour: Flavour;
  readonly #text: fc.Arbitrary<string>;
  readonly #made = new Map<string, fc.Arbitrary<View>>();

  constructor(flavour: Flavour) {
    this.#flavour = flavour;
    this.#text = flavour === "sparse" ? plainText() : anyText();
  }

  of(type: MessageType, depth: number): fc.Arbitrary<View> {
    const key = `${depth} ${type.name}`;
    const made = this.#made.get(key) ?? this.#make(type, depth);
    this.#made.set(key, made);
    return made;
  }

  withUnknown(views: fc.Arbitrary<View>): fc.Arbitrary<View> {
    if (this.#flavour !== "unknown") return views;
    return fc.tuple(views, unknownRecords()).map(([view, unknown]) => {
      return unknown.length === 0 ? view : { ...view, [UNKNOWN_FIELDS]: unknown };
    });
  }

  #make(type: MessageType, depth: number): fc.Arbitrary<View> {
    if (type.wellKnown !== undefined) return plainData(this.#text, this.#flavour === "sparse" ? 1 : 3);
    const own = type.fields.filter((field) => field.oneof < 0).map((field) => this.#field(field, depth));
    const chosen = type.oneofs.map((_, index) => this.#member(type, index, depth));
    return this.withUnknown(
      fc.tuple(...own, ...chosen).map((entries) => Object.fromEntries(entries.filter((entry) => entry !== null))),
    );
  }

  #field(field: Field, depth: number): fc.Arbitrary<Entry | null> {
    const isPlain = "message" in field && field.message.wellKnown !== undefined;
    if ("message" in field && !isPlain && depth <= 0 && !isLeaf(field.message)) return ABSENT;
    const one = this.#value(field, depth - 1);
    if (field.repeated) return fc.array(one, { maxLength: 3 }).map((values) => [field.jsonName, values] as const);
    const there = one.map((value) => [field.jsonName, value] as const);
    const mayBeMissing = this.#flavour === "sparse" || (field.presence && field.kind !== "message") || isPlain;
    return mayBeMissing ? fc.option(there, { nil: null }) : there;
  }

  /** One member of a oneof; in a sparse payload perhaps none. */
  #member(type: MessageType, oneof: number, depth: number): fc.Arbitrary<Entry | null> {
    const members = type.fields.filter((field) => field.oneof === oneof);
    const open = members.filter((field) => depth > 0 || !("message" in field) || isLeaf(field.message));
    const given = open.map((field) => this.#value(field, depth - 1).map((value): Entry => [field.jsonName, value]));
    return this.#flavour === "sparse" ? fc.option(fc.oneof(...given), { nil: null }) : fc.oneof(...given);
  }

  #value(field: Field, depth: number): fc.Arbitrary<unknown> {
    switch (field.kind) {
      case "string":
        return this.#text;
      case "bytes":
        return fc.uint8Array({ maxLength: 16 });
      case "bool":
        return fc.boolean();
      case "double":
        return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
      case "int32":
        return fc.integer();
      case "uint32":
        return fc.nat(0xffffffff);
      case "int64":
        return fc.oneof(fc.nat().map(BigInt), fc.constantFrom(...INT64_EXTREMES), fc.bigInt(INT64_MIN, INT64_MAX));
      case "enum": {
        const names = [...field.enum.byNumber].filter(([number]) => number > 0 || this.#flavour === "sparse");
        return fc.constantFrom(...names.map(([, name]) => name));
      }
      case "message":
      case "map":
        return this.of(field.message, depth);
    }
  }
}

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const INT64_EXTREMES = [0n, 1n, -1n, 2n ** 53n, INT64_MAX, INT64_MIN];

/** Does it end a tree? Plain data does. */
function isLeaf(type: MessageType): boolean {
  return type.fields.every((field) => !("message" in field) || field.message.wellKnown !== undefined);
}

/** Records of fields that no message of the contract has, as they ride along in a view. */
function unknownRecords(): fc.Arbitrary<Uint8Array> {
  const record = fc
    .tuple(fc.integer({ min: 900, max: 903 }), fc.uint8Array({ maxLength: 4 }))
    .map(([number, bytes]) => Buffer.concat([lengthTag(number), Buffer.of(bytes.length), bytes]));
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(new Uint8Array(0)) },
    { weight: 1, arbitrary: fc.array(record, { minLength: 1, maxLength: 2 }).map((some) => Buffer.concat(some)) },
  );
}

/** Of a field number above 15 and below 2 048. */
function lengthTag(number: number): Uint8Array {
  return Uint8Array.of(((number * 8 + 2) & 0x7f) | 0x80, (number * 8 + 2) >> 7);
}

function plainData(text: fc.Arbitrary<string>, depth: number): fc.Arbitrary<View> {
  return entriesOf(text, plainValue(text, depth));
}

function entriesOf(text: fc.Arbitrary<string>, value: fc.Arbitrary<unknown>): fc.Arbitrary<View> {
  return fc
    .uniqueArray(fc.tuple(text, value), { maxLength: 3, selector: ([key]) => key })
    .map((entries) => Object.fromEntries(entries));
}

function plainValue(text: fc.Arbitrary<string>, depth: number): fc.Arbitrary<unknown> {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
  const flat = fc.oneof(text, number, fc.boolean(), fc.constant(null));
  if (depth <= 0) return flat;
  const inner = plainValue(text, depth - 1);
  return fc.oneof(
    { weight: 6, arbitrary: flat },
    { weight: 2, arbitrary: fc.array(inner, { maxLength: 3 }) },
    { weight: 2, arbitrary: entriesOf(text, inner) },
    { weight: 1, arbitrary: fc.integer({ min: 1, max: 20 }).map(nested) },
  );
}

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? { a: value } : [value];
  return value;
}
