import { chmodSync, closeSync, ftruncateSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { readPayload } from "#src/cli/payload-input.js";
import { payloadFromJson } from "#src/payload/payload.js";
import { folderWith } from "../support/cli.js";
import { messagesJson } from "../support/cli-project.js";

const NOTHING = (async function* () {})();

async function* pieces(...chunks: readonly (string | Uint8Array)[]) {
  yield* chunks;
}

function read(input: string | Uint8Array, binary = false) {
  return readPayload({ path: "-", binary, stdin: pieces(input) });
}

function nested(depth: number): string {
  const input = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
  return `{"planReady":{"plan":{"items":[{"id":"i","input":${input}}]}}}`;
}

describe("a payload that cannot be dispatched", () => {
  it.each([
    ["no JSON", "{", "HL_PAYLOAD"],
    ["empty", "", "HL_PAYLOAD"],
    ["no object", "[]", "HL_PAYLOAD"],
    ["binary", Uint8Array.of(0xff, 0xfe, 0, 1), "HL_PAYLOAD"],
    ["without a point", "{}", "HL_PAYLOAD"],
    ["with two points", '{"planReady":{},"sessionEnd":{}}', "HL_PAYLOAD"],
    ["with an unknown field", '{"planReady":{"plam":{}}}', "HL_PAYLOAD"],
    ["with a key twice", '{"sessionEnd":{"sessionId":"a","sessionId":"b"}}', "HL_PAYLOAD"],
    ["with one field under both its names", '{"sessionEnd":{"sessionId":"a","session_id":"b"}}', "HL_PAYLOAD"],
    ["with an unknown enum name", '{"preModelCall":{"messages":[{"role":"ROLE_NOBODY"}]}}', "HL_PAYLOAD"],
    ["with __proto__", '{"__proto__":{}}', "HL_PAYLOAD"],
    ["too deep", nested(120), "HL_LIMIT_DEPTH"],
    ["far too deep", "[".repeat(100_000), "HL_LIMIT_DEPTH"],
  ])("should be refused when it is %s", async (_, text, code) => {
    await expect(read(text)).rejects.toMatchObject({ code });
  });

  it("should be refused with the JSON path", async () => {
    await expect(read('{"planReady":{"plan":{"items":[{"id":7}]}}}')).rejects.toThrow("$.planReady.plan.items[0].id");
  });

  it("should be refused with a word on --binary when it looks like it", async () => {
    await expect(read(Uint8Array.of(0xff, 0))).rejects.toMatchObject({ hint: expect.stringContaining("--binary") });
    await expect(read("{")).rejects.toMatchObject({ hint: undefined });
  });

  it("should be refused with a word on JSON when --binary is given for it", async () => {
    await expect(read(' {"sessionEnd":{}}', true)).rejects.toMatchObject({ hint: expect.stringContaining("JSON") });
    await expect(read(Uint8Array.of(0x2a, 0xff), true)).rejects.toMatchObject({ hint: undefined });
  });

  it("should be refused when the binary form does not decode", async () => {
    await expect(read(Uint8Array.of(0x2a, 0xff), true)).rejects.toMatchObject({ code: "HL_PAYLOAD" });
  });

  it("should be refused when it is no readable file", async () => {
    const cwd = folderWith({ locked: "{}" });
    mkdirSync(join(cwd, "folder"));
    chmodSync(join(cwd, "locked"), 0);
    for (const name of ["missing.json", "folder", "locked/in", ...(process.getuid?.() === 0 ? [] : ["locked"])]) {
      const reading = readPayload({ path: join(cwd, name), binary: false, stdin: NOTHING });
      await expect(reading).rejects.toMatchObject({ code: "HL_PAYLOAD_UNREADABLE" });
    }
  });

  it("should be refused when standard input breaks off", async () => {
    const stdin = (async function* () {
      yield "{";
      throw new Error("read EIO");
    })();
    await expect(readPayload({ path: "-", binary: false, stdin })).rejects.toThrow(/standard input: read EIO/);
  });

  it("should be refused when it is over 64 MiB, and not read to its end", async () => {
    const cwd = folderWith({});
    const path = join(cwd, "large.json");
    const file = openSync(path, "w");
    ftruncateSync(file, 64 * 1024 * 1024 + 1);
    closeSync(file);
    await expect(readPayload({ path, binary: false, stdin: NOTHING })).rejects.toMatchObject({
      code: "HL_LIMIT_PAYLOAD",
    });
    const chunk = new Uint8Array(1024 * 1024);
    let given = 0;
    const endless = (async function* () {
      for (;;) {
        given++;
        yield chunk;
      }
    })();
    await expect(readPayload({ path: "-", binary: true, stdin: endless })).rejects.toMatchObject({
      code: "HL_LIMIT_PAYLOAD",
    });
    expect(given).toBe(65);
  });
});

describe("a payload that can be dispatched", () => {
  it("should be put together from its pieces", async () => {
    const text = messagesJson("grüße");
    const bytes = Buffer.from(text);
    const split = bytes.indexOf(0xc3) + 1;
    const stdin = pieces(bytes.subarray(0, split), bytes.subarray(split));
    expect((await readPayload({ path: "-", binary: false, stdin })).bytes).toEqual(payloadFromJson(text).bytes);
  });

  it("should be the same in both forms", async () => {
    const payload = payloadFromJson(messagesJson("hello"));
    expect((await read(payload.bytes, true)).ref).toEqual(payload.ref);
  });
});
