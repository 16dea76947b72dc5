import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HookMode } from "#src/config/types.js";
import { HOOK_POINTS } from "#src/core/points.js";
import { admitResponse, admitReturned, encodeDispatchRequest } from "#src/payload/admission.js";
import type { PreModelCallPayload, PreToolCallPayload } from "#src/payload/messages.js";
import { payloadFromBytes, samePayload } from "#src/payload/payload.js";
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

describe("admitReturned", () => {
  const view = request.view as PreModelCallPayload;

  it("should ignore what observe returns", () => {
    for (const returned of [undefined, null, "deny", { decision: "deny" }, () => 1]) {
      expect(admitReturned("observe", request, returned)).toEqual({ class: "ack" });
    }
  });

  it.each<[unknown, object]>([
    ["allow", { class: "allow" }],
    ["deny", { class: "deny" }],
    [{ decision: "allow" }, { class: "allow" }],
    [{ decision: "allow", reason: "fine" }, { class: "allow" }],
    [{ decision: "deny" }, { class: "deny" }],
    [{ decision: "deny", reason: undefined }, { class: "deny" }],
    [
      { decision: "deny", reason: "no" },
      { class: "deny", reason: "no" },
    ],
    [
      { decision: "deny", reason: `${"é".repeat(511)}xyz` },
      { class: "deny", reason: `${"é".repeat(511)}xy` },
    ],
    [
      { decision: "deny", reason: `x${"é".repeat(512)}` },
      { class: "deny", reason: `x${"é".repeat(511)}` },
    ],
    [Object.freeze(Object.assign(Object.create(null), { decision: "deny" })), { class: "deny" }],
  ])("should admit the verdict %j", (returned, answer) => {
    expect(admitReturned("veto", toolCall, returned)).toEqual(answer);
  });

  it.each<[string, unknown, string]>([
    ["undefined", undefined, "veto returned nothing, not a verdict"],
    ["null", null, "veto returned null, not a verdict"],
    ["true", true, "veto returned a boolean, not a verdict"],
    ["another word", "ALLOW", 'veto returned a string other than "allow" and "deny"'],
    ["a String object", Object("deny"), "veto returned an object that is not plain, not a verdict"],
    ["a list", ["allow"], "veto returned an array, not a verdict"],
    ["an empty object", {}, 'decision is neither "allow" nor "deny"'],
    ["another decision", { decision: "ask" }, 'decision is neither "allow" nor "deny"'],
    [
      "an inherited decision",
      Object.create({ decision: "allow" }),
      "veto returned an object that is not plain, not a verdict",
    ],
    ["another key", { decision: "allow", reasons: "x" }, 'veto returned a verdict with a property "reasons"'],
    [
      "a symbol key",
      { decision: "allow", [Symbol("x")]: 1 },
      "veto returned a verdict with a property that is a symbol",
    ],
    [
      "a hidden key",
      Object.defineProperty({ decision: "allow" }, "hidden", { value: 1 }),
      'veto returned a verdict with a property "hidden"',
    ],
    ["a reason that is none", { decision: "deny", reason: 1 }, "reason is a number, not a string"],
  ])("should find %s no verdict", (_, returned, message) => {
    expect(admitReturned("veto", toolCall, returned)).toEqual(invalid(message));
  });

  it("should hand back the request itself for its view, spread or not", () => {
    for (const input of everyPoint) {
      const asked = payload(input);
      for (const returned of [asked.view, { ...asked.view }]) {
        const answer = admitReturned("transform", asked, returned);
        expect(answer.class === "transformed" && answer.payload).toBe(asked);
      }
    }
  });

  it("should take over changed messages and nothing else, unknown fields kept", () => {
    const odd = payloadFromBytes(
      bytes(block(2, block(1, block(3, "m"), int(77, 1)), block(2, block(2, "large")), int(60, 1)), int(70, 1)),
    );
    const shown = odd.view as PreModelCallPayload;
    const messages = [...shown.messages.map((message) => ({ ...message, id: "n" })), { role: "ROLE_USER" }];
    const answer = admitReturned("transform", odd, { ...shown, messages });
    expect(answer.class === "transformed" && hex(answer.payload.bytes)).toBe(
      hex(
        bytes(
          block(2, block(1, block(3, "n"), int(77, 1)), block(1, int(1, 1)), block(2, block(2, "large")), int(60, 1)),
          int(70, 1),
        ),
      ),
    );
  });

  it("should judge what it read, not what is read later", () => {
    let reads = 0;
    const returned = {
      ...view,
      get messages() {
        reads += 1;
        return reads === 1 ? [] : view.messages;
      },
    };
    const answer = admitReturned("transform", request, returned);
    expect(reads).toBe(1);
    expect(answer.class === "transformed" && answer.payload.view).toEqual({ messages: [], model: view.model });
  });

  it.each<[string, unknown, string]>([
    ["undefined", undefined, "transform returned nothing, not the payload"],
    ["null", null, "transform returned null, not the payload"],
    ["a list", [], "transform returned an array, not the payload"],
    ["a function", () => view, "transform returned a function, not the payload"],
    ["an empty object", {}, "transform returned a payload without messages"],
    ["messages taken out", { ...view, messages: undefined }, "transform returned a payload without messages"],
    ["messages that are null", { ...view, messages: null }, "messages is null, not an array"],
    ["the variant around it", { preModelCall: view }, "transform returned a payload without messages"],
    ["only the messages", { messages: view.messages }, "changed immutable field model"],
    ["another model", { ...view, model: { ...view.model, id: "small" } }, "changed immutable field model.id"],
    ["an unknown property", { ...view, extra: 1 }, 'payload has no property "extra"'],
    [
      "an unknown property inside",
      { ...view, messages: [{ content: [{ text: { txt: "x" } }] }] },
      'messages[0].content[0].text has no property "txt"',
    ],
    [
      "a wrong type inside",
      { ...view, messages: [{ content: [{}, { text: { text: 5 } }] }] },
      "messages[0].content[1].text.text is a number, not a string",
    ],
  ])("should find %s invalid", (_, returned, message) => {
    expect(admitReturned("transform", request, returned)).toEqual(invalid(message));
  });

  it("should refuse any difference where nothing is mutable", () => {
    const shown = toolCall.view as PreToolCallPayload;
    expect(admitReturned("transform", toolCall, { ...shown, call: { ...shown.call, id: "other" } })).toEqual(
      invalid("changed immutable field call.id"),
    );
    expect(admitReturned("transform", toolCall, {})).toEqual(invalid("changed immutable field call"));
  });

  it("should find too deep and too large answers invalid", () => {
    let block: unknown = {};
    for (let i = 0; i < 60; i++) block = { toolResult: { content: [block] } };
    const deep = admitReturned("transform", request, { ...view, messages: [{ content: [block] }] });
    expect(deep.class === "invalid" && deep.error.message).toMatch(/nests more than 100 messages$/);
    const text = "x".repeat(16 * 1024 * 1024);
    const large = admitReturned("transform", request, { ...view, messages: Array(5).fill({ id: text }) });
    expect(large).toEqual(invalid("payload is over 67108864 bytes"));
  });

  it("should let through what reading throws, in every mode that reads", () => {
    const thrown = new Error("mine");
    const explode = (): never => {
      throw thrown;
    };
    const deep = { ...view, messages: [Object.defineProperty({}, "id", { enumerable: true, get: explode })] };
    expect(() => admitReturned("transform", request, deep)).toThrow(thrown);
    expect(() => admitReturned("transform", request, new Proxy({}, { getPrototypeOf: explode }))).toThrow(thrown);
    expect(() =>
      admitReturned("veto", toolCall, {
        get decision() {
          return explode();
        },
      }),
    ).toThrow(thrown);
    expect(() => admitReturned("veto", toolCall, new Proxy({}, { ownKeys: explode }))).toThrow(thrown);
  });

  it("should keep its messages short whatever a property is called", () => {
    const answer = admitReturned("transform", request, { ...view, ["\u001b[31m".repeat(10_000)]: 1 });
    expect(answer.class === "invalid" && answer.error.message.length).toBeLessThanOrEqual(2048);
    expect(answer.class === "invalid" && answer.error.message).not.toContain("\u001b");
  });

  it("should agree with the wire about every change of messages", () => {
    const fill = fc.constantFrom("ROLE_USER", "ROLE_ASSISTANT");
    fc.assert(
      fc.property(fc.array(fc.record({ role: fill, id: fc.string() })), (messages) => {
        const local = admitReturned("transform", request, { ...view, messages });
        if (local.class !== "transformed") throw new Error("refused");
        const remote = admitResponse("transform", request, transform(block(1, local.payload.bytes)));
        if (remote.class !== "transformed") throw new Error("refused");
        expect(samePayload(local.payload, remote.payload)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});
