/** A valid encoding as its records, none of them looked into. */

import { HookledgerError } from "../errors.js";
import { Cursor, LENGTH } from "./wire.js";

/** `start` is where the tag begins, `value` where the value does (behind a length), `end` where both end. */
export type WireRecord = {
  readonly number: number;
  readonly wire: number;
  readonly start: number;
  readonly value: number;
  readonly end: number;
};

/** In the order of the wire. Throws HL_PAYLOAD where `bytes` are no valid encoding. */
export function recordsOf(bytes: Uint8Array, start = 0, end = bytes.length): WireRecord[] {
  const records: WireRecord[] = [];
  const cursor = new Cursor(bytes, start);
  while (cursor.pos < end) {
    const from = cursor.pos;
    if (!cursor.tag(end)) throw malformed(`no field tag at byte ${from}`);
    const number = cursor.lo >>> 3;
    const wire = cursor.lo & 7;
    const behindTag = cursor.pos;
    if (!cursor.skip(wire, end)) throw malformed(`field ${number} is malformed at byte ${behindTag}`);
    const value = wire === LENGTH ? cursor.pos - cursor.lo : behindTag;
    records.push({ number, wire, start: from, value, end: cursor.pos });
  }
  return records;
}

function malformed(what: string): HookledgerError {
  return new HookledgerError("HL_PAYLOAD", `undecodable: ${what}`);
}
