import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HookMode } from "#src/core/events.js";
import { HOOK_POINTS } from "#src/core/points.js";
import { admitResponse, encodeDispatchRequest } from "#src/payload/admission.js";
import type { PreModelCallPayload } from "#src/payload/messages.js";
import { payloadFromBytes } from "#src/payload/payload.js";
import { root } from "./naive.js";
import { everyPoint, payload, preModelCall, preToolCall } from "./payloads.js";
import { type Bytes, block, bytes, entry, fixed32, hex, int, tag } from "./wire.js";

const request = payload(preModelCall);
const toolCall = payload(preToolCall);
const MODES: readonly HookMode[] = ["observe", "transform", "veto"];

const observe = (...inside: Bytes[]) => block(1, ...inside);
const transform = (...inside: Bytes[]) => block(2, ...inside);
const veto = (...inside: Bytes[]) => block(3, ...inside);

function invalid(message: string) {
  return { class: "invalid", error: { category: "INVALID_RESPONSE", message } };
}

describe("encodeDispatchRequest", () => {
  it("should hold the payload's bytes as they are, beside mode and subscription", () => {
    expect(hex(encodeDispatchRequest(request, "veto", "guard"))).toBe(
      hex(bytes(block(1, request.bytes), int(2, 3), block(3, "guard"))),
    );
    expect(hex(encodeDispatchRequest(request, "observe"))).toBe(hex(bytes(block(1, request.bytes), int(2, 1))));
    expect(hex(encodeDispatchRequest(request, "transform", ""))).toBe(
      hex(bytes(block(1, request.bytes), int(2, 2), block(3, ""))),
    );
  });
});

