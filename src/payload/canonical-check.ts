/** Is an encoding already canonical? One forward pass without allocation; "no" also for what is not valid at all. */

import type { Field, MessageType } from "./descriptor.js";
import { anyBits, Cursor, compareRanges, isOddNaN, isUtf8Range, LENGTH, MAX_MESSAGE_DEPTH } from "./wire.js";

/** The message stands `level` messages deep. */
export function isCanonical(type: MessageType, bytes: Uint8Array, level = 1): boolean {
  return checkMessage(new Cursor(bytes), bytes.length, type, level);
}

function checkMessage(cursor: Cursor, end: number, type: MessageType, level: number): boolean {
  if (level > MAX_MESSAGE_DEPTH) return false;
  let last = 0;
  let oneofs = 0;
  let keyStart = -1;
  let keyEnd = -1;
  while (cursor.pos < end) {
    if (!cursor.tag(end) || !cursor.minimal) return false;
    const number = cursor.lo >>> 3;
    const wire = cursor.lo & 7;
    if (number < last) return false;
    const field = number < type.byNumber.length ? type.byNumber[number] : undefined;
    if (field === undefined) {
      if (!cursor.skip(wire, end) || !cursor.minimal) return false;
      last = number;
      continue;
    }
    if (field.oneof >= 0) {
      if ((oneofs & (1 << field.oneof)) !== 0) return false;
      oneofs |= 1 << field.oneof;
    }
    if (field.kind === "map") {
      if (wire !== LENGTH || !cursor.length(end) || !cursor.minimal) return false;
      const previousStart = number === last ? keyStart : -1;
      const previousEnd = keyEnd;
      const entryEnd = cursor.pos + cursor.lo;
      if (!checkKey(cursor, entryEnd)) return false;
      keyStart = cursor.pos;
      keyEnd = cursor.pos += cursor.lo;
      if (previousStart >= 0 && compareRanges(cursor.bytes, previousStart, previousEnd, keyStart, keyEnd) >= 0) {
        return false;
      }
      if (!checkEntryValue(cursor, entryEnd, field.message, level)) return false;
    } else if (field.repeated && field.packable) {
      if (number === last || wire !== LENGTH || !checkPacked(cursor, end, field)) return false;
    } else {
      if ((number === last && !field.repeated) || wire !== field.wire) return false;
      if (!checkValue(cursor, end, field, level)) return false;
    }
    last = number;
  }
  return true;
}

/** Leaves the cursor at the key's bytes and their number in `lo`. */
function checkKey(cursor: Cursor, end: number): boolean {
  if (cursor.bytes[cursor.pos] !== 0x0a) return false;
  cursor.pos++;
  return cursor.length(end) && cursor.minimal && isUtf8Range(cursor.bytes, cursor.pos, cursor.pos + cursor.lo);
}

/** What follows the key of a map entry: the value, always there, then nothing that the entry type knows. */
function checkEntryValue(cursor: Cursor, end: number, entry: MessageType, level: number): boolean {
  if (cursor.pos >= end || cursor.bytes[cursor.pos] !== 0x12) return false;
  cursor.pos++;
  const value = entry.byNumber[2];
  if (value === undefined || !checkValue(cursor, end, value, level)) return false;
  let last = 3;
  while (cursor.pos < end) {
    if (!cursor.tag(end) || !cursor.minimal) return false;
    const number = cursor.lo >>> 3;
    if (number < last || !cursor.skip(cursor.lo & 7, end) || !cursor.minimal) return false;
    last = number;
  }
  return true;
}

function checkValue(cursor: Cursor, end: number, field: Field, level: number): boolean {
  // An element of a list is always encoded; so is an explicit value.
  const keepsDefault = field.presence || field.repeated;
  switch (field.kind) {
    case "map":
    case "message": {
      if (!cursor.length(end) || !cursor.minimal) return false;
      return checkMessage(cursor, cursor.pos + cursor.lo, field.message, level + 1);
    }
    case "string":
    case "bytes": {
      if (!cursor.length(end) || !cursor.minimal || (cursor.lo === 0 && !keepsDefault)) return false;
      const start = cursor.pos;
      cursor.pos += cursor.lo;
      return field.kind === "bytes" || isUtf8Range(cursor.bytes, start, cursor.pos);
    }
    case "double": {
      const start = cursor.pos;
      cursor.pos += 8;
      if (cursor.pos > end || isOddNaN(cursor.bytes, start)) return false;
      return keepsDefault || anyBits(cursor.bytes, start, cursor.pos);
    }
    case "int32":
    case "int64":
    case "uint32":
    case "bool":
    case "enum": {
      if (!cursor.varint(end) || !cursor.minimal) return false;
      return checkInteger(cursor, field) && (keepsDefault || cursor.lo !== 0 || cursor.hi !== 0);
    }
  }
}

function checkInteger(cursor: Cursor, field: Field): boolean {
  const { lo, hi } = cursor;
  switch (field.kind) {
    case "int64":
      return true;
    case "int32":
      return lo < 0x80000000 ? hi === 0 : hi === 0xffffffff;
    case "uint32":
      return hi === 0;
    case "bool":
      return hi === 0 && lo <= 1;
    case "enum":
      return hi === 0 && lo < 0x80000000;
    case "map":
    case "message":
    case "string":
    case "bytes":
    case "double":
      return false;
  }
}

function checkPacked(cursor: Cursor, end: number, field: Field): boolean {
  if (!cursor.length(end) || !cursor.minimal || cursor.lo === 0) return false;
  const listEnd = cursor.pos + cursor.lo;
  while (cursor.pos < listEnd) {
    if (!checkValue(cursor, listEnd, field, 0)) return false;
  }
  return true;
}
