/** Recorded payload bytes as JSON. */
import type { Ref } from "../core/events.js";
import { canonicalJson, type Json } from "../payload/canonical-json.js";
import { readJson } from "../payload/json-text.js";
import { payloadFromBytes, payloadToJson } from "../payload/payload.js";

/** What recorded JSON keeps to; deeper text was not written by us. */
const MAX_JSON_DEPTH = 256;

/** Throws HL_PAYLOAD, HL_LIMIT_DEPTH and HL_LIMIT_PAYLOAD on what is no payload. */
export function payloadJson(bytes: Uint8Array, encoding: Ref["encoding"]): Json {
  switch (encoding) {
    case "proto":
      return payloadToJson(payloadFromBytes(bytes));
    case "json":
      return jsonOfText(bytes);
  }
}

/** Throws HL_PAYLOAD and HL_LIMIT_DEPTH. */
export function jsonOfText(bytes: Uint8Array): Json {
  return readJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"), MAX_JSON_DEPTH);
}

/** Are these the bytes that RFC 8785 prints for that JSON, every one of them? */
export function isCanonicalText(bytes: Uint8Array, json: Json): boolean {
  try {
    return Buffer.from(canonicalJson(json)).equals(bytes);
  } catch (error) {
    // A lone surrogate can be escaped, and has no form of its own.
    if (error instanceof TypeError) return false;
    throw error;
  }
}
