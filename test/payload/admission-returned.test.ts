import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { admitResponse, admitReturned } from "#src/payload/admission.js";
import type { PreModelCallPayload, PreToolCallPayload } from "#src/payload/messages.js";
import { payloadFromBytes } from "#src/payload/payload.js";
import { everyPoint, payload, preModelCall, preToolCall } from "./payloads.js";
import { type Bytes, block, bytes, hex, int } from "./wire.js";

const request = payload(preModelCall);
const toolCall = payload(preToolCall);

const transform = (...inside: Bytes[]) => block(2, ...inside);

function invalid(message: string) {
  return { class: "invalid", error: { category: "INVALID_RESPONSE", message } };
}

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
    [Object.freeze(Object.assign(Object.create(null), { decision: "deny" })), { class: "deny" }],
  ])("should admit the verdict %j", (returned, answer) => {
    expect(admitReturned("veto", toolCall, returned)).toEqual(answer);
  });

  it("should keep of a reason what redaction has to see, and no more", () => {
    const answer = admitReturned("veto", toolCall, { decision: "deny", reason: `x${"é".repeat(40_000)}` });
    expect(answer).toEqual({ class: "deny", reason: `x${"é".repeat(32_767)}` });
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
        expect(local.payload.bytes).toEqual(remote.payload.bytes);
      }),
      { numRuns: 50 },
    );
  });
});
