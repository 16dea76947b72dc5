/** Runs of message hooks, sealed as the product seals: what holds, and what could not have been recorded. */
import { describe, expect, it } from "vitest";
import type { DispatchEvent, Outcome } from "#src/core/events.js";
import { HOOK_POINTS } from "#src/core/points.js";
import { MESSAGE_HOOKS } from "#src/messages/hooks.js";
import type { Json } from "#src/payload/canonical-json.js";
import { digest } from "#src/payload/digest.js";
import { compositionAt, HOOKS } from "#src/replay/hooks.js";
import { type Divergence, Verifier } from "#src/replay/verify.js";
import { openMemoryStore } from "#src/store/memory.js";
import type { EventStore, StreamName } from "#src/store/port.js";
import { cancelled, claimed, declined } from "../support/given.js";
import { type Kept, kept, keptJson } from "../support/ledger.js";
import * as stories from "../support/stories-messages.js";
import { cancels, defines, documentOf, INBOUND, REPLY, replaces, run, SENDING } from "../support/stories-messages.js";

async function judged(tell: (store: EventStore) => Promise<StreamName>): Promise<Divergence | null> {
  const store = openMemoryStore();
  const name = await tell(store);
  return (await new Verifier(store).verify((await store.readStream(name))!)).diverged;
}

describe("hooks of both specifications", () => {
  it("should each be composed in one way", () => {
    expect(HOOKS).toEqual([...Object.keys(HOOK_POINTS), ...Object.keys(MESSAGE_HOOKS)]);
    expect(HOOKS.filter((hook) => compositionAt(hook) === "chain")).toEqual(Object.keys(HOOK_POINTS));
    expect(compositionAt("message_sending")).toBe("rewrite");
    expect(compositionAt("toString")).toBeUndefined();
  });
});

describe("a run of message hooks", () => {
  const all = Object.entries(stories).flatMap(([name, story]) =>
    /(?:Message|Reply)$/.test(name) ? [[name, story as (store: EventStore) => Promise<StreamName>] as const] : [],
  );

  it.each(all)("should verify: %s", async (_, story) => {
    expect(await judged(story)).toBeNull();
  });

  it.each([
    ["message_sending", "waterfall", "rewrite"],
    ["message_sending", "notify", "rewrite"],
    ["inbound_claim", "rewrite", "claim"],
    ["pre-tool-call", "claim", "chain"],
  ])("should not be of %s by the composition %s", async (hook, composition, expected) => {
    expect(await judged((store) => run(1, hook, composition, ["a"], SENDING).start().record(store))).toMatchObject({
      revision: 0,
      kind: "illegal_event",
      expected: `the composition ${expected} at ${hook}`,
      found: composition,
    });
  });

  it.each(["message_sendin", "__proto__", ""])("should not be of the unknown hook %j", async (hook) => {
    expect(await judged((store) => run(1, hook, "rewrite", ["a"], SENDING).start().record(store))).toMatchObject({
      revision: 0,
      kind: "illegal_event",
      expected: "a hook point that this version knows",
      found: hook,
    });
  });

  it("should diverge where it concludes what its handlers did not say", async () => {
    const forged = run(1, "before_dispatch", "claim", ["a"], INBOUND).start().call(1, 0).happen(2, declined(0));
    expect(await judged((store) => forged.decide(3, "allow", "a").record(store))).toMatchObject({
      revision: 3,
      kind: "decision",
      expected: `decided allow by kernel:default on ${INBOUND.ref.digest}`,
    });
  });
});

