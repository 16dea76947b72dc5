import { describe, expect, it } from "vitest";
import { canonicalize } from "#src/payload/canonical.js";
import type { MessageType } from "#src/payload/descriptor.js";
import { ViewError } from "#src/payload/encode.js";
import { UNKNOWN_FIELDS } from "#src/payload/messages.js";
import { messageType } from "#src/payload/schema.js";
import { encodeView } from "#src/payload/view.js";
import { decodeCanonical } from "#src/payload/view-decode.js";
import { type Bytes, block, bytes, double, entry, hex, int, tag } from "./wire.js";

const MESSAGE = "pluggableharness.content.v1.Message";
const BLOCK = "pluggableharness.content.v1.ContentBlock";
const USAGE = "pluggableharness.model.v1.Usage";
const STRUCT = "google.protobuf.Struct";
const IMAGE = "pluggableharness.content.v1.ImageBlock";
const HUNK = "pluggableharness.render.v1.DiffHunk";
const PRODUCER = "pluggableharness.common.v1.ProducerRef";
const RESULT = "hookledger.v1.DispatchResult";
const RESPONSE = "pluggableharness.hook.v1.PostModelResponsePayload";

function view(name: string, ...encoded: readonly Bytes[]): Record<PropertyKey, unknown> {
  return { ...decodeView(messageType(name), bytes(...encoded)) };
}

function decodeView(type: MessageType, encoded: Uint8Array): object {
  return decodeCanonical(type, canonicalize(type, encoded));
}

describe("a view", () => {
  it("should name enums, show defaults, and leave out what is absent", () => {
    expect(view(MESSAGE, int(1, 2))).toEqual({ role: "ROLE_ASSISTANT", content: [], id: "" });
    expect(view(MESSAGE)).toEqual({ role: "ROLE_UNSPECIFIED", content: [], id: "" });
    expect(view(MESSAGE, int(1, 77), block(4, ""))).toEqual({ role: 77, content: [], id: "", producedByModelId: "" });
    expect(view(RESPONSE)).toEqual({ costUsd: 0 });
    expect(view(HUNK, int(1, -5))).toEqual({ oldStart: -5, oldLines: 0, newStart: 0, newLines: 0, lines: [] });
    expect(view(PRODUCER, int(5, 2 ** 32 - 1))).toMatchObject({ protocolVersion: 2 ** 32 - 1 });
    expect(view(RESULT, int(5, 1))).toMatchObject({ allowed: true, status: "STATUS_UNSPECIFIED", hookErrors: [] });
  });

  it("should show int64 as bigint", () => {
    expect(view(USAGE, int(1, -1), int(2, 2n ** 63n - 1n), int(3, 0))).toEqual({
      inputTokens: -1n,
      outputTokens: 2n ** 63n - 1n,
      cacheReadTokens: 0n,
    });
  });

  it("should show the set member of a oneof only", () => {
    expect(view(BLOCK, block(1, block(1, "hi")))).toEqual({ text: { text: "hi" } });
    expect(view(BLOCK)).toEqual({});
  });

  it("should show plain data as plain data", () => {
    const list = block(6, block(1, int(4, 1)), block(1, int(1, 0)), block(1, double(2, -0)));
    const inner = block(5, entry("x", block(3, "y")));
    expect(view(STRUCT, entry("list", list), entry("object", inner), entry("none"))).toEqual({
      list: [true, null, -0],
      none: null,
      object: { x: "y" },
    });
  });

  it("should keep a key __proto__ as a key", () => {
    const shown = decodeView(messageType(STRUCT), entry("__proto__", block(5, entry("polluted", int(4, 1)))));
    expect(Object.keys(shown)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(shown)).toBe(Object.prototype);
    expect("polluted" in shown).toBe(false);
    expect(hex(encodeView(messageType(STRUCT), shown))).toBe(
      hex(entry("__proto__", block(5, entry("polluted", int(4, 1))))),
    );
  });

  it("should be frozen at every depth", () => {
    const shown = decodeView(
      messageType(MESSAGE),
      block(2, block(2, block(3, entry("a", block(6, block(1, int(4, 1))))))),
    );
    const check = (value: unknown): void => {
      if (typeof value !== "object" || value === null) return;
      expect(Object.isFrozen(value)).toBe(true);
      Object.values(value).forEach(check);
    };
    check(shown);
    expect(shown).toEqual({
      role: "ROLE_UNSPECIFIED",
      id: "",
      content: [{ toolUse: { id: "", name: "", arguments: { a: [true] } } }],
    });
  });

  it("should copy bytes at every access, and when spread", () => {
    const shown = decodeView(messageType(IMAGE), bytes(block(1, bytes([1, 2])))) as { data: Uint8Array };
    const first = shown.data;
    first[0] = 9;
    expect([...shown.data]).toEqual([1, 2]);
    const { data } = { ...shown };
    data[0] = 9;
    expect([...shown.data]).toEqual([1, 2]);
    expect(shown.data.buffer.byteLength).toBe(2);
    expect((decodeView(messageType(IMAGE), bytes()) as { data: Uint8Array }).data).toEqual(new Uint8Array());
  });

  it("should carry unknown fields at every depth, through a spread, as copies", () => {
    const type = messageType(MESSAGE);
    const encoded = bytes(block(2, block(1, int(77, 1)), block(88, "x")), block(99, "y"));
    const shown = decodeView(type, encoded) as Record<PropertyKey, unknown>;
    expect(hex(shown[UNKNOWN_FIELDS] as Bytes)).toBe(hex(block(99, "y")));
    (shown[UNKNOWN_FIELDS] as Bytes)[0] = 0;
    const content = (shown["content"] as Record<PropertyKey, unknown>[]).map((one) => ({
      ...one,
      text: { ...(one["text"] as object) },
    }));
    expect(hex(encodeView(type, { ...shown, content }))).toBe(hex(encoded));
  });

  it("should keep what plain data cannot show while it is returned as it came", () => {
    const type = messageType(BLOCK);
    const struct = bytes(entry("a", block(3, "x"), int(99, 7)), entry("b", block(6, block(1), int(50, 1))));
    const encoded = block(2, block(1, "id"), block(3, struct));
    const shown = decodeView(type, encoded) as { toolUse: { arguments: object } };
    expect(hex(encodeView(type, shown))).toBe(hex(encoded));
    expect(hex(encodeView(type, { toolUse: { id: "id", arguments: shown.toolUse.arguments } }))).toBe(hex(encoded));
    const rewritten = encodeView(type, { toolUse: { id: "id", arguments: { ...shown.toolUse.arguments } } });
    expect(hex(rewritten)).not.toBe(hex(encoded));
  });
});

