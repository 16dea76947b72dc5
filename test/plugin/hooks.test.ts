import { type Client, status as Status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { METHODS } from "#src/goplugin/protocol.js";
import { admitResponse } from "#src/payload/admission.js";
import { payloadFromView } from "#src/payload/payload.js";
import { act, ask, HOST_ENV, hookRequest, PluginProcess } from "./plugin-process.js";

const MODEL_CALL = {
  preModelCall: { messages: [{ role: "ROLE_USER", id: "m-1", content: [{ text: { text: "hello" } }] }] },
} as const;

let plugin: PluginProcess;
let client: Client;

beforeAll(async () => {
  plugin = new PluginProcess({ env: { ...HOST_ENV, HOOKLEDGER_PROVIDER_CONFIG: '{"list":[{"__proto__":1}]}' } });
  client = await plugin.client();
});

afterAll(() => plugin.stop());

describe("DispatchHook of a plugin", () => {
  it.each([
    ["allow", { class: "allow" }],
    ["later", { class: "allow" }],
    ["deny", { class: "deny" }],
  ] as const)("should answer a veto that says %s", async (name, expected) => {
    const { bytes, trailers } = await act(client, name);
    expect(admitResponse("veto", payloadFromView({ preToolCall: {} }), bytes)).toEqual(expected);
    expect(trailers.get("hookledger-reason")).toEqual(name === "deny" ? ["not%20n%C3%A4w"] : []);
  });

  it("should answer an observer and a transform with what the kernel admits", async () => {
    const observed = await ask(client, METHODS.dispatchHook, hookRequest("observe", { sessionStart: {} }));
    expect(observed.bytes).toEqual(Buffer.from([0x0a, 0]));
    const { bytes } = await ask(client, METHODS.dispatchHook, hookRequest("transform", MODEL_CALL));
    const answer = admitResponse("transform", payloadFromView(MODEL_CALL), bytes);
    expect(answer).toMatchObject({ class: "transformed", payload: { view: { messages: [{ id: "seen" }] } } });
  });

  it("should give handlers the context that modules have", async () => {
    const metadata = { "hookledger-session": "s%20%C3%A4", "hookledger-turn": "%zz" };
    const { trailers } = await act(client, "context", { metadata, deadlineMs: 9_800 });
    const [reason] = trailers.get("hookledger-reason");
    expect(JSON.parse(decodeURIComponent(String(reason)))).toEqual({
      point: "pre-tool-call",
      mode: "veto",
      subscriptionId: "gate-1",
      session: "s ä",
      config: { list: [JSON.parse('{"__proto__":1}')] },
      frozen: true,
      remainingMs: 10,
      aborted: false,
    });
  });

  it("should say what a handler threw, in one status", async () => {
    await expect(act(client, "throw")).rejects.toMatchObject({
      code: Status.UNKNOWN,
      details: "TypeError: bröken\nin two",
    });
  });

  it("should log for debugging where a handler threw, a line a frame", async () => {
    await expect(act(client, "throw")).rejects.toThrow();
    const thrown = JSON.parse(await plugin.line("stderr", "TypeError: bröken"));
    expect(thrown).toMatchObject({ "@level": "debug", "@message": "pre-tool-call.veto: TypeError: bröken\nin two" });
    expect(JSON.parse(await plugin.line("stderr", "    at "))).toMatchObject({ "@level": "debug" });
  });

  it("should answer nothing, and say and log why, where a handler gave no valid answer", async () => {
    const { bytes, trailers } = await act(client, "number");
    expect(bytes).toHaveLength(0);
    const [why] = trailers.get("hookledger-reason");
    expect(decodeURIComponent(String(why))).toBe("veto returned a number, not a verdict");
    const line = await plugin.line("stderr", "no valid answer");
    expect(JSON.parse(line)).toMatchObject({
      "@level": "error",
      "@message": "pre-tool-call.veto gave no valid answer: veto returned a number, not a verdict",
      "@module": "acting",
      "@timestamp": expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
  });

  it("should refuse a point or a mode without a handler", async () => {
    for (const request of [hookRequest("veto", { planReady: {} }), hookRequest("observe", { preToolCall: {} })]) {
      await expect(ask(client, METHODS.dispatchHook, request)).rejects.toMatchObject({
        code: Status.UNIMPLEMENTED,
        details: expect.stringMatching(/^the plugin has no handler (?:plan-ready\.veto|pre-tool-call\.observe)$/),
      });
    }
  });

  const payload = [0x0a, 2, 0x22, 0] as const;
  it.each([
    ["nothing", []],
    ["no payload", [0x10, 3]],
    ["no mode", [...payload]],
    ["an unknown mode", [...payload, 0x10, 4]],
    ["a huge mode", [...payload, 0x10, 0x83, 0x80, 0x80, 0x80, 0x10]],
    ["two payloads", [...payload, ...payload, 0x10, 3]],
    ["two modes", [...payload, 0x10, 3, 0x10, 3]],
    ["a mode of another type", [...payload, 0x12, 1, 3]],
    ["an empty payload", [0x0a, 0, 0x10, 3]],
    ["two points", [0x0a, 4, 0x22, 0, 0x0a, 0, 0x10, 3]],
    ["an id that is no UTF-8", [...payload, 0x10, 3, 0x1a, 1, 0xff]],
    ["a group", [...payload, 0x10, 3, 0x23, 0x24]],
    ["noise", [0xff, 0xff, 0xff]],
  ])("should refuse a request with %s", async (_name, bytes) => {
    const refused = ask(client, METHODS.dispatchHook, Uint8Array.from(bytes));
    await expect(refused).rejects.toMatchObject({ code: Status.INVALID_ARGUMENT });
  });

  it("should abort the signal at the deadline and when the caller cancels", async () => {
    const aborts = () => plugin.logged().filter((message) => message === "was aborted").length;
    await expect(act(client, "hang", { deadlineMs: 200 })).rejects.toMatchObject({ code: Status.DEADLINE_EXCEEDED });
    await plugin.line("stderr", "was aborted");
    const cancelling = new AbortController();
    const cancelled = act(client, "hang", { signal: cancelling.signal });
    await expect.poll(() => plugin.logged().filter((message) => message === "hangs").length).toBe(2);
    cancelling.abort();
    await expect(cancelled).rejects.toMatchObject({ code: Status.CANCELLED });
    await expect.poll(aborts).toBe(2);
  });

  it("should answer 64 calls at once", async () => {
    const replies = await Promise.all(
      Array.from({ length: 64 }, (_, n) => act(client, n % 2 === 0 ? "slow" : "later")),
    );
    expect(replies).toHaveLength(64);
  });

  it("should take and give a payload of many megabytes", async () => {
    const data = new Uint8Array(24 * 1024 * 1024).fill(7);
    const large = { preModelCall: { messages: [{ id: "m", content: [{ image: { data, mediaType: "image/png" } }] }] } };
    const { bytes } = await ask(client, METHODS.dispatchHook, hookRequest("transform", large));
    expect(admitResponse("transform", payloadFromView(large), bytes).class).toBe("transformed");
  });
});
