/** Sealed as the product seals, and still no record of a dispatch: what was passed on could not have been. */
import { describe, expect, it } from "vitest";
import type { Digest, DispatchEvent, Ref, Started } from "#src/core/events.js";
import { digest } from "#src/payload/digest.js";
import { type Divergence, Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import { allow, chain, decided, invoked } from "../support/given.js";
import { at, type Kept, kept, record } from "../support/ledger.js";
import { CONFIG, PLAN, STAMPED, startedWith } from "../support/stories.js";

const CALL = kept({ preToolCall: { call: { id: "c1", toolName: "bash" } } });
const OTHER_CALL = kept({ preToolCall: { call: { id: "c1", toolName: "rm" } } });

function modelCall(text: string, id: string): Kept {
  return kept({
    preModelCall: {
      messages: [{ role: "ROLE_USER", content: [{ text: { text } }] }],
      model: { provider: "acme", id },
    },
  });
}

function raw(...bytes: readonly number[]): Kept {
  const all = Uint8Array.from(bytes);
  return { ref: { digest: digest("payload", all), size: all.length, encoding: "proto" }, bytes: all };
}

async function diverged(log: readonly DispatchEvent[], ...payloads: readonly Kept[]): Promise<Divergence | null> {
  const store = openMemoryStore();
  const happenings = log.map((event, place) => at(place, event));
  const stream = await record(store, { n: 1, happenings, kept: payloads, blobs: [CONFIG] });
  return (await new Verifier(store).verify((await store.readStream(stream))!)).diverged;
}

const saw = (index: number, seen: Digest): DispatchEvent => ({ ...invoked(index), saw: seen });
const left = (index: number, payload: Ref): DispatchEvent => ({
  type: "outcome",
  index,
  class: "transformed",
  payload,
});
const allowed = (payload: Digest): DispatchEvent => ({ ...decided("allow", "kernel:default"), payload });

describe("the payload of a dispatch", () => {
  function judged(input: Kept, told: Partial<Started> = {}): Promise<Divergence | null> {
    const { digest } = input.ref;
    return diverged([startedWith(1, chain("veto"), input, told), saw(0, digest), allow(0), allowed(digest)], input);
  }

  it("should verify where it is one of the hook point", async () => {
    expect(await judged(CALL)).toBeNull();
    expect(await judged(PLAN, { point: "plan-ready" })).toBeNull();
  });

  it("should diverge where it is one of another hook point", async () => {
    expect(await judged(PLAN)).toMatchObject({
      revision: 0,
      kind: "payload",
      expected: "a payload of pre-tool-call",
      found: "plan-ready",
    });
  });

  const broken: Readonly<Record<string, Kept>> = {
    "no bytes": raw(),
    "no field tag": raw(0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
    "a field that is cut off": raw(...CALL.bytes.slice(0, -1)),
    "a message inside that is cut off": raw(...CALL.bytes.with(CALL.bytes.length - 5, 0x7f)),
    "two hook points": raw(...CALL.bytes, ...PLAN.bytes),
    "one hook point twice": raw(...CALL.bytes, ...CALL.bytes),
  };
  for (const [what, payload] of Object.entries(broken)) {
    it(`should diverge where it is no payload: ${what}`, async () => {
      expect(await judged(payload)).toMatchObject({
        revision: 0,
        kind: "payload",
        found: "no payload of any hook point",
      });
    });
  }

  it("should diverge where it is called JSON, which nobody would look into", async () => {
    expect(await judged({ ...CALL, ref: { ...CALL.ref, encoding: "json" } })).toMatchObject({
      revision: 0,
      kind: "payload",
    });
  });

  it("should not be of a hook point that nobody knows", async () => {
    for (const point of ["pre-tool-cal", "__proto__", ""]) {
      expect(await judged(CALL, { point })).toMatchObject({ revision: 0, kind: "illegal_event", found: point });
    }
  });
});

describe("the payload that a transform left", () => {
  const before = modelCall("my key is hunter2", "m1");
  const atModelCall = { point: "pre-model-call", vetoBearing: false };

  function transformed(from: Kept, to: Kept, told: Partial<Started>): Promise<Divergence | null> {
    return diverged(
      [
        startedWith(1, chain("transform"), from, told),
        saw(0, from.ref.digest),
        left(0, to.ref),
        allowed(to.ref.digest),
      ],
      from,
      to,
    );
  }

  it("should verify where only mutable fields were changed, or nothing", async () => {
    expect(await transformed(before, modelCall("my key is [gone]", "m1"), atModelCall)).toBeNull();
    expect(await transformed(before, before, atModelCall)).toBeNull();
  });

  it("should diverge where another field was changed, also between redacted copies", async () => {
    for (const flags of [[], ["redacted"]]) {
      expect(await transformed(before, modelCall("hello", "m2"), { ...atModelCall, flags })).toMatchObject({
        revision: 2,
        kind: "payload",
        expected: "changes of messages only",
        found: "another model.id",
      });
    }
  });

  it("should diverge where nothing may be changed", async () => {
    expect(await transformed(CALL, OTHER_CALL, {})).toMatchObject({
      revision: 2,
      kind: "payload",
      expected: "changes of nothing only",
      found: "another call.toolName",
    });
  });

  it("should diverge where it is one of another hook point", async () => {
    expect(await transformed(before, CALL, atModelCall)).toMatchObject({ revision: 2, kind: "payload" });
  });

  it("should be held against what that transform saw: none takes back what policy stamped", async () => {
    const items = [
      { itemId: "i1", decision: "allow", decidedBy: "policy:reads" },
      { itemId: "i2", decision: "deny", decidedBy: "policy:no-root" },
      { itemId: "i3", decision: "ask", decidedBy: "policy:default" },
    ] as const;
    const log: readonly DispatchEvent[] = [
      startedWith(1, chain("policy", "transform"), PLAN, { point: "plan-ready" }),
      saw(0, PLAN.ref.digest),
      { type: "outcome", index: 0, class: "policy", payload: STAMPED.ref, items },
      saw(1, STAMPED.ref.digest),
      left(1, PLAN.ref),
      allowed(PLAN.ref.digest),
    ];
    expect(await diverged(log, PLAN, STAMPED)).toMatchObject({
      revision: 4,
      kind: "payload",
      found: "another plan.items[0].decision",
    });
  });

  it("should be compared where it travels in a blob", async () => {
    const long = "x".repeat(5000);
    const [from, to] = [modelCall(long, "m1"), modelCall(`${long}.`, "m2")];
    expect(await transformed(from, to, atModelCall)).toMatchObject({ revision: 2, found: "another model.id" });
  });

  it("should be of the size that its reference says, also where its bytes are known", async () => {
    const log = [
      startedWith(1, chain("transform"), before, atModelCall),
      saw(0, before.ref.digest),
      left(0, { ...before.ref, size: before.ref.size + 1 }),
      allowed(before.ref.digest),
    ];
    expect(await diverged(log, before)).toMatchObject({ revision: 2, kind: "payload" });
  });

  it("should not be judged where it is a shadow's, which has no say", async () => {
    const log = [
      startedWith(1, chain("transform~shadow"), before, atModelCall),
      saw(0, before.ref.digest),
      left(0, modelCall("hello", "m2").ref),
      allowed(before.ref.digest),
    ];
    expect(await diverged(log, before, modelCall("hello", "m2"))).toBeNull();
  });
});
