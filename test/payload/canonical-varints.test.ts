import { describe, expect, it } from "vitest";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFromBytes, payloadFromView } from "#src/payload/payload.js";

/** Each sets one number, and nothing else at any depth: its encoding is a tag and a length a level, a tag, and the number. */
const NUMBERS: Readonly<Record<string, HookPayloadInput>> = {
  "an enum": { sessionEnd: { status: "SESSION_STATUS_COMPLETED" } },
  "a bool": { preModelCall: { messages: [{ content: [{ toolResult: { isError: true } }] }] } },
  "an int64": { postModelResponse: { usage: { inputTokens: 5n } } },
  "a number of a hunk": { preToolCall: { planItem: { preview: { root: { diff: { hunks: [{ oldStart: 3 }] } } } } } },
  "a version": { postModelResponse: { model: { protocolVersion: 7 } } },
};

describe("a varint that is longer than it need be", () => {
  for (const [what, view] of Object.entries(NUMBERS)) {
    it.each([1, 2, 8])(`should be written as short as can be: ${what}, %i bytes too long`, (more) => {
      const { bytes, ref } = payloadFromView(view);
      const lengths = bytes.map((byte, place) => (place % 2 === 1 && place < bytes.length - 2 ? byte + more : byte));
      const [value = 0] = bytes.slice(-1);
      const padding = [...Array.from({ length: more - 1 }, () => 0x80), 0];
      const padded = Uint8Array.from([...lengths.slice(0, -1), value | 0x80, ...padding]);
      expect(payloadFromBytes(padded).bytes).toEqual(bytes);
      expect(payloadFromBytes(padded).ref).toEqual(ref);
    });
  }
});