describe("admitResponse", () => {
  it.each<[string, HookMode, Bytes, object]>([
    ["an acknowledgement", "observe", observe(), { class: "ack" }],
    ["an acknowledgement with a payload riding along", "observe", observe(block(1, request.bytes)), { class: "ack" }],
    [
      "an acknowledgement among unknown fields",
      "observe",
      bytes(int(9, 1), observe(), block(10, "x")),
      { class: "ack" },
    ],
    ["an allow", "veto", veto(int(1, 1)), { class: "allow" }],
    ["a deny", "veto", veto(int(1, 2)), { class: "deny" }],
    ["a deny among unknown fields", "veto", veto(int(7, 1), int(1, 2), fixed32(8, 1)), { class: "deny" }],
  ])("should admit %s", (_, mode, response, answer) => {
    expect(admitResponse(mode, request, response)).toEqual(answer);
  });

  it.each<[string, HookMode, Bytes, string]>([
    ["nothing", "observe", bytes(), "empty answer: no outcome is set"],
    ["only unknown fields", "veto", int(9, 1), "empty answer: no outcome is set"],
    ["two outcomes", "veto", bytes(veto(int(1, 1)), observe()), "answer has outcome more than once"],
    ["one outcome twice", "veto", bytes(veto(int(1, 1)), veto(int(1, 1))), "answer has outcome more than once"],
    ["an outcome of another wire type", "observe", int(1, 1), "ObserveAck has wire type 0"],
    ["an empty TransformResult", "transform", transform(), "TransformResult has no payload"],
    [
      "two payloads",
      "transform",
      transform(block(1, request.bytes), block(1, request.bytes)),
      "answer has payload more than once",
    ],
    ["a payload of another wire type", "transform", transform(int(1, 1)), "payload has wire type 0"],
    ["an empty payload", "transform", transform(block(1)), "payload sets no hook point"],
    [
      "a payload of two variants",
      "transform",
      transform(block(1, request.bytes, block(8))),
      "payload sets more than one hook point: preModelCall and sessionEnd",
    ],
    [
      "a payload with the variant twice",
      "transform",
      transform(block(1, request.bytes, block(2))),
      "payload sets more than one hook point: preModelCall and preModelCall",
    ],
    ["an empty VetoResult", "veto", veto(), "decision is HOOK_DECISION_UNSPECIFIED"],
    ["an unspecified decision", "veto", veto(int(1, 0)), "decision is HOOK_DECISION_UNSPECIFIED"],
    ["an unknown decision", "veto", veto(int(1, 3)), "decision 3 is unknown"],
    ["a decision beyond an enum", "veto", veto(int(1, 2n ** 32n + 1n)), "decision is no enum number"],
    ["two decisions", "veto", veto(int(1, 2), int(1, 1)), "answer has decision more than once"],
    ["a decision of another wire type", "veto", veto(block(1, "x")), "decision has wire type 2"],
    ["a truncated answer", "veto", veto(int(1, 1)).subarray(0, 3), "undecodable: field 3 is malformed at byte 1"],
    ["garbage", "observe", bytes([0xff, 0xff, 0xff]), "undecodable: no field tag at byte 0"],
    [
      "a group in the envelope",
      "observe",
      bytes(observe(), tag(9, 3), tag(9, 4)),
      "undecodable: field 9 is malformed at byte 3",
    ],
    ["garbage in the acknowledgement", "observe", observe(bytes([0x07])), "undecodable: no field tag at byte 2"],
    [
      "invalid UTF-8",
      "transform",
      transform(block(1, block(2, block(1, bytes([0x1a, 1, 0xff]))))),
      "preModelCall.messages[0].id is not valid UTF-8 at byte 6",
    ],
    [
      "an enum out of range",
      "transform",
      transform(block(1, block(2, block(1, int(1, 2 ** 31))))),
      "preModelCall.messages[0].role is no enum number from 0 to 2^31 - 1 at byte 5",
    ],
  ])("should find %s invalid", (_, mode, response, message) => {
    expect(admitResponse(mode, request, response)).toEqual(invalid(message));
  });

  it("should find every outcome of another mode invalid", () => {
    const outcomes = { observe: observe(), transform: transform(block(1, request.bytes)), veto: veto(int(1, 1)) };
    const names = { observe: "ObserveAck", transform: "TransformResult", veto: "VetoResult" };
    for (const mode of MODES) {
      for (const given of MODES.filter((other) => other !== mode)) {
        expect(admitResponse(mode, request, outcomes[given])).toEqual(invalid(`${names[given]} in answer to ${mode}`));
      }
    }
  });

  it("should hand back the request itself when nothing changed", () => {
    for (const input of everyPoint) {
      const asked = payload(input);
      expect(admitResponse("transform", asked, transform(block(1, asked.bytes)))).toEqual({
        class: "transformed",
        payload: asked,
      });
    }
    const scrambled = block(4, block(2, block(1, "a")), int(99, 1));
    const asked = payloadFromBytes(scrambled);
    const answer = admitResponse("transform", asked, transform(block(1, scrambled)));
    expect(answer.class === "transformed" && answer.payload).toBe(asked);
  });

  it("should accept what a peer does that encodes maps and defaults its own way", () => {
    const one = block(4, block(1, block(3, entry("a", int(4, 1)), entry("b", int(1, 0)))));
    const other = block(4, block(1, block(1, ""), block(3, entry("b", int(1, 0)), entry("a", int(4, 1)))));
    const asked = payloadFromBytes(one);
    const answer = admitResponse("transform", asked, transform(block(1, other)));
    expect(answer.class === "transformed" && answer.payload).toBe(asked);
  });

  it("should take over changed messages, in bytes of its own", () => {
    const model = block(2, block(1, "acme"), block(2, "large"));
    const response = transform(block(1, block(2, model, block(1, block(3, "new"), int(1, 1)))));
    const answer = admitResponse("transform", request, response);
    response.fill(0);
    expect(answer.class === "transformed" && hex(answer.payload.bytes)).toBe(
      hex(block(2, block(1, int(1, 1), block(3, "new")), model)),
    );
  });

  it("should take emptied messages with an untouched model", () => {
    const answer = admitResponse(
      "transform",
      request,
      transform(block(1, block(2, block(2, block(1, "acme"), block(2, "large"))))),
    );
    expect(answer.class === "transformed" && answer.payload.view).toEqual({
      messages: [],
      model: { provider: "acme", id: "large" },
    });
  });

  const asked = payloadFromBytes(
    bytes(block(2, block(1, block(3, "m")), block(2, block(2, "large"), int(50, 1)), int(60, 1)), int(70, 1)),
  );
  const body = (...records: Bytes[]) => transform(block(1, block(2, ...records), int(70, 1)));
  const messages = block(1, block(3, "m"));
  it.each<[string, Bytes, string]>([
    ["a changed field", body(messages, block(2, block(2, "small"), int(50, 1)), int(60, 1)), "model.id"],
    [
      "an added field",
      body(messages, block(2, block(1, "x"), block(2, "large"), int(50, 1)), int(60, 1)),
      "model.provider",
    ],
    ["a lost message", body(messages, int(60, 1)), "model"],
    [
      "a changed unknown field",
      body(messages, block(2, block(2, "large"), int(50, 2)), int(60, 1)),
      "unknown field 50 of model",
    ],
    ["a lost unknown field", body(messages, block(2, block(2, "large"), int(50, 1))), "unknown field 60"],
    [
      "an added unknown field",
      body(messages, block(2, block(2, "large"), int(50, 1)), int(60, 1), int(61, 1)),
      "unknown field 61",
    ],
    [
      "a lost unknown field beside the variant",
      transform(block(1, block(2, messages, block(2, block(2, "large"), int(50, 1)), int(60, 1)))),
      "unknown field 70",
    ],
  ])("should refuse %s of an immutable part, messages changed or not", (_, response, path) => {
    expect(admitResponse("transform", asked, response)).toEqual(invalid(`changed immutable field ${path}`));
  });

  it("should refuse another variant, naming both", () => {
    for (const input of everyPoint) {
      const mine = payload(input);
      const other = payload(everyPoint[(everyPoint.indexOf(input) + 1) % everyPoint.length]!);
      const { variant } = HOOK_POINTS[mine.point];
      expect(admitResponse("transform", mine, transform(block(1, other.bytes)))).toEqual(
        invalid(`payload variant ${HOOK_POINTS[other.point].variant} in answer to ${variant}`),
      );
    }
  });

  it("should refuse any difference where nothing is mutable, without a word of content", () => {
    const secret = "hunter2-hunter2";
    const changed = payload({
      preToolCall: {
        ...preToolCall.preToolCall,
        call: { ...preToolCall.preToolCall.call, arguments: { [secret]: secret } },
      },
    });
    const answer = admitResponse("transform", toolCall, transform(block(1, changed.bytes)));
    expect(answer).toEqual(invalid("changed immutable field call.arguments"));
    expect(JSON.stringify(answer)).not.toContain(secret);
  });

  it("should tell -0 from 0 and no NaN from another", () => {
    const numbers = (value: number, ...raw: number[]): Bytes => {
      const eight = Buffer.alloc(8);
      eight.writeDoubleLE(value);
      return block(3, bytes(tag(4, 1), raw.length > 0 ? raw : eight));
    };
    const zero = payloadFromBytes(numbers(0));
    expect(admitResponse("transform", zero, transform(block(1, numbers(-0))))).toEqual(
      invalid("changed immutable field costUsd"),
    );
    const nan = payloadFromBytes(numbers(Number.NaN));
    const odd = transform(block(1, numbers(0, 1, 2, 3, 4, 5, 6, 0xff, 0xff)));
    expect(admitResponse("transform", nan, odd)).toEqual({ class: "transformed", payload: nan });
  });

  it("should judge depth by the payload alone, and refuse 101 messages", () => {
    const nested = (count: number): Bytes => {
      let inner: Bytes = bytes();
      // HookPayload, PreModelCallPayload, Message, then blocks and results in turns.
      for (let i = count; i > 3; i--) inner = block(i % 2 === 0 ? 2 : 3, inner);
      return block(2, block(1, inner));
    };
    const empty = payloadFromBytes(block(2));
    expect(admitResponse("transform", empty, transform(block(1, nested(100)))).class).toBe("transformed");
    const answer = admitResponse("transform", empty, transform(block(1, nested(101))));
    expect(answer.class === "invalid" && answer.error.message).toMatch(/nests more than 100 messages$/);
  });

  it("should refuse an answer over 64 MiB", () => {
    const answer = admitResponse("observe", request, new Uint8Array(64 * 1024 * 1024 + 100));
    expect(answer).toEqual(invalid("answer of 67108964 bytes is over 67108864 bytes"));
  });

  it("should never throw, and never let more than messages change, whatever the bytes", () => {
    const response = transform(block(1, request.bytes));
    const edits = fc.array(fc.tuple(fc.nat(response.length - 1), fc.nat(255)), { maxLength: 4 });
    fc.assert(
      fc.property(edits, fc.constantFrom(...MODES), (given, mode) => {
        const damaged = bytes(response);
        for (const [at, byte] of given) damaged[at] = byte;
        const answer = admitResponse(mode, request, damaged);
        if (answer.class !== "transformed") return;
        const { model } = answer.payload.view as PreModelCallPayload;
        expect(model).toEqual({ provider: "acme", id: "large" });
      }),
      { numRuns: 1000 },
    );
  });

  it("should read what protobufjs writes", () => {
    const response = root.lookupType("pluggableharness.hook.v1.DispatchHookResponse");
    const encoded = response.encode(response.fromObject({ veto: { decision: "HOOK_DECISION_DENY" } })).finish();
    expect(admitResponse("veto", request, encoded)).toEqual({ class: "deny" });
  });
});
