/**
 * proto3 JSON. In: lowerCamelCase or snake_case names, enum names or numbers, int64 as string or safe number, bytes in either
 * base64 alphabet, null for absent. Out: lowerCamelCase, defaults left out; fields that this build does not know have no JSON
 * form and are left out too, as is the sign of a zero.
 */

import { HookledgerError } from "../errors.js";
import type { Json } from "./canonical-json.js";
import type { Field, MessageType } from "./descriptor.js";
import { encode, type Notation } from "./encode.js";
import { readJson } from "./json-text.js";
import { setOwn } from "./own-property.js";
import { MAX_PAYLOAD_BYTES } from "./wire.js";

/** Enough for every JSON text of 100 messages inside each other; those are what is counted in the end. */
const MAX_JSON_DEPTH = 256;

/**
 * Canonical bytes of a message written as JSON. Throws HL_PAYLOAD (not UTF-8, no JSON), HL_LIMIT_PAYLOAD over 64 MiB,
 * HL_LIMIT_DEPTH, and a ViewError on what the message does not have; each names the JSON path.
 */
export function encodeJson(type: MessageType, text: string | Uint8Array): Uint8Array {
  const size = typeof text === "string" ? Buffer.byteLength(text) : text.byteLength;
  if (size > MAX_PAYLOAD_BYTES) {
    throw new HookledgerError("HL_LIMIT_PAYLOAD", `payload of ${size} bytes is over ${MAX_PAYLOAD_BYTES} bytes`);
  }
  return encode(type, readJson(typeof text === "string" ? text : decoded(text), MAX_JSON_DEPTH), JSON_NOTATION);
}

/** JSON form of a message's view. */
export function jsonOf(type: MessageType, view: object): Json {
  if (type.wellKnown !== undefined) return plainJson(view);
  const json: Record<string, Json> = {};
  const values = new Map<string, unknown>(Object.entries(view));
  for (const field of type.fields) {
    const value = values.get(field.jsonName);
    if (value === undefined || isUnsaid(field, value)) continue;
    json[field.jsonName] = Array.isArray(value)
      ? value.map((element) => fieldJson(field, element))
      : fieldJson(field, value);
  }
  return json;
}

function decoded(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new HookledgerError("HL_PAYLOAD", "payload is not valid UTF-8");
  }
}

const JSON_NOTATION: Notation = {
  root: "$",
  namesKeys: true,
  carriesUnknown: false,
  field: (type, name) => type.byJsonName.get(name) ?? type.byName.get(name),
  isAbsent: (value) => value === null,
  integer: (value) => {
    if (typeof value === "number") return value;
    return typeof value === "string" && WHOLE.test(value) ? Number(value) : undefined;
  },
  int64: (value) => {
    if (typeof value === "string") return WHOLE.test(value) ? BigInt(value) : undefined;
    return Number.isSafeInteger(value) ? BigInt(Number(value)) : undefined;
  },
  double: (value) => {
    if (typeof value === "number") return value;
    if (typeof value !== "string") return undefined;
    return SPECIAL.get(value) ?? (DECIMAL.test(value) ? Number(value) : undefined);
  },
  bytes: (value) => {
    if (typeof value !== "string" || !BASE64.test(value) || value.replace(/=+$/, "").length % 4 === 1) return undefined;
    return Buffer.from(value, "base64");
  },
};

const WHOLE = /^-?\d{1,20}$/;
const DECIMAL = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const SPECIAL = new Map([
  ["NaN", Number.NaN],
  ["Infinity", Number.POSITIVE_INFINITY],
  ["-Infinity", Number.NEGATIVE_INFINITY],
]);

/** Is it a default that the reader of JSON supplies? */
function isUnsaid(field: Field, value: unknown): boolean {
  if (field.repeated) return Array.isArray(value) && value.length === 0;
  if (field.presence) return false;
  if (field.kind === "enum") return value === field.enum.byNumber.get(0);
  if (value instanceof Uint8Array) return value.length === 0;
  return value === "" || value === 0n || value === false || Object.is(value, 0);
}

function fieldJson(field: Field, value: unknown): Json {
  switch (field.kind) {
    case "message":
    case "map":
      return typeof value === "object" && value !== null ? jsonOf(field.message, value) : null;
    case "bytes":
      return value instanceof Uint8Array ? Buffer.from(value).toString("base64") : null;
    case "string":
    case "bool":
    case "enum":
    case "double":
    case "int32":
    case "uint32":
    case "int64":
      return scalarJson(value);
  }
}

function scalarJson(value: unknown): Json {
  switch (typeof value) {
    case "bigint":
      return String(value);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "string":
    case "boolean":
      return value;
    default:
      return null;
  }
}

function plainJson(value: unknown): Json {
  if (Array.isArray(value)) return value.map(plainJson);
  if (typeof value !== "object" || value === null) return scalarJson(value);
  const json: Record<string, Json> = {};
  for (const [key, element] of Object.entries(value)) setOwn(json, key, plainJson(element));
  return json;
}
