import { describe, expect, it } from "vitest";
import { canonicalize } from "#src/payload/canonical.js";
import { isCanonical } from "#src/payload/canonical-check.js";
import { messageType } from "#src/payload/schema.js";
import { type Bytes, block, bytes, double, entry, fixed32, hex, int, tag, varint } from "./wire.js";

const MESSAGE = "pluggableharness.content.v1.Message";
const BLOCK = "pluggableharness.content.v1.ContentBlock";
const USAGE = "pluggableharness.model.v1.Usage";
const STRUCT = "google.protobuf.Struct";
const RESPONSE = "pluggableharness.hook.v1.PostModelResponsePayload";
const HUNK = "pluggableharness.render.v1.DiffHunk";
const TOOL_RESULT = "pluggableharness.content.v1.ToolResultBlock";
const DESCRIBED = "hookledger.v1.DescribeResponse";

const aNull = int(1, 0);
const NAN = [0, 0, 0, 0, 0, 0, 0xf8, 0x7f];

describe("canonicalize", () => {
  it.each<[string, string, Bytes, Bytes]>([
    ["sorts fields", MESSAGE, bytes(block(3, "id"), int(1, 2)), bytes(int(1, 2), block(3, "id"))],
    [
      "sorts unknown fields among known ones",
      MESSAGE,
      bytes(int(99, 1), block(3, "id"), fixed32(77, 5), int(1, 1)),
      bytes(int(1, 1), block(3, "id"), fixed32(77, 5), int(99, 1)),
    ],
    [
      "keeps the order of unknown fields of one number",
      MESSAGE,
      bytes(int(99, 2), block(3, "x"), int(99, 1)),
      bytes(block(3, "x"), int(99, 2), int(99, 1)),
    ],
    ["drops defaults of fields without presence", MESSAGE, bytes(int(1, 0), block(3, "")), bytes()],
    ["keeps explicit zeros of optional fields", USAGE, bytes(int(1, 0), int(3, 0)), int(3, 0)],
    ["keeps explicit zeros of oneof members", STRUCT, entry("a", int(4, 0)), entry("a", int(4, 0))],
    ["keeps an empty message of a oneof", BLOCK, block(1), block(1)],
    ["takes the last of a scalar", MESSAGE, bytes(block(3, "a"), block(3, "b")), block(3, "b")],
    ["takes the last of a scalar even if it is the default", MESSAGE, bytes(block(3, "a"), block(3, "")), bytes()],
    [
      "takes the last member of a oneof",
      BLOCK,
      bytes(block(1, block(1, "a")), block(5, block(1, "b"))),
      block(5, block(1, "b")),
    ],
    [
      "merges a oneof member with itself",
      BLOCK,
      bytes(block(2, block(1, "a")), block(2, block(2, "b"))),
      block(2, block(1, "a"), block(2, "b")),
    ],
    [
      "does not merge a oneof member across another",
      BLOCK,
      bytes(block(2, block(1, "a")), block(1), block(2, block(2, "b"))),
      block(2, block(2, "b")),
    ],
    [
      "merges a message that is sent twice",
      RESPONSE,
      bytes(block(3, int(1, 5)), block(3, int(2, 6))),
      block(3, int(1, 5), int(2, 6)),
    ],
    [
      "keeps every element of a list",
      TOOL_RESULT,
      bytes(block(2), block(1, "t"), block(2, block(1))),
      bytes(block(1, "t"), block(2), block(2, block(1))),
    ],
    [
      "shortens varints, lengths and tags",
      MESSAGE,
      bytes(tag(1, 0, 2), varint(1, 3), tag(3, 2), varint(1, 1), [0x61]),
      bytes(int(1, 1), block(3, "a")),
    ],
    ["shortens varints of unknown fields", MESSAGE, bytes(tag(99, 0), varint(7, 4)), int(99, 7)],
    ["reads a bool from any varint", TOOL_RESULT, int(3, 2n ** 40n), int(3, 1)],
    ["cuts an int32 to 32 bits", HUNK, int(1, 2n ** 32n - 1n), int(1, -1)],
    [
      "writes a negative int32 with ten bytes",
      HUNK,
      int(1, -1),
      bytes([0x08], new Array<number>(9).fill(0xff), [0x01]),
    ],
    ["makes every NaN the same", RESPONSE, bytes(tag(4, 1), [1, 0, 0, 0, 0, 0, 0xf8, 0xff]), bytes(tag(4, 1), NAN)],
    ["keeps -0 where 0 would go", RESPONSE, double(4, -0), double(4, -0)],
    ["drops 0", RESPONSE, double(4, 0), bytes()],
    ["keeps infinity", RESPONSE, double(4, Number.POSITIVE_INFINITY), double(4, Number.POSITIVE_INFINITY)],
    [
      "sorts map entries by UTF-8",
      STRUCT,
      bytes(entry("\u{1F600}", aNull), entry("\u{FFFD}", aNull), entry("a", aNull), entry("", aNull)),
      bytes(entry("", aNull), entry("a", aNull), entry("\u{FFFD}", aNull), entry("\u{1F600}", aNull)),
    ],
    ["takes the last of equal keys", STRUCT, bytes(entry("k", int(4, 1)), entry("k", aNull)), entry("k", aNull)],
    ["writes a missing key and value", STRUCT, block(1), entry("")],
    ["reads an entry in any order", STRUCT, block(1, block(2, int(4, 1)), block(1, "k")), entry("k", int(4, 1))],
    [
      "keeps what it does not know inside entries and values",
      STRUCT,
      block(1, int(9, 1), block(2, int(88, 1), int(4, 1)), block(1, "k")),
      block(1, block(1, "k"), block(2, int(4, 1), int(88, 1)), int(9, 1)),
    ],
    [
      "packs a list of enums",
      DESCRIBED,
      bytes(int(4, 1), int(4, 0), block(4, varint(3), varint(2, 1))),
      block(4, bytes([1, 0, 3, 2])),
    ],
    ["drops an empty packed list", DESCRIBED, block(4), bytes()],
    ["keeps an enum number without a name", MESSAGE, int(1, 0x7fffffff), int(1, 0x7fffffff)],
  ])("should encode a message so that it %s", (_, name, encoded, expected) => {
    const type = messageType(name);
    expect(hex(canonicalize(type, encoded))).toBe(hex(expected));
    expect(isCanonical(type, expected)).toBe(true);
    expect(isCanonical(type, encoded)).toBe(hex(encoded) === hex(expected));
  });

  it("should return the same object when there is nothing to do", () => {
    const encoded = bytes(int(1, 1), block(3, "a"));
    expect(canonicalize(messageType(MESSAGE), encoded)).toBe(encoded);
  });

  it.each<[string, string, Bytes, string]>([
    ["a truncated varint", MESSAGE, bytes([0x08, 0x80]), "role is truncated or malformed at byte 1"],
    ["a truncated string", MESSAGE, bytes([0x1a, 0x02, 0x61]), "id is truncated or malformed at byte 1"],
    ["a truncated double", RESPONSE, bytes([0x21, 0, 0]), "costUsd is truncated or malformed at byte 1"],
    ["a truncated unknown field", MESSAGE, bytes(tag(99, 5), [1]), "field 99 is truncated or malformed at byte 2"],
    [
      "a varint over 64 bits",
      USAGE,
      bytes([0x08], new Array<number>(9).fill(0xff), [0x02]),
      "inputTokens is truncated or malformed at byte 1",
    ],
    ["a length beyond 32 bits", MESSAGE, bytes([0x1a], varint(2n ** 40n)), "id is truncated or malformed at byte 1"],
    ["field number 0", MESSAGE, bytes([0x02, 0x00]), "payload is no field tag at byte 0"],
    ["a field number beyond 2^29", MESSAGE, bytes(varint(2n ** 33n), [0]), "payload is no field tag at byte 0"],
    ["invalid UTF-8", MESSAGE, bytes([0x1a, 0x01, 0xff]), "id is not valid UTF-8 at byte 2"],
    ["an encoded surrogate", MESSAGE, bytes([0x1a, 0x03, 0xed, 0xa0, 0x80]), "id is not valid UTF-8 at byte 2"],
    [
      "invalid UTF-8 in a value that gives way",
      MESSAGE,
      bytes([0x1a, 0x01, 0xff], block(3, "a")),
      "id is not valid UTF-8 at byte 2",
    ],
    ["invalid UTF-8 in a key", STRUCT, block(1, bytes([0x0a, 0x01, 0xff])), "key is not valid UTF-8 at byte 4"],
    ["a group", MESSAGE, bytes(tag(99, 3), tag(99, 4)), "field 99 is a group at byte 2"],
    ["the end of a group", MESSAGE, bytes([0x1c]), "id has wire type 4 at byte 1"],
    ["wire type 6", MESSAGE, bytes(tag(99, 6)), "field 99 is truncated or malformed at byte 2"],
    ["an enum above 2^31 - 1", MESSAGE, int(1, 2 ** 31), "role is no enum number from 0 to 2^31 - 1 at byte 1"],
    ["a negative enum", MESSAGE, int(1, -1), "role is no enum number from 0 to 2^31 - 1 at byte 1"],
    ["another wire type", MESSAGE, block(1, "x"), "role has wire type 2 at byte 1"],
    ["a packed string", MESSAGE, int(3, 1), "id has wire type 0 at byte 1"],
    [
      "a fault deep inside",
      MESSAGE,
      block(2, block(3, block(2, block(1, bytes([0x0a, 1, 0xff]))))),
      "content[0].toolResult.content[0].text.text is not valid UTF-8 at byte 10",
    ],
    [
      "a fault in a oneof member that gives way",
      BLOCK,
      bytes(block(1, bytes([0x0a, 1, 0xff])), block(5)),
      "text.text is not valid UTF-8 at byte 4",
    ],
    [
      "a fault in a map value that gives way",
      STRUCT,
      bytes(entry("k", bytes([0x1a, 1, 0xff])), entry("k")),
      "value.stringValue is not valid UTF-8 at byte 9",
    ],
  ])("should refuse %s", (_, name, encoded, message) => {
    expect(isCanonical(messageType(name), encoded)).toBe(false);
    expect(() => canonicalize(messageType(name), encoded)).toThrow(
      expect.objectContaining({ code: "HL_PAYLOAD", message }),
    );
  });

  it("should take 100 messages inside each other and refuse 101", () => {
    const nested = (count: number): Bytes => {
      let inner: Bytes = bytes();
      // ContentBlock and ToolResultBlock take turns.
      for (let i = count; i > 1; i--) inner = block(i % 2 === 0 ? 3 : 2, inner);
      return inner;
    };
    const type = messageType(BLOCK);
    const most = nested(100);
    expect(canonicalize(type, most)).toBe(most);
    expect(() => canonicalize(type, nested(101))).toThrow(expect.objectContaining({ code: "HL_LIMIT_DEPTH" }));
    expect(() => canonicalize(type, nested(5000))).toThrow(expect.objectContaining({ code: "HL_LIMIT_DEPTH" }));
  });

  it("should count a list inside plain data as two messages, and a map entry as none", () => {
    const lists = (count: number): Bytes => {
      let value: Bytes = bytes();
      for (let i = 0; i < count; i++) value = block(6, block(1, value));
      return entry("k", value);
    };
    const type = messageType(STRUCT);
    // Struct 1, Value 2, then ListValue and Value for each list.
    expect(isCanonical(type, lists(49))).toBe(true);
    expect(() => canonicalize(type, lists(50))).toThrow(expect.objectContaining({ code: "HL_LIMIT_DEPTH" }));
  });

  it("should take time in proportion when a message comes in many pieces", () => {
    const pieces = bytes(
      ...Array.from({ length: 100_000 }, (_, i) => block(3, i % 2 === 0 ? int(1, i) : block(99, "x"))),
    );
    const canonical = canonicalize(messageType(RESPONSE), pieces);
    expect(canonical.length).toBeGreaterThan(200_000);
    expect(isCanonical(messageType(RESPONSE), canonical)).toBe(true);
  });
});
