import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalize } from "#src/payload/canonical.js";
import { isCanonical } from "#src/payload/canonical-check.js";
import { payloadFromBytes, payloadToJson } from "#src/payload/payload.js";
import { createRedactor } from "#src/payload/redaction.js";
import { hookPayloadType } from "#src/payload/schema.js";
import { everyPoint, payload, preModelCall } from "./payloads.js";
import { encodingOf, payloadModel } from "./random-messages.js";
import { type Bytes, block, bytes, entry, hex, int } from "./wire.js";

const none = { patterns: [], secrets: [] };

describe("redactor of texts", () => {
  it("should be inactive without patterns and secrets that count", () => {
    for (const sources of [none, { patterns: [], secrets: ["short", ""] }]) {
      const redactor = createRedactor(sources);
      expect(redactor.active).toBe(false);
      expect(redactor.text("short")).toBe("short");
      const made = payload(preModelCall);
      expect(redactor.payload(made)).toBe(made);
      expect(redactor.mayHide(made)).toBe(false);
    }
  });

  it.each<[string, string[], string[], string, string]>([
    ["matches of a pattern", ["sk-[a-z0-9]+"], [], "key sk-abc1, sk-2.", "key [redacted], [redacted]."],
    ["overlapping matches as one", ["abc", "cde"], [], "xabcdex", "x[redacted]x"],
    [
      "the longest of nested secrets",
      [],
      ["secret", "secret-longer"],
      "secret-longer, secret",
      "[redacted], [redacted]",
    ],
    ["each line of a secret", [], ["one line\r\nand two\nx"], "is: and two, x", "is: [redacted], x"],
    ["secrets that overlap themselves", [], ["ababab"], "abababab", "[redacted]"],
    ["secrets with characters that patterns treat as special", [], ["a.b*c(d"], "a.b*c(d axbxc", "[redacted] axbxc"],
    ["nothing for empty matches", ["x*"], [], "abxxc", "ab[redacted]c"],
    ["nothing for a pattern that only matches nothing", ["", "^", "$", "\\b"], [], "abc", "abc"],
    ["astral characters", ["\u{1F600}+"], [], "a\u{1F600}\u{1F600}b", "a[redacted]b"],
    [
      "a secret in the spelling of our messages",
      [],
      ["line one\nline two"],
      "said line one\\u{a}line two",
      "said [redacted]",
    ],
    ["a secret inside a JSON string", [], ['pass"word'], '{"a":"pass\\"word"}', '{"a":"[redacted]"}'],
    ["the beginning of a secret at a cut", [], ["0123456789abcdef"], "key 0123456789", "key [redacted]"],
    ["not the beginning of a secret elsewhere", [], ["0123456789abcdef"], "key 01234", "key 01234"],
    ["a mark only once", ["[a-z]+"], [], "[redacted] abc", "[redacted] [redacted]"],
  ])("should replace %s", (_, patterns, secrets, text, expected) => {
    const redactor = createRedactor({ patterns, secrets });
    expect(redactor.text(text)).toBe(expected);
    expect(redactor.text(expected)).toBe(expected);
  });

  it("should refuse an invalid pattern", () => {
    for (const pattern of ["(", "a{2000}", "(?=x)", "\\1"]) {
      expect(() => createRedactor({ patterns: [pattern], secrets: [] })).toThrow(
        expect.objectContaining({ code: "HL_CONFIG", message: `redact: ${JSON.stringify(pattern)} is no RE2 pattern` }),
      );
    }
  });

  it("should stay linear on a pattern that is none for backtracking engines", () => {
    expect(createRedactor({ patterns: ["(a+)+$"], secrets: [] }).text(`${"a".repeat(100_000)}!`)).toHaveLength(100_001);
  });

  it("should leave no secret in any text", () => {
    const secret = fc.string({ minLength: 6, maxLength: 8, unit: fc.constantFrom("a", "b", "\u{1F600}") });
    fc.assert(
      fc.property(
        fc.array(secret, { minLength: 1, maxLength: 3 }),
        fc.array(fc.oneof(secret, fc.constant("-"))),
        (secrets, parts) => {
          const redacted = createRedactor({ patterns: [], secrets }).text([...parts, ...secrets].join(""));
          for (const one of secrets) if (one.length >= 6) expect(redacted).not.toContain(one);
        },
      ),
    );
  });
});

