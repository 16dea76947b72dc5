import { describe, expect, it } from "vitest";
import { recordedConfig } from "#src/dispatch/config-record.js";
import { HookledgerError } from "#src/errors.js";
import { admitReturned } from "#src/payload/admission.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFromView } from "#src/payload/payload.js";
import { createRedactor, type Redactor } from "#src/payload/redaction.js";
import { openMemoryStore } from "#src/store/memory.js";
import { failed } from "#src/subscribers/fault.js";
import { FaultyStore } from "../support/faulty-store.js";
import { allow, delayed, type Part, Rig } from "../support/kernels.js";
import { INPUTS } from "../support/subscriber-calls.js";
import { VirtualClock } from "../support/virtual-clock.js";

const SECRET = "hunter2-canary";
const redact = ["sk-[a-z0-9]+"];
const { model } = INPUTS["pre-model-call"].preModelCall;
const saying = (text: string): HookPayloadInput => ({
  preModelCall: { messages: [{ role: "ROLE_USER", content: [{ text: { text } }] }], model },
});
const textOf = (payload: { view: object } | null): unknown =>
  JSON.parse(JSON.stringify(payload?.view)).messages[0]?.content[0].text.text;

/** All that a store was ever given, as one text; payloads in it decoded. */
function given({ requests }: FaultyStore): string {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
  return requests
    .flatMap(({ events, blobs = [] }) => [
      ...events.flatMap(({ data, metadata, payloads = "{}" }) => [
        data,
        metadata,
        ...Object.values(JSON.parse(payloads) as Record<string, string>).map((base64) =>
          text(Buffer.from(base64, "base64")),
        ),
      ]),
      ...blobs.map(({ bytes }) => text(bytes)),
    ])
    .join("\n");
}

function watched(chain: readonly Part[], point: Rig["point"] = "pre-model-call", parts = {}) {
  const store = new FaultyStore(openMemoryStore());
  return { store, rig: new Rig({ store, point, chain, settings: { redact }, secrets: [SECRET], parts }) };
}

