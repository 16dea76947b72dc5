import { describe, expect, it } from "vitest";
import type { DispatchOptions } from "#src/dispatch/dispatcher.js";
import { openMemoryStore } from "#src/store/memory.js";
import { FaultyStore } from "../support/faulty-store.js";
import { allow, Rig } from "../support/kernels.js";
import { INPUTS } from "../support/subscriber-calls.js";

function watched(point: Rig["point"] = "pre-tool-call", parts = {}) {
  const store = new FaultyStore(openMemoryStore());
  return {
    store,
    rig: new Rig({ store, point, chain: [{ mode: "veto", does: allow }], parts, secrets: ["hush-1234"] }),
  };
}

describe("an argument error", () => {
  const bytes = (...values: number[]) => Uint8Array.from(values);
  it.each([
    ["a payload without a variant", bytes(), "HL_PAYLOAD"],
    ["a payload with two variants", bytes(0x0a, 0, 0x22, 0), "HL_PAYLOAD"],
    ["a payload that is none", bytes(0xff), "HL_PAYLOAD"],
    ["a payload over 64 MiB", new Uint8Array(64 * 1024 * 1024 + 1), "HL_LIMIT_PAYLOAD"],
  ])("should be refused and leave no record: %s", async (_, input, code) => {
    const { rig, store } = watched();
    await expect(rig.begin({}, input)).rejects.toMatchObject({ code });
    expect(store.requests).toHaveLength(0);
    expect(rig.calls).toHaveLength(0);
  });

  it.each<[string, DispatchOptions, string]>([
    ["a session with a control character", { session: "a\nb" }, "HL_LIMIT_ID"],
    ["a session with C1", { session: "a\u0085b" }, "HL_LIMIT_ID"],
    ["a session over 256 bytes", { session: "é".repeat(129) }, "HL_LIMIT_ID"],
    ["a session with half a character", { session: "\ud800" }, "HL_LIMIT_ID"],
    ["a turn with a control character", { turn: "\u007f" }, "HL_LIMIT_ID"],
    ["a turn over 256 bytes", { turn: "x".repeat(257) }, "HL_LIMIT_ID"],
    ["a session that holds a secret", { session: "for hush-1234" }, "HL_LIMIT_ID"],
    ["a turn that holds a secret", { turn: "hush-1234" }, "HL_LIMIT_ID"],
    ["an id that is no ULID", { id: "not-a-ulid" }, "HL_DISPATCH_ID"],
    ["an id beyond 128 bits", { id: "81ARZ3NDEKTSV4RRFFQ69G5FAV" }, "HL_DISPATCH_ID"],
    ["an id with a letter that is none", { id: "01ARZ3NDEKTSV4RRFFQ69G5FAU" }, "HL_DISPATCH_ID"],
    ["an id that climbs out of the streams", { id: "../../../../../../../../x/" }, "HL_DISPATCH_ID"],
    ["an empty id", { id: "" }, "HL_DISPATCH_ID"],
  ])("should be refused and leave no record: %s", async (_, options, code) => {
    const { rig, store } = watched();
    await expect(rig.begin(options)).rejects.toMatchObject({ code });
    expect(store.requests).toHaveLength(0);
    expect(rig.calls).toHaveLength(0);
  });

  it("should be refused and leave no record: two plan items of one id", async () => {
    const { rig, store } = watched("plan-ready");
    const items = [{ id: "i-1" }, { id: "i-2" }, { id: "i-1" }];
    await expect(rig.begin({}, { planReady: { plan: { turnId: "t", items } } })).rejects.toMatchObject({
      code: "HL_PAYLOAD",
    });
    expect(store.requests).toHaveLength(0);
  });

  it("should be refused and leave no record: an id that the host makes and that is none", async () => {
    const { rig, store } = watched("pre-tool-call", { newId: () => "oops" });
    await expect(rig.begin()).rejects.toMatchObject({ code: "HL_DISPATCH_ID" });
    expect(store.requests).toHaveLength(0);
  });

  it("should leave nothing under way", async () => {
    const { rig } = watched();
    await expect(rig.begin({ session: "\n" })).rejects.toThrow();
    await rig.dispatcher.idle();
  });
});

describe("labels", () => {
  it("should be recorded with every event, and returned", async () => {
    const { rig } = watched();
    const session = "é".repeat(128);
    const result = await rig.dispatch({ session, turn: "t/1 ✋" });
    expect(result).toMatchObject({ session, turn: "t/1 ✋" });
    const { metadata } = await rig.recorded(result.dispatchId);
    for (const each of metadata) expect(each).toMatchObject({ session, turn: "t/1 ✋", writer: rig.store.writer });
    expect(rig.calls[0]!.call).toMatchObject({ session, turn: "t/1 ✋", dispatchId: result.dispatchId });
  });

  it("should count as none when they are empty", async () => {
    const { rig } = watched();
    const result = await rig.dispatch({ session: "", turn: "" });
    expect(result).toMatchObject({ session: null, turn: null });
    const { metadata } = await rig.recorded(result.dispatchId);
    expect(metadata[0]?.session).toBeUndefined();
    expect(metadata[0]?.turn).toBeUndefined();
  });
});

describe("a payload", () => {
  it("should be read once, before anybody could change it", async () => {
    const { rig } = watched();
    const input = structuredClone(INPUTS["pre-tool-call"]) as { preToolCall: { call: { toolName: string } } };
    const result = rig.begin({}, input);
    input.preToolCall.call.toolName = "rm";
    expect((await result).payload?.view).toMatchObject({ call: { toolName: "read" } });
  });

  it("should come back unchanged with ALLOW where there are no subscribers, and be recorded", async () => {
    const rig = new Rig();
    const result = await rig.dispatch();
    expect(result).toMatchObject({ status: "decided", decision: "allow", decidedBy: "kernel:default", allowed: true });
    expect(result.payload?.view).toMatchObject({ call: { toolName: "read" } });
    expect((await rig.recorded(result.dispatchId)).told).toStrictEqual(["started", "decided allow by kernel:default"]);
  });
});