describe("redactor of payloads", () => {
  const CANARY = "canary-5f3759df";
  const redactor = createRedactor({ patterns: ["tok_[0-9]+"], secrets: [CANARY] });

  function redacted(encoded: Bytes): Bytes {
    const made = redactor.payload(payloadFromBytes(encoded));
    expect(isCanonical(hookPayloadType(), made.bytes)).toBe(true);
    return made.bytes;
  }

  it("should hand back a payload in which nothing matches", () => {
    for (const input of everyPoint) {
      const made = payload(input);
      expect(redactor.payload(made)).toBe(made);
      expect(redactor.mayHide(made)).toBe(false);
    }
  });

  it("should redact strings at every depth", () => {
    const made = payload({
      preModelCall: {
        model: { provider: "acme", id: "tok_1" },
        messages: [
          {
            id: CANARY,
            content: [
              { text: { text: `before ${CANARY} after tok_22.` } },
              { toolUse: { arguments: { list: [{ deep: `x${CANARY}` }, 5, null], [CANARY]: true } } },
              { document: { filename: CANARY, data: Buffer.from(`text ${CANARY}`), mediaType: "text/plain" } },
            ],
          },
        ],
      },
    });
    expect(payloadToJson(redactor.payload(made))).toEqual({
      preModelCall: {
        model: { provider: "acme", id: "[redacted]" },
        messages: [
          {
            id: "[redacted]",
            content: [
              { text: { text: "before [redacted] after [redacted]." } },
              { toolUse: { arguments: { list: [{ deep: "x[redacted]" }, 5, null], "[redacted]": true } } },
              {
                document: {
                  filename: "[redacted]",
                  data: Buffer.from("text [redacted]").toString("base64"),
                  mediaType: "text/plain",
                },
              },
            ],
          },
        ],
      },
    });
    expect(redactor.mayHide(made)).toBe(true);
    expect(redactor.mayHide(redactor.payload(made))).toBe(true);
  });

  it("should tell keys apart that become equal, and sort them again", () => {
    const struct = (...entries: Bytes[]) => block(4, block(1, block(3, ...entries)));
    const value = (n: number) => block(3, String(n));
    expect(
      hex(
        redacted(
          struct(
            entry("tok_1", value(1)),
            entry("tok_2", value(2)),
            entry("tok_3", value(3)),
            entry("Z", value(4)),
            entry("[redacted]#2", value(5)),
            entry("a", value(6)),
          ),
        ),
      ),
    ).toBe(
      hex(
        struct(
          entry("Z", value(4)),
          entry("[redacted]", value(1)),
          entry("[redacted]#2", value(5)),
          entry("[redacted]#3", value(2)),
          entry("[redacted]#4", value(3)),
          entry("a", value(6)),
        ),
      ),
    );
  });

  it("should leave bytes alone that are no text, but for literal secrets", () => {
    const image = (...data: (readonly number[] | Bytes)[]) =>
      block(2, block(1, block(2, block(4, block(1, bytes(...data))))));
    expect(hex(redacted(image([0xff], Buffer.from("tok_1"))))).toBe(hex(image([0xff], Buffer.from("tok_1"))));
    expect(hex(redacted(image([0xff], Buffer.from(CANARY), [0xfe])))).toBe(
      hex(image([0xff], Buffer.from("[redacted]"), [0xfe])),
    );
  });

  it("should look into unknown fields, texts and messages alike", () => {
    const long = "y".repeat(200);
    expect(hex(redacted(bytes(block(8, block(99, `a tok_7`)), int(98, 5))))).toBe(
      hex(bytes(block(8, block(99, "a [redacted]")), int(98, 5))),
    );
    expect(hex(redacted(block(8, block(99, int(1, 5), block(2, block(3, `${long} tok_7`))))))).toBe(
      hex(block(8, block(99, int(1, 5), block(2, block(3, `${long} [redacted]`))))),
    );
  });

  it("should leave an unknown field byte for byte where nothing matches", () => {
    // Reads as a message with a length that is longer than it need be.
    const odd = block(8, block(99, bytes([0x0a, 0x81, 0x00, 0x61, 0x10, 0xff, 0x01])));
    expect(hex(redacted(odd))).toBe(hex(odd));
  });

  it("should leave no canary in any payload, canonical as ever", () => {
    const model = payloadModel(hookPayloadType(), { unknown: "everywhere", sayable: false });
    const letters = createRedactor({ patterns: ["[ab]"], secrets: [] });
    fc.assert(
      fc.property(model, fc.integer(), (given, seed) => {
        const made = payloadFromBytes(canonicalize(hookPayloadType(), encodingOf(given, seed)));
        const copy = letters.payload(made);
        expect(isCanonical(hookPayloadType(), copy.bytes)).toBe(true);
        expect(hex(letters.payload(copy).bytes)).toBe(hex(copy.bytes));
        const text = JSON.stringify(payloadToJson(copy)).replaceAll("[redacted]", "");
        const strings = [...text.matchAll(/"(?:text|sessionId|profile|provider|toolName)":"([^"]*)"/g)].map(
          (match) => match[1],
        );
        expect(strings.filter((one) => /[ab]/.test(one ?? ""))).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});

describe("redactor of JSON", () => {
  it("should redact strings and keys, and say nothing of the rest", () => {
    const redactor = createRedactor({ patterns: ["tok_[0-9]+"], secrets: [] });
    expect(redactor.json({ tok_1: ["tok_2", 5, null, true], tok_3: { a: "x tok_4" }, b: undefined })).toEqual({
      "[redacted]": ["[redacted]", 5, null, true],
      "[redacted]#2": { a: "x [redacted]" },
    });
  });
});
