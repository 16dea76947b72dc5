/** Random messages of the contract, and the many encodings that each of them has. */

import fc from "fast-check";
import type { Field, MessageType } from "#src/payload/descriptor.js";
import { type Bytes, block, bytes, hex, int, tag, varint } from "./wire.js";

/** What a message holds, apart from how it is encoded. */
export type Model = {
  readonly type: MessageType;
  readonly values: readonly { readonly field: Field; readonly value: Value }[];
  readonly unknown: readonly { readonly number: number; readonly payload: Uint8Array | bigint }[];
};
type Value = Scalar | Model | readonly (Scalar | Model)[] | readonly Entry[];
type Scalar = string | Uint8Array | bigint | number | boolean;
type Entry = { readonly key: string; readonly value: Model; readonly unknown: Model["unknown"] };

export type Flavour = {
  /** Fields that the contract does not have. `messages`: not inside plain data, where views cannot show them. */
  readonly unknown: "everywhere" | "messages" | "nowhere";
  /** Only values that JSON can say. */
  readonly sayable: boolean;
};

export function modelOf(type: MessageType, flavour: Flavour, depth = 4): fc.Arbitrary<Model> {
  const fields = type.fields.filter((field) => depth > 0 || !("message" in field));
  const inside =
    type.wellKnown === undefined || flavour.unknown !== "messages"
      ? flavour
      : { ...flavour, unknown: "nowhere" as const };
  if (type.wellKnown === "value" && inside.unknown === "nowhere")
    return payloadModel({ ...type, fields }, inside, depth);
  return fc
    .tuple(
      fc
        .subarray(fields)
        .chain((chosen) => fc.tuple(...oneOfEach(type, chosen).map((field) => contentOf(field, inside, depth)))),
      inside.unknown === "nowhere" ? fc.constant([]) : unknownOf(),
    )
    .map(([values, unknown]) => shown({ type, values, unknown }));
}

/** Exactly one variant set, as of HookPayload. */
export function payloadModel(type: MessageType, flavour: Flavour, depth = 5): fc.Arbitrary<Model> {
  return fc
    .tuple(
      fc.constantFrom(...type.fields).chain((field) => contentOf(field, flavour, depth)),
      flavour.unknown === "nowhere" ? fc.constant([]) : unknownOf(),
    )
    .map(([value, unknown]) => shown({ type, values: [value], unknown }));
}

/** Counterexamples print as an encoding, not as the tables they refer to. */
function shown(model: Model): Model {
  return Object.assign(model, { [fc.toStringMethod]: () => `${model.type.name} ${hex(encodingOf(model, 0))}` });
}

function oneOfEach(type: MessageType, chosen: readonly Field[]): readonly Field[] {
  return chosen.filter(
    (field, i) =>
      field.oneof < 0 || chosen.findIndex(({ oneof }) => oneof === field.oneof) === i || type.oneofs.length === 0,
  );
}

function contentOf(field: Field, flavour: Flavour, depth: number): fc.Arbitrary<{ field: Field; value: Value }> {
  const single = singleOf(field, flavour, depth);
  if (field.kind === "map") {
    const [, value] = field.message.fields;
    if (value === undefined || !("message" in value)) throw new TypeError(`${field.name} holds no messages`);
    const inner = modelOf(value.message, flavour, depth - 1);
    const entry = fc.record({
      key: text(),
      value: inner,
      unknown: flavour.unknown === "everywhere" ? unknownOf(3) : fc.constant([]),
    });
    return fc
      .uniqueArray(entry, { maxLength: 4, selector: ({ key }) => key })
      .map((entries) => ({ field, value: entries }));
  }
  if (field.repeated) return fc.array(single, { maxLength: 3 }).map((value) => ({ field, value }));
  return single.map((value) => ({ field, value }));
}

function singleOf(field: Field, flavour: Flavour, depth: number): fc.Arbitrary<Scalar | Model> {
  switch (field.kind) {
    case "string":
      return text();
    case "bytes":
      return fc.uint8Array({ maxLength: 5 });
    case "bool":
      return fc.boolean();
    case "double":
      return flavour.sayable
        ? fc.constantFrom(0, 1.5, -2, 1e300)
        : fc.oneof(fc.constantFrom(0, -0, Number.NaN), fc.double());
    case "int32":
      return fc.oneof(fc.constant(0), fc.integer());
    case "uint32":
      return fc.oneof(fc.constant(0), fc.nat(0xffffffff));
    case "int64":
      return fc.oneof(fc.constant(0n), fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n));
    case "enum":
      if (field.enum.name === "google.protobuf.NullValue" && flavour.unknown !== "everywhere") return fc.constant(0);
      return flavour.sayable
        ? fc.constantFrom(...field.enum.byNumber.keys())
        : fc.oneof(fc.constant(0), fc.nat(9), fc.nat(0x7fffffff));
    case "message":
    case "map":
      return modelOf(field.message, flavour, depth - 1);
  }
}

function text(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.constantFrom("", "a", "b", "\u{1F600}", "\u{FFFD}", "__proto__", "é"),
    fc.string({ maxLength: 6, unit: "grapheme" }),
  );
}

function unknownOf(from = 900): fc.Arbitrary<Model["unknown"]> {
  const payload = fc.oneof(fc.uint8Array({ maxLength: 4 }), fc.bigInt(0n, 2n ** 64n - 1n), fc.constant(0n));
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(fc.record({ number: fc.integer({ min: from, max: from + 2 }), payload }), { maxLength: 3 }),
    },
  );
}

/** A source of choices that is its seed. */
class Choices {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  /** From 0 to `bound` - 1. */
  next(bound: number): number {
    this.#state = (Math.imul(this.#state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * bound);
  }
}