describe("redaction", () => {
  it("should leave subscribers and the live caller the true payload, and record a copy", async () => {
    const { rig, store } = watched([
      { mode: "observe", does: { class: "ack" } },
      { mode: "transform", does: ({ payload }) => ({ class: "transformed", payload }) },
    ]);
    const result = await rig.dispatch({}, saying(`the key is sk-abc and ${SECRET}`));
    for (const { call } of rig.calls) expect(textOf(call.payload)).toBe(`the key is sk-abc and ${SECRET}`);
    expect(textOf(result.payload)).toBe(`the key is sk-abc and ${SECRET}`);
    const { events, diverged } = await rig.recorded(result.dispatchId);
    expect(events[0]).toMatchObject({ flags: ["redacted"] });
    expect(diverged).toBeNull();
    expect(given(store)).not.toMatch(/sk-abc|hunter2/);
    expect(given(store)).toContain("the key is [redacted] and [redacted]");
  });

  it("should not be claimed where there is nothing to redact", async () => {
    const rig = new Rig({ point: "pre-model-call" });
    expect((await rig.recorded((await rig.dispatch()).dispatchId)).events[0]).toMatchObject({ flags: [] });
  });

  it("should keep large payloads out of the archive too", async () => {
    const { rig, store } = watched([]);
    await rig.dispatch({}, saying(`${"x".repeat(10_000)} sk-abc ${SECRET}`));
    expect(store.requests[0]!.blobs).toHaveLength(2);
    expect(given(store)).not.toMatch(/sk-abc|hunter2/);
  });

  it.each<[string, Part]>([
    ["a reason", { mode: "veto", does: { class: "deny", reason: `it said ${SECRET}` } }],
    [
      "a message",
      { mode: "veto", does: { class: "failed", error: { category: "UNKNOWN", message: `bad ${SECRET}` } } },
    ],
    [
      "a thrown error",
      {
        mode: "veto",
        does: () => {
          throw new Error(`bad ${SECRET}`);
        },
      },
    ],
    ["a warning", { mode: "veto", does: { class: "allow", warnings: [`odd ${SECRET}`] } }],
  ])("should cover %s, wherever it goes", async (_, part) => {
    const { rig, store } = watched([part], "pre-tool-call");
    const result = await rig.dispatch();
    expect(given(store)).not.toContain(SECRET);
    expect(given(store)).toContain("[redacted]");
    expect(JSON.stringify([result.reason, result.hookErrors, rig.hookErrors, rig.lines])).not.toContain(SECRET);
  });

  it("should cover what the kernel itself logs of somebody else's errors", async () => {
    const { rig, store } = watched(
      [{ mode: "observe", does: { class: "failed", error: { category: "UNKNOWN", message: "" } } }],
      "pre-tool-call",
      {
        onHookError: () => {
          throw new Error(`cannot report ${SECRET}`);
        },
      },
    );
    store.plan = () => {
      throw new Error(`no connection as ${SECRET}`);
    };
    const result = await rig.dispatch();
    expect(rig.lines).toHaveLength(2);
    expect(JSON.stringify([rig.lines, result.reason])).not.toContain(SECRET);
  });

  it("should keep messages and reasons within their bounds", async () => {
    const rig = new Rig({
      settings: { redact: ["a"] },
      chain: [
        { mode: "observe", does: { class: "failed", error: { category: "UNKNOWN", message: "a".repeat(2048) } } },
        { mode: "veto", does: { class: "deny", reason: "a".repeat(1024) } },
      ],
    });
    const { dispatchId } = await rig.dispatch();
    const { events } = await rig.recorded(dispatchId);
    const [failure, denial] = events.filter((event) => event.type === "outcome");
    expect(failure).toMatchObject({ error: { message: expect.stringMatching(/^.{2048}$/) } });
    expect(denial).toMatchObject({ reason: expect.stringMatching(/^.{1024}$/) });
  });

  it("should find a match that is told by the lines around it", async () => {
    const rig = new Rig({
      settings: { redact: ["(?m)^token: .*$"] },
      chain: [{ mode: "veto", does: ({ mode }) => failed(mode, "refused\ntoken: hunter2\nafter all") }],
    });
    const { reason } = await rig.dispatch();
    expect(reason).toBe("VETO_FAILED: refused\\u{a}[redacted]\\u{a}after all");
  });

  it("should record no beginning of a match that lies across the bound of a text", async () => {
    const said = (chars: number) => `${"x".repeat(chars)} sk-abcdefghijklmnopqrstuvwxyz`;
    const rig = new Rig({
      settings: { redact: ["sk-[a-z]{20,}"] },
      chain: [
        { mode: "observe", does: ({ mode }) => failed(mode, said(2040)) },
        {
          mode: "veto",
          does: ({ mode, payload }) => admitReturned(mode, payload, { decision: "deny", reason: said(1016) }),
        },
      ],
    });
    const { dispatchId } = await rig.dispatch();
    expect(JSON.stringify((await rig.recorded(dispatchId)).events)).not.toContain("sk-");
  });

  it("should keep two payloads apart whose recorded copies are one", async () => {
    const clock = new VirtualClock();
    const made = payloadFromView(saying("sk-two"));
    const store = new FaultyStore(openMemoryStore());
    const rig = new Rig({
      store,
      clock,
      point: "pre-model-call",
      settings: { redact },
      chain: [
        { mode: "transform", does: delayed(clock, 5, { class: "transformed", payload: made }) },
        { mode: "observe", does: { class: "ack" } },
      ],
    });
    const result = await rig.dispatch({}, saying("sk-one"));
    expect(textOf(rig.calls[1]!.call.payload)).toBe("sk-two");
    expect(textOf(result.payload)).toBe("sk-two");
    const { events, diverged } = await rig.recorded(result.dispatchId);
    expect(events[2]).toMatchObject({
      class: "transformed",
      payload: { digest: (events[0] as { input: { digest: string } }).input.digest },
    });
    expect(diverged).toBeNull();
    expect(given(store)).not.toMatch(/sk-one|sk-two/);
  });

  it("should let policy's verdicts keep the ids of the true plan for the caller", async () => {
    const store = new FaultyStore(openMemoryStore());
    const rig = new Rig({
      store,
      point: "plan-ready",
      settings: { redact },
      policy: [{ name: "all", match: {}, action: "allow", reason: "sk-reason" }],
    });
    const items = [{ id: "sk-a" }, { id: "sk-b" }];
    const result = await rig.dispatch({}, { planReady: { plan: { turnId: "t", items } } });
    expect(result.allowed).toBe(true);
    expect(result.planDecisions.map(({ itemId }) => itemId)).toStrictEqual(["sk-a", "sk-b"]);
    expect(given(store)).not.toMatch(/sk-[ab]|sk-reason/);
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
  });

  it("should take time in proportion to the text, though every letter of it matches", { timeout: 5000 }, () => {
    const redactor = createRedactor({ patterns: ["[a-z]"], secrets: [] });
    expect(redactor.text("b".repeat(500_000))).toBe("[redacted]".repeat(500_000));
  });

  it("should refuse a payload whose redacted copy is over the bound, and record nothing", async () => {
    const store = new FaultyStore(openMemoryStore());
    const rig = new Rig({ store, point: "pre-model-call", parts: { redactor: bounding("huge") } });
    await expect(rig.begin({}, saying("huge"))).rejects.toMatchObject({ code: "HL_LIMIT_PAYLOAD" });
    expect(store.requests).toHaveLength(0);
  });

  it("should make an answer invalid whose redacted copy is over the bound", async () => {
    const huge = payloadFromView(saying("huge"));
    const rig = new Rig({
      point: "pre-model-call",
      parts: { redactor: bounding("huge") },
      chain: [{ mode: "transform", does: { class: "transformed", payload: huge } }],
    });
    const result = await rig.dispatch();
    expect(result).toMatchObject({ abortCause: "hook_error", hookErrors: [{ category: "INVALID_RESPONSE" }] });
    expect((await rig.recorded(result.dispatchId)).diverged).toBeNull();
  });
});

