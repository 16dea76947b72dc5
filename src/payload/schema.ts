/** The wire contract in memory: the `.proto` texts of this package, read once, on first use, and turned into tables. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Enum, Field as ProtoField, ReflectionObject, Type } from "protobufjs";
import type { Digest } from "../core/events.js";
import type { EnumType, Field, MessageType, ScalarKind } from "./descriptor.js";
import { digest } from "./digest.js";

const FILES = [
  "pluggableharness/common/v1/types.proto",
  "pluggableharness/content/v1/types.proto",
  "pluggableharness/model/v1/types.proto",
  "pluggableharness/tool/v1/types.proto",
  "pluggableharness/render/v1/types.proto",
  "pluggableharness/plan/v1/types.proto",
  "pluggableharness/session/v1/types.proto",
  "pluggableharness/hook/v1/types.proto",
  "pluggableharness/hook/v1/events.proto",
  "pluggableharness/hook/v1/errors.proto",
  "pluggableharness/hook/v1/rpc_request.proto",
  "pluggableharness/hook/v1/rpc_response.proto",
  "pluggableharness/hook/v1/service.proto",
  "hookledger/v1/kernel.proto",
  "hookledger/v1/plugin_info.proto",
];
const STRUCT_FILE = "google/protobuf/struct.proto";
/** What a dispatch puts on the wire; the digest speaks of these and all that they reach. */
const DISPATCHED = ["pluggableharness.hook.v1.DispatchHookRequest", "pluggableharness.hook.v1.DispatchHookResponse"];
const HOOK_PAYLOAD = "pluggableharness.hook.v1.HookPayload";

type Tables = {
  readonly messages: ReadonlyMap<string, MessageType>;
  readonly hookPayload: MessageType;
};

let tables: Tables | undefined;
let contractDigest: Digest | undefined;

function loaded(): Tables {
  tables ??= load();
  return tables;
}

/** Table of a message by its full name. A name that the contract does not have is a TypeError. */
export function messageType(name: string): MessageType {
  return known(loaded().messages, name);
}

export function hookPayloadType(): MessageType {
  return loaded().hookPayload;
}

/** Identifies the wire contract of this build: equal wherever the same `.proto` files are read, comments aside. */
export function schemaDigest(): Digest {
  contractDigest ??= digest("config", render(DISPATCHED.map(messageType)));
  return contractDigest;
}

function load(): Tables {
  const protobuf: typeof import("protobufjs") = createRequire(import.meta.url)("protobufjs");
  const root = new protobuf.Root();
  root.addJSON(protobuf.common.get(STRUCT_FILE)?.nested ?? {});
  for (const file of FILES) {
    const text = readFileSync(new URL(`../../proto/${file}`, import.meta.url), "utf8");
    protobuf.parse(text, root, { keepCase: true });
  }
  root.resolveAll();
  const types: Type[] = [];
  const collect = (object: ReflectionObject): void => {
    if (object instanceof protobuf.Type) types.push(object);
    if (object instanceof protobuf.Namespace) object.nestedArray.forEach(collect);
  };
  collect(root);
  const messages = new Builder().build(types);
  return { messages, hookPayload: known(messages, HOOK_PAYLOAD) };
}

function known<T>(map: ReadonlyMap<string, T>, name: string): T {
  const value = map.get(name);
  if (value === undefined) throw new TypeError(`the wire contract has no ${name}`);
  return value;
}

type Draft = {
  readonly type: MessageType;
  readonly fields: Field[];
  readonly byNumber: (Field | undefined)[];
  readonly byJsonName: Map<string, Field>;
  readonly byName: Map<string, Field>;
};

/** Two passes, because message types refer to each other in circles. */
class Builder {
  readonly #drafts = new Map<string, Draft>();
  readonly #enums = new Map<string, EnumType>();

  build(types: readonly Type[]): ReadonlyMap<string, MessageType> {
    for (const type of types) this.#draft(fullName(type), type.oneofsArray.filter(isReal).map(nameOf));
    for (const type of types) this.#fill(known(this.#drafts, fullName(type)), type);
    return new Map([...this.#drafts].map(([name, draft]) => [name, draft.type]));
  }

  #draft(name: string, oneofs: readonly string[]): Draft {
    const fields: Field[] = [];
    const byNumber: (Field | undefined)[] = [];
    const byJsonName = new Map<string, Field>();
    const byName = new Map<string, Field>();
    const type = { name, fields, byNumber, byJsonName, byName, oneofs, wellKnown: WELL_KNOWN.get(name) };
    const draft = { type, fields, byNumber, byJsonName, byName };
    this.#drafts.set(name, draft);
    return draft;
  }

  #fill(draft: Draft, type: Type): void {
    const sources = [...type.fieldsArray].sort((a, b) => a.id - b.id);
    for (const source of sources) this.#add(draft, this.#field(source, draft));
  }

