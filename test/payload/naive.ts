/**
 * A second opinion on what an encoding means: a plain decoder over protobufjs' own reflection, sharing no code with the product.
 * Two encodings mean equal messages exactly when their meanings are deeply equal.
 */

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import protobuf from "protobufjs";

const protoFolder = join(import.meta.dirname, "../../proto");

export const root = loadRoot();
export const HookPayload = root.lookupType("pluggableharness.hook.v1.HookPayload");

function loadRoot(): protobuf.Root {
  const loaded = new protobuf.Root();
  loaded.addJSON(protobuf.common.get("google/protobuf/struct.proto")!.nested!);
  for (const file of readdirSync(protoFolder, { recursive: true, encoding: "utf8" }).sort()) {
    if (file.endsWith(".proto")) protobuf.parse(readFileSync(join(protoFolder, file), "utf8"), loaded);
  }
  loaded.resolveAll();
  return loaded;
}

export type Meaning = { fields: Record<string, unknown>; unknown: string[] };
type Raw = { number: number; wire: number; value: bigint; data: Uint8Array };

export function meaningOf(type: protobuf.Type, encoded: Uint8Array): Meaning {
  const fields: Record<string, unknown> = {};
  const unknown: { number: number; text: string }[] = [];
  const pending = new Map<protobuf.Field, Uint8Array[]>();
  for (const raw of split(encoded)) {
    const field = type.fieldsById[raw.number];
    if (field === undefined) {
      unknown.push({ number: raw.number, text: unknownText(raw) });
      continue;
    }
    const real = field.partOf !== null && field.options?.["proto3_optional"] !== true;
    if (real) {
      for (const sibling of field.partOf!.fieldsArray) {
        if (sibling === field) continue;
        delete fields[sibling.name];
        pending.delete(sibling);
      }
    }
    if (field.map) putEntry(field, raw, fields);
    else if (field.resolvedType instanceof protobuf.Type) putMessage(field, raw, fields, pending);
    else putScalar(field, raw, fields);
  }
  for (const [field, parts] of pending) {
    fields[field.name] = meaningOf(field.resolvedType as protobuf.Type, Buffer.concat(parts));
  }
  unknown.sort((a, b) => a.number - b.number);
  return { fields, unknown: unknown.map(({ text }) => text) };
}

function putEntry(field: protobuf.Field, raw: Raw, fields: Record<string, unknown>): void {
  let key = "";
  const value: Uint8Array[] = [];
  const extra: { number: number; text: string }[] = [];
  for (const inner of split(raw.data)) {
    if (inner.number === 1) key = Buffer.from(inner.data).toString("hex");
    else if (inner.number === 2) value.push(inner.data);
    else extra.push({ number: inner.number, text: unknownText(inner) });
  }
  extra.sort((a, b) => a.number - b.number);
  fields[field.name] ??= {};
  const map = fields[field.name] as Record<string, unknown>;
  const meaning = meaningOf(field.resolvedType as protobuf.Type, Buffer.concat(value));
  map[`key ${key}`] = { meaning, extra: extra.map(({ text }) => text) };
}

function putMessage(
  field: protobuf.Field,
  raw: Raw,
  fields: Record<string, unknown>,
  pending: Map<protobuf.Field, Uint8Array[]>,
): void {
  if (field.repeated) {
    fields[field.name] ??= [];
    const list = fields[field.name] as unknown[];
    list.push(meaningOf(field.resolvedType as protobuf.Type, raw.data));
    return;
  }
  const parts = pending.get(field) ?? [];
  parts.push(raw.data);
  pending.set(field, parts);
}

function putScalar(field: protobuf.Field, raw: Raw, fields: Record<string, unknown>): void {
  const isText = field.type === "string" || field.type === "bytes";
  if (!field.repeated) {
    const value = scalar(field, raw);
    const isDefault = value === "" || value === "0" || value === "false" || value === "0000000000000000";
    if (isDefault && field.partOf === null) delete fields[field.name];
    else fields[field.name] = value;
    return;
  }
  fields[field.name] ??= [];
  const list = fields[field.name] as unknown[];
  if (raw.wire === 2 && !isText) for (const value of unpack(raw.data)) list.push(scalar(field, value));
  else list.push(scalar(field, raw));
  if (list.length === 0) delete fields[field.name];
}

function unpack(data: Uint8Array): Raw[] {
  const values: Raw[] = [];
  const at = { pos: 0 };
  while (at.pos < data.length) values.push({ number: 0, wire: 0, value: readVarint(data, at), data: new Uint8Array() });
  return values;
}

function scalar(field: protobuf.Field, { value, data }: Raw): string {
  switch (field.type) {
    case "string":
    case "bytes":
      return Buffer.from(data).toString("hex");
    case "double":
      return Number.isNaN(Buffer.from(data).readDoubleLE(0)) ? "NaN" : Buffer.from(data).toString("hex");
    case "bool":
      return String(value !== 0n);
    case "int32":
      return String(BigInt.asIntN(32, value));
    case "uint32":
      return String(BigInt.asUintN(32, value));
    default:
      return String(BigInt.asIntN(64, value));
  }
}

function unknownText({ number, wire, value, data }: Raw): string {
  return `${number}/${wire}/${wire === 0 ? value : Buffer.from(data).toString("hex")}`;
}

function split(encoded: Uint8Array): Raw[] {
  const raws: Raw[] = [];
  const at = { pos: 0 };
  while (at.pos < encoded.length) {
    const key = readVarint(encoded, at);
    const raw = { number: Number(key >> 3n), wire: Number(key & 7n), value: 0n, data: new Uint8Array() };
    if (raw.wire === 0) raw.value = readVarint(encoded, at);
    else {
      const size = raw.wire === 1 ? 8 : raw.wire === 5 ? 4 : raw.wire === 2 ? Number(readVarint(encoded, at)) : -1;
      if (size < 0 || at.pos + size > encoded.length) throw new Error("malformed");
      raw.data = new Uint8Array(encoded.subarray(at.pos, at.pos + size));
      at.pos += size;
    }
    raws.push(raw);
  }
  return raws;
}

function readVarint(encoded: Uint8Array, at: { pos: number }): bigint {
  let value = 0n;
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = encoded[at.pos++];
    if (byte === undefined) throw new Error("malformed");
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return BigInt.asUintN(64, value);
  }
  throw new Error("malformed");
}