/** Finds the redacted copy of whatever holds this text too large. */
function bounding(text: string): Redactor {
  const redactor = createRedactor({ patterns: ["sk-"], secrets: [] });
  return {
    active: true,
    text: (given) => redactor.text(given),
    json: (value) => redactor.json(value),
    mayHide: (payload) => redactor.mayHide(payload),
    payload(payload) {
      if (!Buffer.from(payload.bytes).includes(text)) return redactor.payload(payload);
      throw new HookledgerError("HL_LIMIT_PAYLOAD", "the redacted copy is too large");
    },
  };
}

describe("the archived configuration", () => {
  it("should hold what redact matches as little as any payload", () => {
    const canonical = '{"body":{"key":"sk-abc","n":1,"of":["sk-d",null,true]}}';
    const redactor = createRedactor({ patterns: redact, secrets: [] });
    const { bytes, digest } = recordedConfig({ canonical }, redactor);
    const text = new TextDecoder().decode(bytes);
    expect(text).toBe('{"body":{"key":"[redacted]","n":1,"of":["[redacted]",null,true]}}');
    expect(digest).not.toBe(recordedConfig({ canonical }, createRedactor({ patterns: [], secrets: [] })).digest);
  });

  it("should be the canonical text itself where nothing is redacted", () => {
    const { bytes } = recordedConfig({ canonical: '{"a":1}' }, createRedactor({ patterns: [], secrets: [] }));
    expect(new TextDecoder().decode(bytes)).toBe('{"a":1}');
  });
});

describe("an allowed dispatch", () => {
  it("should tell a denier's payload as the denier saw it", async () => {
    const made = payloadFromView(saying("made"));
    const rig = new Rig({
      point: "pre-model-call",
      chain: [{ mode: "transform", does: { class: "transformed", payload: made } }],
    });
    expect((await rig.dispatch()).payload).toBe(made);
    const gate = new Rig({
      chain: [
        { mode: "veto", does: { class: "deny" } },
        { mode: "veto", does: allow },
      ],
    });
    const denied = await gate.dispatch();
    expect(denied.payload).toBe(gate.calls[0]!.call.payload);
    expect(gate.calls).toHaveLength(1);
  });
});
