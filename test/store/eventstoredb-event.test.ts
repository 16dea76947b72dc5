import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalJson, type Json } from "#src/payload/canonical-json.js";
import { boundId, START, sealedDrafts, toRecorded } from "#src/store/eventstoredb/event.js";
import type { ServerDraft, ServerEvent } from "#src/store/eventstoredb/server-log.js";
import type { EventDraft } from "#src/store/port.js";
import { eventIds } from "#src/store/record/event-id.js";
import { seal } from "#src/store/seal.js";
import { draft } from "../support/store-fixtures.js";

/** As the client sends it and gives it back. */
function kept({ id, type, content }: ServerDraft, revision: number): ServerEvent {
  const wire = content.kind === "json" ? JSON.parse(JSON.stringify(content)) : content;
  return { stream: "hookdispatch-X", revision, position: revision + 100, id, type, content: wire };
}

function foreign(data: unknown, metadata: unknown): ServerEvent {
  const content = { kind: "json" as const, data, metadata };
  return { stream: "hookdispatch-X", revision: 0, position: 1, id: draft(0).id, type: "other", content };
}

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
const keys = fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "chain", "1", "02", "é", "\u{1F600}"));
const object = fc.dictionary(keys, json, { maxKeys: 6 }).map((value) => canonicalJson(value));
const covered = object.map((text) => {
  const { chain: _, payloads: __, ...rest } = JSON.parse(text);
  return canonicalJson({ ...rest, at: "now" });
});
const ulid = "01HZX3Q4V5W6X7Y8Z9A0B1C2D3";

const drafts: fc.Arbitrary<EventDraft[]> = fc
  .array(fc.record({ data: object, metadata: covered, payloads: fc.option(object, { nil: undefined }) }), {
    minLength: 1,
  })
  .map((parts) =>
    parts.map(({ data, metadata, payloads }, revision) => ({
      id: eventIds(ulid)(revision),
      type: "outcome",
      data,
      metadata,
      ...(payloads === undefined ? {} : { payloads }),
    })),
  );

describe("events on the server", () => {
  it("should come back letter for letter, under the ids that they were given", () => {
    fc.assert(
      fc.property(drafts, (events) => {
        const sealed = sealedDrafts(START, events);
        let chain = "";
        for (const [revision, event] of events.entries()) {
          const expected = seal(chain, revision, event);
          chain = expected.chain;
          const { id, type, data, metadata } = toRecorded(kept(sealed.drafts[revision]!, revision));
          expect({ id, type, data, metadata }).toEqual({
            id: event.id,
            type: event.type,
            data: event.data,
            metadata: expected.metadata,
          });
        }
        expect(sealed.tip).toEqual({ revision: events.length - 1, chain });
      }),
    );
  });

  describe("their ids", () => {
    const ids = (event: EventDraft) => sealedDrafts(START, [event]).drafts[0]?.id;

    it("should be the same for the same contents, and only for those", () => {
      expect(ids(draft(1))).toBe(ids(draft(1)));
      const others = [{ data: '{"index":2}' }, { type: "timeout" as const }, { metadata: '{"at":"2026"}' }];
      for (const other of others) expect(ids(draft(1, other))).not.toBe(ids(draft(1)));
    });

    it("should stay UUIDs of the same version, variant and time", () => {
      const id = eventIds(ulid)(3);
      fc.assert(
        fc.property(
          fc.string({ unit: fc.constantFrom(..."0123456789abcdef"), minLength: 64, maxLength: 64 }),
          (chain) => {
            const bound = boundId(id, chain);
            expect(bound).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
            expect(bound.slice(0, 19)).toBe(id.slice(0, 19));
            expect(boundId(bound, chain)).toBe(id);
          },
        ),
      );
    });

    it("should be left alone where there is no chain, or no UUID", () => {
      expect(boundId(draft(0).id, "")).toBe(draft(0).id);
      expect(boundId("no uuid", "0".repeat(64))).toBe("no uuid");
    });
  });

  describe("that somebody else wrote", () => {
    let deep: unknown = {};
    for (let depth = 0; depth < 100_000; depth++) deep = { deep };

    it.each<[string, ServerEvent, { data: string; metadata: string }]>([
      ["without metadata", foreign({}, undefined), { data: "{}", metadata: "" }],
      ["with a list for metadata", foreign([], []), { data: "[]", metadata: "" }],
      ["with a text for data", foreign("no json", {}), { data: '"no json"', metadata: "{}" }],
      ["with a chain that is none", foreign({}, { chain: 7, a: 1 }), { data: "{}", metadata: '{"a":1,"chain":7}' }],
      ["with nothing but a chain", foreign({}, { chain: "x" }), { data: "{}", metadata: '{"chain":"x"}' }],
      ["with nothing but payloads", foreign({}, { payloads: {} }), { data: "{}", metadata: '{"payloads":{}}' }],
      ["with half a character", foreign({ a: "\ud800" }, { b: "\udfff" }), { data: "", metadata: "" }],
      ["nested beyond reason", foreign(deep, { chain: deep }), { data: "", metadata: "" }],
      [
        "of bytes",
        { ...foreign({}, {}), content: { kind: "bytes", data: new Uint8Array(3) } },
        { data: "", metadata: "" },
      ],
      ["of bytes in metadata", foreign({}, new Uint8Array(3)), { data: "{}", metadata: "" }],
    ])("should come back as what they are, %s", (_, event, texts) => {
      expect(toRecorded(event)).toMatchObject({ id: draft(0).id, type: "other", ...texts });
    });
  });
});