describe("encodeView", () => {
  const encode = (name: string, value: unknown) => encodeView(messageType(name), value);

  it("should encode canonically, whatever the order of properties", () => {
    expect(hex(encode(MESSAGE, { id: "m", role: "ROLE_USER" }))).toBe(hex(bytes(int(1, 1), block(3, "m"))));
    expect(hex(encode(STRUCT, { "\u{1F600}": null, "\u{FFFD}": 1, a: [true] }))).toBe(
      hex(
        bytes(
          entry("a", block(6, block(1, int(4, 1)))),
          entry("\u{FFFD}", double(2, 1)),
          entry("\u{1F600}", int(1, 0)),
        ),
      ),
    );
  });

  it("should take undefined for absent, safe numbers for int64, and keep explicit zeros", () => {
    expect(hex(encode(USAGE, { inputTokens: 5, outputTokens: undefined, cacheReadTokens: 0n }))).toBe(
      hex(bytes(int(1, 5), int(3, 0))),
    );
    expect(hex(encode(MESSAGE, { role: 77 }))).toBe(hex(int(1, 77)));
  });

  it("should read every property once", () => {
    const reads = new Map<PropertyKey, number>();
    const watched = <T extends object>(value: T): T =>
      new Proxy(value, {
        get(target, key) {
          reads.set(key, (reads.get(key) ?? 0) + 1);
          return Reflect.get(target, key);
        },
      });
    const text = watched({ text: "a" });
    const message = watched({
      role: "ROLE_USER",
      content: watched([watched({ toolUse: watched({ arguments: watched({ key: "v" }) }) }), { text }]),
    });
    encode(MESSAGE, message);
    reads.delete("text");
    expect([...reads.values()].every((count) => count === 1)).toBe(true);
    expect(reads.get("key")).toBe(1);
  });

  it("should let through what reading throws", () => {
    const thrown = new Error("mine");
    const getter = {
      get role(): string {
        throw thrown;
      },
    };
    expect(() => encode(MESSAGE, getter)).toThrow(thrown);
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    expect(() => encode(MESSAGE, { content: [revoked.proxy] })).toThrow(TypeError);
  });

  it("should not trust what a subclass says of its bytes", () => {
    class Liar extends Uint8Array {
      override get length(): number {
        return 1000;
      }
      override subarray(): never {
        throw new Error("asked");
      }
    }
    expect(hex(encode(IMAGE, { data: new Liar([1, 2, 3]) }))).toBe(hex(block(1, bytes([1, 2, 3]))));
  });

  const cyclic: Record<string, unknown> = {};
  cyclic["self"] = cyclic;
  let deep: unknown = null;
  for (let i = 0; i < 60; i++) deep = { deep };

  it.each<[string, string, unknown, string]>([
    ["no object", MESSAGE, "text", "payload is a string, not an object"],
    ["null", MESSAGE, null, "payload is null, not an object"],
    [
      "a class instance",
      MESSAGE,
      new (class Own {
        role = "ROLE_USER";
      })(),
      "payload is an object that is not plain, not an object",
    ],
    ["an unknown property", MESSAGE, { role: "ROLE_USER", rolle: 1 }, 'payload has no property "rolle"'],
    ["the proto name", MESSAGE, { produced_by_provider: "x" }, 'payload has no property "produced_by_provider"'],
    ["an own __proto__", MESSAGE, JSON.parse('{"__proto__":{}}'), 'payload has no property "__proto__"'],
    [
      "an unknown property inside",
      MESSAGE,
      { content: [{}, { text: { txt: "" } }] },
      'content[1].text has no property "txt"',
    ],
    ["a string for a list", MESSAGE, { content: "x" }, "content is a string, not an array"],
    ["an object for a list", MESSAGE, { content: { 0: {}, length: 1 } }, "content is an object, not an array"],
    ["a hole in a list", MESSAGE, { content: new Array(2) }, "content[1] is nothing, not an object"],
    ["null for a string", MESSAGE, { id: null }, "id is null, not a string"],
    ["a String object", MESSAGE, { id: Object("x") }, "id is an object that is not plain, not a string"],
    ["a lone surrogate", MESSAGE, { id: "\ud800" }, "id has a lone surrogate"],
    ["an enum name of none", MESSAGE, { role: "USER" }, "role is no name of pluggableharness.content.v1.Role"],
    [
      "an enum out of range",
      MESSAGE,
      { role: 2 ** 31 },
      "role is a number, but not a name of pluggableharness.content.v1.Role",
    ],
    ["a boolean enum", MESSAGE, { role: true }, "role is a boolean, not a name of pluggableharness.content.v1.Role"],
    ["an int32 out of range", HUNK, { oldStart: 2 ** 31 }, "oldStart is a number, but not a whole number of 32 bits"],
    ["a fraction", HUNK, { oldStart: 1.5 }, "oldStart is a number, but not a whole number of 32 bits"],
    ["NaN for an integer", HUNK, { oldStart: Number.NaN }, "oldStart is a number, but not a whole number of 32 bits"],
    [
      "a negative uint32",
      PRODUCER,
      { protocolVersion: -1 },
      "protocolVersion is a number, but not a whole number of 32 bits, unsigned",
    ],
    [
      "an unsafe int64",
      USAGE,
      { inputTokens: 2 ** 53 },
      "inputTokens is a number, not a bigint or a safe whole number",
    ],
    ["an int64 out of range", USAGE, { inputTokens: 2n ** 63n }, "inputTokens does not fit into 64 bits"],
    ["a string for a double", RESPONSE, { costUsd: "1" }, "costUsd is a string, not a number"],
    ["a number for a bool", RESULT, { allowed: 1 }, "allowed is a number, not a boolean"],
    ["a list for bytes", IMAGE, { data: [1, 2] }, "data is an array, not bytes"],
    ["two oneof members", BLOCK, { text: {}, image: {} }, "payload has both text and image, of which one may be set"],
    ["undefined in plain data", STRUCT, { a: undefined }, "* is nothing, not plain data"],
    ["a function in plain data", STRUCT, { a: [() => 1] }, "*[0] is a function, not plain data"],
    ["a bigint in plain data", STRUCT, { a: 1n }, "* is a bigint, not plain data"],
    ["a Date in plain data", STRUCT, { a: new Date(0) }, "* is an object that is not plain, not plain data"],
    ["a Map in plain data", STRUCT, { a: new Map() }, "* is an object that is not plain, not plain data"],
    ["a key with a lone surrogate", STRUCT, { "\ud800": 1 }, "payload has a key with a lone surrogate"],
    [
      "unknown fields that are known",
      MESSAGE,
      { [UNKNOWN_FIELDS]: block(3, "id") },
      "payload has field 3 among its unknown fields",
    ],
    [
      "unknown fields that are garbage",
      MESSAGE,
      { [UNKNOWN_FIELDS]: bytes([0xff]) },
      "payload has unknown fields that are no valid encoding",
    ],
    [
      "an unknown group",
      MESSAGE,
      { [UNKNOWN_FIELDS]: tag(99, 3) },
      "payload has unknown fields that are no valid encoding",
    ],
    [
      "unknown fields that are no bytes",
      MESSAGE,
      { [UNKNOWN_FIELDS]: "x" },
      "payload has unknown fields that are a string, not bytes",
    ],
  ])("should refuse %s", (_, name, value, message) => {
    expect(() => encode(name, value)).toThrow(ViewError);
    expect(() => encode(name, value)).toThrow(expect.objectContaining({ message, code: "HL_PAYLOAD" }));
  });

  it.each([
    ["a cycle", cyclic],
    ["60 objects inside each other", deep],
  ])("should refuse %s", (_, value) => {
    expect(() => encode(STRUCT, value)).toThrow(expect.objectContaining({ name: "ViewError", code: "HL_LIMIT_DEPTH" }));
  });

  it("should stop at 64 MiB, also where shared parts multiply", () => {
    let bomb: unknown = "x".repeat(1000);
    for (let i = 0; i < 30; i++) bomb = [bomb, bomb];
    expect(() => encode(STRUCT, { bomb })).toThrow(expect.objectContaining({ code: "HL_LIMIT_PAYLOAD" }));
  });

  it("should refuse a source that is put too deep", () => {
    const lossy = decodeView(messageType(STRUCT), entry("a", block(5, entry("b")))) as Record<string, unknown>;
    let value: unknown = lossy;
    for (let i = 0; i < 48; i++) value = [value];
    expect(() => encode(STRUCT, { value })).toThrow(expect.objectContaining({ code: "HL_LIMIT_DEPTH" }));
  });
});