  #add(draft: Draft, field: Field): void {
    draft.fields.push(field);
    draft.byNumber[field.number] = field;
    draft.byJsonName.set(field.jsonName, field);
    draft.byName.set(field.name, field);
  }

  #field(source: ProtoField, owner: Draft): Field {
    const oneof = source.partOf && isReal(source.partOf) ? owner.type.oneofs.indexOf(source.partOf.name) : -1;
    const common = {
      index: owner.fields.length,
      number: source.id,
      name: source.name,
      jsonName: jsonName(source.name),
      repeated: source.repeated || source.map,
      oneof,
    };
    const optional = source.partOf !== null;
    if (source.map) return { ...common, ...MESSAGE_TRAITS, kind: "map", message: this.#entry(source, owner) };
    const resolved = source.resolvedType;
    if (resolved === null) {
      const kind = scalarKind(source.type);
      return { ...common, kind, presence: optional, packable: wireOf(kind) !== 2, wire: wireOf(kind) };
    }
    if ("values" in resolved) {
      return { ...common, kind: "enum", enum: this.#enum(resolved), presence: optional, packable: true, wire: 0 };
    }
    return { ...common, ...MESSAGE_TRAITS, kind: "message", message: known(this.#drafts, fullName(resolved)).type };
  }

  #entry(source: ProtoField, owner: Draft): MessageType {
    if (!("keyType" in source) || source.keyType !== "string")
      throw new TypeError(`${source.fullName}: maps are by string`);
    const entry = this.#draft(`${owner.type.name}.${jsonName(`_${source.name}`)}Entry`, []);
    const key = { number: 1, name: "key", jsonName: "key", repeated: false, oneof: -1 };
    this.#add(entry, { ...key, index: 0, kind: "string", presence: false, packable: false, wire: 2 });
    const { resolvedType } = source;
    if (resolvedType === null || "values" in resolvedType)
      throw new TypeError(`${source.fullName}: maps hold messages`);
    const message = known(this.#drafts, fullName(resolvedType)).type;
    const value = { ...key, number: 2, name: "value", jsonName: "value" };
    this.#add(entry, { ...value, ...MESSAGE_TRAITS, index: 1, kind: "message", message });
    return entry.type;
  }

  #enum(source: Enum): EnumType {
    const name = fullName(source);
    let type = this.#enums.get(name);
    if (type === undefined) {
      const values = Object.entries(source.values);
      type = { name, byName: new Map(values), byNumber: new Map(values.map(([text, number]) => [number, text])) };
      this.#enums.set(name, type);
    }
    return type;
  }
}

const MESSAGE_TRAITS = { presence: true, packable: false, wire: 2 } as const;

const WELL_KNOWN = new Map<string, MessageType["wellKnown"]>([
  ["google.protobuf.Struct", "struct"],
  ["google.protobuf.Value", "value"],
  ["google.protobuf.ListValue", "list"],
]);

function isReal(oneof: { readonly fieldsArray: readonly ProtoField[] }): boolean {
  return !oneof.fieldsArray.some((field) => field.options?.["proto3_optional"] === true);
}

function nameOf(object: { readonly name: string }): string {
  return object.name;
}

function fullName(object: { readonly fullName: string }): string {
  return object.fullName.slice(1);
}

function jsonName(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

function scalarKind(type: string): ScalarKind {
  switch (type) {
    case "double":
    case "int32":
    case "int64":
    case "uint32":
    case "bool":
    case "string":
    case "bytes":
      return type;
    default:
      throw new TypeError(`the wire contract uses no ${type}`);
  }
}

function wireOf(kind: ScalarKind): 0 | 1 | 2 {
  switch (kind) {
    case "double":
      return 1;
    case "string":
    case "bytes":
      return 2;
    case "int32":
    case "int64":
    case "uint32":
    case "bool":
      return 0;
  }
}

/** One line per message, field and enum, in an order that depends on nothing but the contract. */
function render(roots: readonly MessageType[]): string {
  const seen = new Map<string, string>();
  const waiting = [...roots];
  for (let type = waiting.pop(); type !== undefined; type = waiting.pop()) {
    if (seen.has(type.name)) continue;
    seen.set(type.name, [`message ${type.name}`, ...type.fields.map((field) => renderField(field, type))].join("\n"));
    for (const field of type.fields) {
      if ("message" in field) waiting.push(field.message);
      else if ("enum" in field) seen.set(field.enum.name, renderEnum(field.enum));
    }
  }
  return [...seen.entries()]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, text]) => `${text}\n`)
    .join("");
}

function renderField(field: Field, owner: MessageType): string {
  const refers = "message" in field ? field.message.name : "enum" in field ? field.enum.name : "";
  const label = field.repeated ? "repeated" : field.presence ? "explicit" : "implicit";
  return ` ${field.number} ${field.jsonName} ${label} ${field.kind} ${refers} ${owner.oneofs[field.oneof] ?? ""}`;
}

function renderEnum(type: EnumType): string {
  const values = [...type.byNumber].sort(([a], [b]) => a - b);
  return [`enum ${type.name}`, ...values.map(([number, name]) => ` ${number} ${name}`)].join("\n");
}
