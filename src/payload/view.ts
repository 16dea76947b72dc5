/** Messages as plain JavaScript objects, and back. */

import { isUint8Array } from "node:util/types";
import type { MessageType } from "./descriptor.js";
import { encode, type Notation } from "./encode.js";

export { UNKNOWN_FIELDS } from "./messages.js";

/**
 * Canonical bytes of what a program wrote for a message that stands `level` messages deep. Every property is read once. Throws
 * a ViewError (unknown property, wrong type, out of range, two members of a oneof, nested too deep), HL_LIMIT_PAYLOAD, and
 * whatever a getter or a proxy throws.
 */
export function encodeView(type: MessageType, value: unknown, level = 1): Uint8Array {
  return encode(type, value, VIEW, level);
}

const VIEW: Notation = {
  root: "",
  namesKeys: false,
  carriesUnknown: true,
  field: (type, name) => type.byJsonName.get(name),
  isAbsent: () => false,
  integer: (value) => (typeof value === "number" ? value : undefined),
  int64: (value) => {
    if (typeof value === "bigint") return value;
    return Number.isSafeInteger(value) ? BigInt(Number(value)) : undefined;
  },
  double: (value) => (typeof value === "number" ? value : undefined),
  // A copy by the constructor: it reads the array itself, not what a subclass says of it.
  bytes: (value) => (isUint8Array(value) ? new Uint8Array(value) : undefined),
};
