import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalize } from "#src/payload/canonical.js";
import { readJson } from "#src/payload/json-text.js";
import { payloadFromBytes, payloadFromJson, payloadToJson } from "#src/payload/payload.js";
import { hookPayloadType } from "#src/payload/schema.js";
import { decodeCanonical } from "#src/payload/view-decode.js";
import { HookPayload } from "./naive.js";
import { everyPoint, payload } from "./payloads.js";
import { encodingOf, payloadModel } from "./random-messages.js";
import { block, bytes, double, entry, hex, int } from "./wire.js";

function refusal(text: string | Uint8Array): { code: string; message: string } {
  try {
    payloadFromJson(text);
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error("was taken");
}

describe("payload JSON", () => {
  it("should be written in lowerCamelCase with names of enums, and without defaults", () => {
    expect(everyPoint.map((input) => payloadToJson(payload(input)))).toEqual([
      { sessionStart: { sessionId: "s", profile: "default", parentSessionId: "", workingDirectory: "/w" } },
      {
        preModelCall: {
          messages: [
            { role: "ROLE_USER", content: [{ text: { text: "Fix the build." } }], id: "m1" },
            {
              role: "ROLE_ASSISTANT",
              content: [
                { thinking: { text: "hm", signature: "/wE=" } },
                {
                  toolUse: { id: "t1", name: "run", arguments: { command: "npm test", env: { CI: true }, retries: 2 } },
                },
              ],
              id: "m2",
              producedByModelId: "large",
            },
          ],
          model: { provider: "acme", id: "large" },
        },
      },
      {
        postModelResponse: {
          message: { role: "ROLE_ASSISTANT" },
          model: { name: "acme", category: "CATEGORY_MODEL", protocolVersion: 1 },
          usage: { inputTokens: "10", outputTokens: "1152921504606846976", cacheReadTokens: "0" },
          costUsd: 0.25,
        },
      },
      {
        preToolCall: {
          call: {
            id: "c1",
            toolName: "run",
            arguments: { a: [null, -0], b: 1 },
            callContext: { sessionId: "s", turnId: "t", workingDirectory: "/w" },
          },
          planItem: { id: "a" },
        },
      },
      expect.objectContaining({ planReady: expect.anything() }),
      {
        postToolCall: {
          call: { id: "c1" },
          error: { category: "TOOL_ERROR_CATEGORY_TIMEOUT", retryable: true, details: { after: 5 } },
        },
      },
      {
        postApply: {
          apply: {
            turnId: "t",
            items: [{ planItemId: "a", outcome: "APPLY_OUTCOME_APPLIED", toolResult: { payload: { ok: true } } }],
          },
        },
      },
      { sessionEnd: { sessionId: "s", status: "SESSION_STATUS_COMPLETED" } },
    ]);
  });

  it("should say what has no number in JSON as a string, and leave out what it does not know", () => {
    const made = payloadFromBytes(bytes(block(3, double(4, Number.NaN), int(99, 1)), int(98, 1)));
    expect(payloadToJson(made)).toEqual({ postModelResponse: { costUsd: "NaN" } });
    const struct = payloadFromBytes(block(4, block(1, block(3, entry("x", double(2, Number.NEGATIVE_INFINITY))))));
    expect(payloadToJson(struct)).toEqual({ preToolCall: { call: { arguments: { x: "-Infinity" } } } });
  });

  it("should keep a key __proto__ both ways", () => {
    const text = '{"preToolCall":{"call":{"arguments":{"__proto__":{"a":1}}}}}';
    expect(JSON.stringify(payloadToJson(payloadFromJson(text)))).toBe(text);
  });

  it.each<[string, string, string]>([
    [
      "snake_case names",
      '{"pre_tool_call":{"plan_item":{"call_id":"c"}}}',
      '{"preToolCall":{"planItem":{"callId":"c"}}}',
    ],
    ["numbers of enums", '{"sessionEnd":{"status":2}}', '{"sessionEnd":{"status":"SESSION_STATUS_COMPLETED"}}'],
    ["unknown numbers of enums", '{"sessionEnd":{"status":77}}', '{"sessionEnd":{"status":77}}'],
    [
      "null as absent",
      '{"sessionEnd":{"sessionId":null,"status":2},"planReady":null}',
      '{"sessionEnd":{"status":"SESSION_STATUS_COMPLETED"}}',
    ],
    [
      "int64 as number or text",
      '{"postModelResponse":{"usage":{"inputTokens":5,"outputTokens":"-9223372036854775808"}}}',
      '{"postModelResponse":{"usage":{"inputTokens":"5","outputTokens":"-9223372036854775808"}}}',
    ],
    ["doubles as text", '{"postModelResponse":{"costUsd":"Infinity"}}', '{"postModelResponse":{"costUsd":"Infinity"}}'],
    [
      "32-bit numbers as text",
      '{"postModelResponse":{"model":{"protocolVersion":"7"}}}',
      '{"postModelResponse":{"model":{"protocolVersion":7}}}',
    ],
    [
      "base64 of either alphabet",
      '{"postModelResponse":{"message":{"content":[{"thinking":{"signature":"_-8"}}]}}}',
      '{"postModelResponse":{"message":{"content":[{"thinking":{"signature":"/+8="}}]}}}',
    ],
    [
      "null inside plain data",
      '{"preToolCall":{"call":{"arguments":{"a":null,"b":[null]}}}}',
      '{"preToolCall":{"call":{"arguments":{"a":null,"b":[null]}}}}',
    ],
    [
      "white space and escapes",
      ' {\t"sessionEnd" :\r\n{"sessionId":"\\u00e9\\n\\ud83d\\ude00\\/"} } ',
      '{"sessionEnd":{"sessionId":"é\\n\u{1F600}/"}}',
    ],
  ])("should be read with %s", (_, text, out) => {
    expect(JSON.stringify(payloadToJson(payloadFromJson(text)))).toBe(out);
    expect(JSON.stringify(payloadToJson(payloadFromJson(Buffer.from(text))))).toBe(out);
  });

  it.each<[string, string, string]>([
    [
      "an unknown field",
      '{"preModelCall":{"messages":[{"rolle":1}]}}',
      '$.preModelCall.messages[0] has no property "rolle"',
    ],
    ["an unknown variant", '{"contextAssemble":{}}', '$ has no property "contextAssemble"'],
    [
      "two variants",
      '{"sessionEnd":{},"sessionStart":{}}',
      "$ has both sessionEnd and sessionStart, of which one may be set",
    ],
    [
      "two oneof members",
      '{"postToolCall":{"result":{},"error":{}}}',
      "$.postToolCall has both result and error, of which one may be set",
    ],
    ["no variant", "{}", "payload sets no hook point"],
    [
      "an unknown enum name",
      '{"preModelCall":{"messages":[{"role":"ROLE_NOBODY"}]}}',
      "$.preModelCall.messages[0].role is no name of pluggableharness.content.v1.Role",
    ],
    [
      "the short enum name",
      '{"sessionEnd":{"status":"completed"}}',
      "$.sessionEnd.status is no name of pluggableharness.session.v1.SessionStatus",
    ],
    ["both names of a field", '{"sessionEnd":{"sessionId":"a","session_id":"b"}}', "$.sessionEnd has sessionId twice"],
    [
      "a duplicate key",
      '{"sessionEnd":{"status":1,"status":1}}',
      "$.sessionEnd.status is there twice (line 1, column 35)",
    ],
    [
      "a duplicate key in disguise",
      '{"preToolCall":{"call":{"arguments":{"a":1,\n"\\u0061":2}}}}',
      "$.preToolCall.call.arguments.a is there twice (line 2, column 9)",
    ],
    [
      "a duplicate __proto__",
      '{"preToolCall":{"call":{"arguments":{"__proto__":1,"__proto__":2}}}}',
      "$.preToolCall.call.arguments.__proto__ is there twice (line 1, column 63)",
    ],
    ["a number for a string", '{"sessionEnd":{"sessionId":1}}', "$.sessionEnd.sessionId is a number, not a string"],
    [
      "an unsafe int64",
      '{"postModelResponse":{"usage":{"inputTokens":9007199254740993}}}',
      "$.postModelResponse.usage.inputTokens is a number, not a bigint or a safe whole number",
    ],
    [
      "a fraction of a token",
      '{"postModelResponse":{"usage":{"inputTokens":"1.5"}}}',
      "$.postModelResponse.usage.inputTokens is a string, not a bigint or a safe whole number",
    ],
    [
      "no base64",
      '{"postModelResponse":{"message":{"content":[{"image":{"data":"a"}}]}}}',
      "$.postModelResponse.message.content[0].image.data is a string, not bytes",
    ],
    ["a lone surrogate", '{"sessionEnd":{"sessionId":"\\ud800"}}', "$.sessionEnd.sessionId has a lone surrogate"],
    ["null in a list", '{"preModelCall":{"messages":[null]}}', "$.preModelCall.messages[0] is null, not an object"],
    ["a list", "[]", "$ is an array, not an object"],
    ["nothing", "", "$ is no JSON: a value is expected (line 1, column 1)"],
    ["a trailing comma", '{"sessionEnd":{},}', "$ is no JSON: a key in quotes is expected (line 1, column 18)"],
    ["two values", '{"sessionEnd":{}} {}', "$ has something behind its end (line 1, column 19)"],
    ["a comment", '{"sessionEnd":/**/{}}', "$.sessionEnd is no JSON: a value is expected (line 1, column 15)"],
    ["an open string", '{"sessionEnd', "$ is no JSON: a string has no end (line 1, column 13)"],
    ["a raw control character", '{"a\tb":1}', "$ is no JSON: a control character in a string (line 1, column 4)"],
    ["an unknown escape", '{"\\x":1}', "$ is no JSON: an unknown escape (line 1, column 3)"],
    [
      "NaN",
      '{"postModelResponse":{"costUsd":NaN}}',
      "$.postModelResponse.costUsd is no JSON: a value is expected (line 1, column 33)",
    ],
    [
      "a leading zero",
      '{"postModelResponse":{"costUsd":01}}',
      '$.postModelResponse is no JSON: "," or "}" is expected (line 1, column 34)',
    ],
    [
      "a number beyond a double",
      '{"postModelResponse":{"costUsd":1e999}}',
      "$.postModelResponse.costUsd is a number beyond what a double holds (line 1, column 33)",
    ],
    ["a byte order mark", "\ufeff{}", "$ is no JSON: a value is expected (line 1, column 1)"],
    [
      "a key that is no name",
      '{"preToolCall":{"call":{"arguments":{"a b":{"c":"\\ud800"}}}}}',
      '$.preToolCall.call.arguments["a b"].c has a lone surrogate',
    ],
  ])("should refuse %s, naming the path", (_, text, message) => {
    expect(refusal(text)).toMatchObject({ name: "HookledgerError", code: "HL_PAYLOAD", message });
  });

  it("should refuse bytes that are not UTF-8", () => {
    expect(refusal(Buffer.from([0x22, 0xff, 0x22]))).toMatchObject({
      code: "HL_PAYLOAD",
      message: "payload is not valid UTF-8",
    });
  });

  it("should count depth in messages, plain data included", () => {
    const objects = (count: number) =>
      `{"preToolCall":{"call":{"arguments":${'{"a":'.repeat(count)}1${"}".repeat(count)}}}}`;
    // HookPayload, PreToolCallPayload, ToolCall, then Struct and Value for each object.
    expect(payloadFromJson(objects(48)).point).toBe("pre-tool-call");
    expect(refusal(objects(49)).code).toBe("HL_LIMIT_DEPTH");
    expect(refusal(objects(100_000)).code).toBe("HL_LIMIT_DEPTH");
    expect(refusal("[".repeat(1_000_000)).code).toBe("HL_LIMIT_DEPTH");
  });

  it("should refuse what is too large, before reading it", () => {
    expect(refusal(" ".repeat(64 * 1024 * 1024 + 1)).code).toBe("HL_LIMIT_PAYLOAD");
    expect(refusal(new Uint8Array(64 * 1024 * 1024 + 1)).code).toBe("HL_LIMIT_PAYLOAD");
  });

  it("should come back as the same payload, and agree with protobufjs", () => {
    const model = payloadModel(hookPayloadType(), { unknown: "nowhere", sayable: true });
    fc.assert(
      fc.property(model, fc.integer(), (given, seed) => {
        const made = payloadFromBytes(canonicalize(hookPayloadType(), encodingOf(given, seed)));
        const json = payloadToJson(made);
        expect(payloadFromJson(JSON.stringify(json)).bytes).toEqual(made.bytes);
        const theirs = HookPayload.toObject(HookPayload.decode(made.bytes), {
          longs: String,
          enums: String,
          bytes: String,
        });
        expect(plain(json)).toEqual(plain(withoutStructs(theirs)));
      }),
      { numRuns: 300 },
    );
  });

  it("should read any JSON text as JSON.parse does", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(readJson(text, 300)).toEqual(JSON.parse(text));
      }),
    );
  });

  it("should refuse or take any text, never crash", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("{", "}", "[", "]", '"', ",", ":", "1", "-", "e", "\\", "u", "true", " ") }),
        (text) => {
          let ours: unknown = "refused";
          let theirs: unknown = "refused";
          try {
            ours = readJson(text, 100);
          } catch {
            /* compared below */
          }
          try {
            theirs = JSON.parse(text);
          } catch {
            /* compared below */
          }
          // Only a key that is there twice is refused by us alone.
          if (ours !== "refused") expect(ours).toEqual(theirs);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("should show the same in the view and in JSON", () => {
    const made = payload(everyPoint[4]);
    expect(decodeCanonical(hookPayloadType(), made.bytes)).toEqual({ planReady: made.view });
    expect(hex(payloadFromJson(JSON.stringify(payloadToJson(made))).bytes)).toBe(hex(made.bytes));
  });
});

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** protobufjs shows a Struct as its fields and the kinds of their values. */
function withoutStructs(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutStructs);
  if (typeof value !== "object" || value === null) return value;
  const object = value as Record<string, unknown>;
  const out: Record<string, unknown> = {};
  for (const [key, inner] of Object.entries(object)) {
    if (isUnsaid(inner)) continue;
    const isStruct = ["arguments", "payload", "details", "input", "args"].includes(key);
    Object.defineProperty(out, key, { value: isStruct ? structValue(inner) : withoutStructs(inner), enumerable: true });
  }
  return out;
}

function isUnsaid(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function structValue(struct: unknown): unknown {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries((struct as { fields?: object }).fields ?? {})) {
    Object.defineProperty(out, key, { value: kindValue(value), enumerable: true });
  }
  return out;
}

function kindValue(value: Record<string, unknown>): unknown {
  if (value["structValue"] !== undefined) return structValue(value["structValue"]);
  if (value["listValue"] !== undefined) {
    return ((value["listValue"] as { values?: Record<string, unknown>[] }).values ?? []).map(kindValue);
  }
  return value["stringValue"] ?? value["numberValue"] ?? value["boolValue"] ?? null;
}