/** One of the encodings of a message, as the seed picks it: any order, padding, splitting and overwriting that changes nothing. */
export function encodingOf(model: Model, seed: number): Bytes {
  return encodeModel(model, new Choices(seed));
}

function encodeModel(model: Model, choices: Choices): Bytes {
  const runs = model.values.map(({ field, value }) => runOf(field, value, choices));
  const unknown = new Map<number, Bytes[]>();
  for (const { number, payload } of model.unknown) {
    unknown.set(number, [...(unknown.get(number) ?? []), unknownRecord(number, payload, choices)]);
  }
  // Within a run the order counts; between runs it does not.
  return interleave([...runs, ...unknown.values(), ...explicitDefaults(model, choices)], choices);
}

function interleave(runs: readonly (readonly Bytes[])[], choices: Choices): Bytes {
  const left = runs.map((run) => [...run]).filter((run) => run.length > 0);
  const out: Bytes[] = [];
  while (left.length > 0) {
    const run = left[choices.next(left.length)]!;
    out.push(run.shift()!);
    if (run.length === 0) left.splice(left.indexOf(run), 1);
  }
  return bytes(...out);
}

function runOf(field: Field, value: Value, choices: Choices): readonly Bytes[] {
  if (field.kind === "map")
    return shuffled(
      (value as readonly Entry[]).flatMap((entry) => entryRecord(field, entry, choices)),
      choices,
    );
  if (field.repeated) {
    const elements = value as readonly (Scalar | Model)[];
    if (!field.packable || choices.next(2) === 0) return elements.map((element) => record(field, element, choices));
    return [block(field.number, ...elements.map((element) => varint(integer(element))))];
  }
  const winner = record(field, value as Scalar | Model, choices);
  if (field.kind === "message") {
    return choices.next(3) === 0 ? splitMessage(field.number, value as Model, choices) : [winner];
  }
  if (choices.next(3) > 0) return [winner];
  return [record(field, loser(field), choices), winner];
}

/** Fields without presence, encoded although they say nothing. */
function explicitDefaults(model: Model, choices: Choices): readonly (readonly Bytes[])[] {
  return model.type.fields
    .filter((field) => !field.presence && !field.repeated && !model.values.some((value) => value.field === field))
    .filter(() => choices.next(4) === 0)
    .map((field) => [record(field, defaultOf(field), choices)]);
}

function splitMessage(number: number, model: Model, choices: Choices): readonly Bytes[] {
  const half = choices.next(model.values.length + 1);
  const first = { ...model, values: model.values.slice(0, half), unknown: [] };
  const second = { ...model, values: model.values.slice(half) };
  // A default in the second part would overwrite the first.
  return [first, second].map((part) =>
    block(
      number,
      interleave(
        part.values.map(({ field, value }) => runOf(field, value, choices)),
        choices,
      ),
      unknownBytes(part, choices),
    ),
  );
}

function unknownBytes(model: Model, choices: Choices): Bytes {
  return bytes(...model.unknown.map(({ number, payload }) => unknownRecord(number, payload, choices)));
}

function entryRecord(field: Field, { key, value, unknown }: Entry, choices: Choices): readonly Bytes[] {
  const keyBytes = key === "" && choices.next(2) === 0 ? [] : [block(1, key)];
  const body = encodeModel(value, choices);
  const valueBytes = body.length === 0 && choices.next(2) === 0 ? [] : [block(2, body)];
  const extra = unknown.map(({ number, payload }) => unknownRecord(number, payload, choices));
  const groups = new Map<number, Bytes[]>();
  for (const [i, { number }] of unknown.entries()) groups.set(number, [...(groups.get(number) ?? []), extra[i]!]);
  return [block(field.number, interleave([keyBytes, valueBytes, ...groups.values()], choices))];
}

function shuffled(records: readonly Bytes[], choices: Choices): readonly Bytes[] {
  const left = [...records];
  return records.map(() => left.splice(choices.next(left.length), 1)[0]!);
}

function record(field: Field, value: Scalar | Model, choices: Choices): Bytes {
  const padding = choices.next(4) === 0 ? 1 : 0;
  const head = tag(field.number, field.wire, padding);
  if (typeof value === "string") return sized(head, Buffer.from(value), padding);
  if (value instanceof Uint8Array) return sized(head, value, padding);
  if (typeof value === "object") return sized(head, encodeModel(value, choices), padding);
  if (field.kind !== "double") return bytes(head, varint(integer(value), 0));
  const eight = Buffer.alloc(8);
  eight.writeDoubleLE(Number(value));
  if (Number.isNaN(value) && choices.next(2) === 0) eight.set([1, 2, 3, 4, 5, 6, 0xf1, 0xff]);
  return bytes(head, eight);
}

function sized(head: Bytes, content: Uint8Array, padding: number): Bytes {
  return bytes(head, varint(content.length, padding), content);
}

function unknownRecord(number: number, payload: Uint8Array | bigint, choices: Choices): Bytes {
  if (payload instanceof Uint8Array) return bytes(tag(number, 2), varint(payload.length, choices.next(2)), payload);
  return payload > 2n ** 60n ? int(number, payload) : bytes(tag(number, 0), varint(payload, choices.next(2)));
}

function integer(value: Scalar | Model): number | bigint {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value === "number" || typeof value === "bigint") return value;
  throw new TypeError("no integer");
}

function loser(field: Field): Scalar {
  switch (field.kind) {
    case "string":
      return "loser";
    case "bytes":
      return Uint8Array.of(9);
    case "bool":
      return true;
    default:
      return 7;
  }
}

function defaultOf(field: Field): Scalar {
  switch (field.kind) {
    case "string":
      return "";
    case "bytes":
      return new Uint8Array();
    case "bool":
      return false;
    default:
      return 0;
  }
}