describe("the input of a run", () => {
  function input(payload: Kept, told = {}): Promise<Divergence | null> {
    return judged((store) => run(1, "message_sending", "rewrite", ["a"], payload).start(told).record(store));
  }

  it.each<[string, Kept, string]>([
    ["members in another order", keptJson(null, '{"event":{},"context":{}}'), "canonical JSON (RFC 8785)"],
    ["white space", keptJson(null, '{"context": {}, "event": {}}'), "canonical JSON (RFC 8785)"],
    ["another spelling of a number", keptJson(null, '{"context":{},"event":{"at":1.0}}'), "canonical JSON (RFC 8785)"],
    ["a negative zero", keptJson(null, '{"context":{},"event":{"at":-0}}'), "canonical JSON (RFC 8785)"],
    [
      "an escape that need not be",
      keptJson(null, '{"context":{},"event":{"a":"\\u0041"}}'),
      "canonical JSON (RFC 8785)",
    ],
    ["a lone surrogate", keptJson(null, '{"context":{},"event":{"a":"\\ud800"}}'), "canonical JSON (RFC 8785)"],
    ["bytes that are no UTF-8", raw(0x22, 0xff, 0x22), "canonical JSON (RFC 8785)"],
    ["a member twice", keptJson(null, '{"context":{},"context":{},"event":{}}'), "JSON"],
    ["nothing", keptJson(null, ""), "JSON"],
    ["half a document", keptJson(null, '{"context":{}'), "JSON"],
    ["nesting without end", keptJson(null, `${"[".repeat(100_000)}`), "JSON"],
    ["no context", keptJson({ event: {} }), "an event with its context for the input"],
    ["no event", keptJson({ context: {} }), "an event with its context for the input"],
    ["an event that is a list", keptJson({ context: {}, event: [] }), "an event with its context for the input"],
    ["more than that", keptJson({ context: {}, event: {}, secret: 1 }), "an event with its context for the input"],
    ["a text", keptJson("hello"), "an event with its context for the input"],
    ["null", keptJson(null), "an event with its context for the input"],
  ])("should diverge where it is %s", async (_, payload, expected) => {
    expect(await input(payload)).toMatchObject({ revision: 0, kind: "payload", expected });
  });

  it("should diverge where it is called a HookPayload, or is one", async () => {
    const { bytes, ref } = SENDING;
    expect(await input({ bytes, ref: { ...ref, encoding: "proto" } })).toMatchObject({
      kind: "payload",
      expected: "an encoding json",
      found: "proto",
    });
    expect(await input(kept({ sessionEnd: { sessionId: "s" } }))).toMatchObject({ kind: "payload", expected: "JSON" });
  });

  it("should be taken for what could not be recorded where it says so", async () => {
    expect(await input(keptJson({ $unrecordable: "too large" }))).toBeNull();
    expect(await input(keptJson({ $unrecordable: 1 }))).toMatchObject({ kind: "payload" });
  });

  it("should be believed where redaction has changed the names of its members", async () => {
    const payload = keptJson({ "[redacted]": {}, event: {} });
    expect(await input(payload)).toMatchObject({ kind: "payload" });
    expect(await input(payload, { flags: ["redacted"] })).toBeNull();
    expect(await input(keptJson(["event"]), { flags: ["redacted"] })).toMatchObject({ kind: "payload" });
  });

  it("should diverge where its bytes are gone, or others", async () => {
    const other = { ...SENDING, bytes: Buffer.from(SENDING.bytes).fill("x", 20, 21) };
    expect(await input(other)).toMatchObject({ kind: "payload", expected: SENDING.ref.digest });
    expect(
      await judged((store) =>
        run(1, "message_sending", "rewrite", ["a"], INBOUND).start({ input: SENDING.ref }).record(store),
      ),
    ).toMatchObject({ kind: "payload", found: "no payload under this digest" });
    expect(await input({ ...SENDING, ref: { ...SENDING.ref, size: 1 } })).toMatchObject({ expected: "1 bytes" });
  });
});

describe("what handlers brought", () => {
  function defined(field: "content" | "cancelReason" | "metadata", value: Json, cancel = false) {
    return judged((store) => {
      const told = run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
      const brought = told.keep(value);
      return told.happen(2, (cancel ? cancels : defines)(0, { [field]: brought })).record(store);
    });
  }

  it.each<["content" | "cancelReason" | "metadata", readonly Json[], readonly Json[], string]>([
    ["content", ["", "text", { $unrecordable: "too large" }], [7, null, ["text"], {}], "a text for the content"],
    ["cancelReason", ["", "text"], [7, false, {}], "a text for the cancelReason"],
    ["metadata", [{}, { a: [1] }, { $unrecordable: "cycle" }], ["text", [], null], "an object for the metadata"],
  ])("should be of its kind in a rewrite: %s", async (field, right, wrong, expected) => {
    for (const value of right) expect(await defined(field, value)).toBeNull();
    for (const value of wrong)
      expect(await defined(field, value)).toMatchObject({ revision: 2, kind: "payload", expected });
    for (const value of wrong)
      expect(await defined(field, value, true)).toMatchObject({ revision: 2, kind: "payload" });
  });

  it("should be an object in a claim", async () => {
    const judge = (result: Json) =>
      judged((store) => {
        const told = run(1, "before_dispatch", "claim", ["a"], INBOUND).start().call(1, 0);
        return told.happen(2, { ...claimed(0, ""), payload: told.keep(result).ref } as Outcome).record(store);
      });
    expect(await judge({ handled: true })).toBeNull();
    expect(await judge("handled")).toMatchObject({ revision: 2, expected: "an object for the result" });
  });

  it("should be judged by what it is used for, also where the same bytes were used for something else", async () => {
    const judge = (second: "content" | "metadata") =>
      judged((store) => {
        const told = run(1, "message_sending", "rewrite", ["a", "b"], SENDING).start().call(1, 0);
        const text = told.keep("text");
        return told
          .happen(2, defines(0, { content: text }))
          .call(3, 1)
          .happen(4, defines(1, { [second]: text }))
          .record(store);
      });
    expect(await judge("content")).toBeNull();
    expect(await judge("metadata")).toMatchObject({ revision: 4, expected: "an object for the metadata" });
  });

  it("should all be there", async () => {
    const told = () => run(1, "message_sending", "rewrite", ["a"], SENDING).start().call(1, 0);
    const lost = keptJson("never kept");
    expect(
      await judged((store) =>
        told()
          .happen(2, defines(0, { content: lost }))
          .record(store),
      ),
    ).toMatchObject({
      revision: 2,
      found: "no payload under this digest",
    });
  });
});

describe("what a handler of a waterfall made of a document", () => {
  function replaced(
    event: { readonly [key: string]: Json },
    told: object = {},
    how: "replaces" | "cancels" = "replaces",
  ) {
    return judged((store) => {
      const story = run(1, "reply_payload_sending", "waterfall", ["a", "b"], REPLY).start(told).call(1, 0);
      const short = story.keep(documentOf({ kind: "final", payload: { text: "one" } }));
      const made = story.keep(documentOf(event));
      const last: DispatchEvent =
        how === "replaces" ? replaces(1, made) : ({ ...cancelled(1), payload: made.ref } as Outcome);
      return story.happen(2, replaces(0, short)).call(3, 1, short).happen(4, last).record(store);
    });
  }

  it("should verify where the payload is another, and nothing else", async () => {
    expect(await replaced({ kind: "final", payload: {} })).toBeNull();
    expect(await replaced({ kind: "final", payload: { text: "one", mediaUrl: "m" } })).toBeNull();
    expect(await replaced({ kind: "final", payload: { text: "one" } })).toBeNull();
    expect(await replaced({ kind: "final", payload: {} }, {}, "cancels")).toBeNull();
  });

  it("should diverge where anything else is another, also between redacted copies", async () => {
    for (const told of [{}, { flags: ["redacted"] }]) {
      const found = { revision: 4, kind: "payload", expected: "changes of event.payload only" };
      expect(await replaced({ kind: "block", payload: {} }, told)).toMatchObject({
        ...found,
        found: "another event.kind",
      });
      expect(await replaced({ payload: {} }, told, "cancels")).toMatchObject({ ...found, found: "another event.kind" });
      expect(await replaced({ kind: "final", payload: {}, extra: 1 }, told)).toMatchObject({
        found: "another event.extra",
      });
    }
  });

  it("should be held against what it saw, the latest, wherever it could be recorded", async () => {
    expect(
      await judged((store) => {
        const story = run(1, "reply_payload_sending", "waterfall", ["a"], REPLY).start().call(1, 0);
        return story.happen(2, replaces(0, story.keep(keptJson({ $unrecordable: "too large" })))).record(store);
      }),
    ).toBeNull();
  });
});

function raw(...units: readonly number[]): Kept {
  const bytes = Uint8Array.from(units);
  return { ref: { digest: digest("payload", bytes), size: bytes.length, encoding: "json" }, bytes };
}
