/** The record is closed: what this version does not know is refused, and said, whatever the chain has to say of it. */
import { describe, expect, it } from "vitest";
import { decodeEvent } from "#src/store/record/decode.js";
import { encodeData } from "#src/store/record/encode.js";
import { Undecodable } from "#src/store/record/fields.js";
import { foldRecorded } from "#src/store/record/fold.js";
import { metadataWriter, readMetadata } from "#src/store/record/metadata.js";
import { payloadBytes } from "#src/store/record/payload-bytes.js";
import { goldensOf, releases } from "../support/golden.js";
import { SCENARIOS } from "../support/golden-scenarios.js";
import { storeOf } from "../support/ledgers.js";

const DIGEST = `sha256:${"a".repeat(64)}`;
const REF = { digest: DIGEST, size: 3, encoding: "proto" };
const ERROR = { category: "TIMEOUT", message: "late" };
const SUBSCRIBER = {
  index: 0,
  id: "a",
  provider: "a",
  mode: "veto",
  timeoutMs: 1,
  producer: { name: "a", source: "host" },
};
const STARTED = {
  dispatchId: "01K00000000000000000000001",
  point: "pre-tool-call",
  composition: "chain",
  reducerVersion: 1,
  flags: [],
  vetoBearing: true,
  observe: "concurrent",
  budgetMs: null,
  subscribers: [SUBSCRIBER],
  configDigest: DIGEST,
  descriptorDigest: DIGEST,
  input: REF,
};
const ITEM = { itemId: "i", decision: "ask", decidedBy: "policy:default" };

/** All shapes that version 1 has, each once at least. */
const SHAPES: readonly (readonly [type: string, data: object])[] = [
  ["started", STARTED],
  ["started", { ...STARTED, budgetMs: 5, flags: ["redacted"], subscribers: [] }],
  [
    "started",
    {
      ...STARTED,
      subscribers: [
        {
          ...SUBSCRIBER,
          timeoutMs: null,
          subscriptionId: "s",
          skip: "off",
          shadow: true,
          producer: { name: "a", version: "1", source: "host", category: "tool", digest: DIGEST },
        },
      ],
    },
  ],
  ["subscriber-invoked", { index: 0, saw: DIGEST }],
  ...["ack", "allow", "declined", "lost", "deny", "rewritten", "cancelled"].map(
    (name) => ["outcome", { index: 0, class: name }] as const,
  ),
  ["outcome", { index: 0, class: "ack", warnings: ["w"] }],
  ["outcome", { index: 0, class: "deny", reason: "no" }],
  ["outcome", { index: 0, class: "transformed", payload: REF }],
  ["outcome", { index: 0, class: "claimed", payload: { ...REF, encoding: "json" } }],
  ["outcome", { index: 0, class: "policy", payload: REF, items: [ITEM, { ...ITEM, reason: "r" }] }],
  ["outcome", { index: 0, class: "rewritten", payload: REF, set: { content: REF, cancelReason: REF, metadata: REF } }],
  ["outcome", { index: 0, class: "cancelled", reason: "r", payload: REF, set: {} }],
  ["outcome", { index: 0, class: "failed", error: ERROR }],
  ["outcome", { index: 0, class: "invalid", error: ERROR }],
  ["timeout", { index: 0, budgetMs: 0 }],
  ["aborted", { cause: "cancelled" }],
  ["aborted", { cause: "hook_error", index: 1, error: ERROR, inFlight: [0, 2] }],
  ["decided", { decision: "deny", decidedBy: "a", payload: DIGEST }],
];

const OPTIONAL = new Set([
  "subscriptionId",
  "skip",
  "shadow",
  "version",
  "category of producer",
  "digest of producer",
  "warnings",
  "reason",
  "set",
  "content",
  "cancelReason",
  "metadata",
  "index of aborted",
  "error of aborted",
  "inFlight",
  "payload of rewritten",
  "payload of cancelled",
]);

type Container = Record<string, unknown>;

/** Every member at every depth, with a name for the object it is in. */
function places(type: string, data: object): readonly { readonly path: readonly string[]; readonly name: string }[] {
  const found: { path: readonly string[]; name: string }[] = [];
  const visit = (value: unknown, path: readonly string[], owner: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, member] of Object.entries(value)) {
      if (!Array.isArray(value)) found.push({ path: [...path, key], name: `${key} of ${owner}` });
      visit(member, [...path, key], Array.isArray(value) ? owner : key);
    }
  };
  visit(data, [], "class" in data ? String(data.class) : type);
  return found;
}

function changed(data: object, path: readonly string[], change: (container: Container, key: string) => void): string {
  const copy: Container = structuredClone(data) as Container;
  let container = copy;
  for (const step of path.slice(0, -1)) container = container[step] as Container;
  change(container, path.at(-1)!);
  return JSON.stringify(copy);
}

function kindOf(type: string, data: string): string {
  const decoded = decodeEvent(type, data);
  return "event" in decoded ? "decoded" : decoded.kind;
}

describe("an event's data", () => {
  it.each(SHAPES)("should be read and written to the same text: %s %j", (type, data) => {
    const decoded = decodeEvent(type, JSON.stringify(data));
    expect(decoded).toEqual({ event: { type, ...data } });
    if ("event" in decoded) expect(JSON.parse(encodeData(decoded.event))).toEqual(data);
  });

  it.each(SHAPES)("should have all of its members and no other: %s %j", (type, data) => {
    expect(kindOf(type, JSON.stringify({ ...data, extra: 1 }))).toBe("undecodable");
    for (const { path, name } of places(type, data)) {
      const [key = ""] = path.slice(-1);
      const optional = OPTIONAL.has(key) || OPTIONAL.has(name);
      const gone = kindOf(
        type,
        changed(data, path, (container, key) => delete container[key]),
      );
      const unknown = kindOf(
        type,
        changed(data, path, (container, key) => Object.assign(container, { [`${key}_`]: 1 })),
      );
      const proto = kindOf(
        type,
        changed(data, path, (container) =>
          Object.defineProperty(container, "__proto__", { value: {}, enumerable: true }),
        ),
      );
      expect({ name, gone, unknown, proto }).toEqual({
        name,
        gone: optional ? "decoded" : key === "reducerVersion" ? "unknown_version" : "undecodable",
        unknown: "undecodable",
        proto: "undecodable",
      });
    }
  });

  it.each(SHAPES)("should have members of the right kind only: %s %j", (type, data) => {
    for (const { path, name } of places(type, data)) {
      const value = path.reduce<unknown>((container, key) => (container as Container)[key], data);
      const wrong = [true, 1, "\ud800", [1], { a: 1 }, null].filter((other) => {
        if (other === null) return !["budgetMs", "timeoutMs"].includes(path.at(-1)!);
        if (other === true) return value !== true;
        return typeof other !== typeof value || Array.isArray(other) !== Array.isArray(value) || other === "\ud800";
      });
      const numbers = typeof value === "number" ? [-1, 1.5, 2 ** 53, 1e300] : [];
      for (const other of [...wrong, ...numbers]) {
        const kind = kindOf(
          type,
          changed(data, path, (container, key) => Object.assign(container, { [key]: other })),
        );
        const wholeForNull = value === null && other === 1;
        if (wholeForNull) continue;
        expect({ name, other, kind }).toEqual({
          name,
          other,
          kind: name === "reducerVersion of started" ? "unknown_version" : "undecodable",
        });
      }
    }
  });

  it("should know its words only", () => {
    const refused: readonly (readonly [string, object])[] = [
      ["started", { ...STARTED, observe: "parallel" }],
      ["started", { ...STARTED, subscribers: [{ ...SUBSCRIBER, mode: "audit" }] }],
      ["started", { ...STARTED, subscribers: [{ ...SUBSCRIBER, shadow: false }] }],
      ["started", { ...STARTED, configDigest: DIGEST.toUpperCase() }],
      ["started", { ...STARTED, configDigest: "sha256:" }],
      ["started", { ...STARTED, input: { ...REF, encoding: "cbor" } }],
      ["outcome", { index: 0, class: "erased" }],
      ["outcome", { index: 0, class: "toString" }],
      ["outcome", { index: 0, class: "allow", payload: REF }],
      ["outcome", { index: 0, class: "failed", error: { ...ERROR, category: "BORED" } }],
      ["outcome", { index: 0, class: "policy", payload: REF, items: [{ ...ITEM, decision: "pending" }] }],
      ["aborted", { cause: "erased" }],
      ["decided", { decision: "ask", decidedBy: "a", payload: DIGEST }],
    ];
    for (const [type, data] of refused)
      expect(kindOf(type, JSON.stringify(data)), JSON.stringify(data)).toBe("undecodable");
  });

  it("should be of a type and a version that this build knows", () => {
    for (const type of ["", "erased", "Started", "__proto__", "constructor", "decided\0"]) {
      expect(decodeEvent(type, "{}")).toEqual({ kind: "unknown_type", found: type });
    }
    expect(decodeEvent("x".repeat(100), "{}")).toEqual({ kind: "unknown_type", found: "x".repeat(64) });
    for (const version of [0, 2, 1.5]) {
      const data = JSON.stringify({ ...STARTED, reducerVersion: version, whatever: "a newer one has" });
      expect(decodeEvent("started", data)).toEqual({ kind: "unknown_version", found: `reducer version ${version}` });
    }
  });

  it.each(["", "{", "[]", "null", "1", '"text"', "{}\0", `${"[".repeat(200_000)}${"]".repeat(200_000)}`])(
    "should be an object: %#",
    (data) => {
      expect(["undecodable", "unknown_version"]).toContain(kindOf("started", data));
      expect(kindOf("decided", data)).toBe("undecodable");
    },
  );
});

describe("an event's metadata", () => {
  const own = { at: "2026-01-01T00:00:00.000Z", offsetNs: 5, lagMs: 2 };
  const whole = { engineVersion: "1", writer: "w", session: "s", causationId: "c", turn: "t", traceparent: "p" };

  it("should be written in canonical order, with what there is", () => {
    expect(metadataWriter({ engineVersion: "1", writer: "w" })({ at: own.at, offsetNs: 5 })).toBe(
      `{"at":"${own.at}","engineVersion":"1","offsetNs":5,"schemaVersion":1,"writer":"w"}`,
    );
    expect(metadataWriter(whole)(own)).toBe(
      `{"$causationId":"c","$correlationId":"s","at":"${own.at}","engineVersion":"1","lagMs":2,"offsetNs":5,"schemaVersion":1,"traceparent":"p","turn":"t","writer":"w"}`,
    );
  });

  it("should be read again, and have no other member", () => {
    const written: object = { ...JSON.parse(metadataWriter(whole)(own)), chain: "c" };
    expect(readMetadata(written)).toMatchObject({ ...whole, ...own, chain: "c" });
    expect(() => readMetadata({ ...written, extra: 1 })).toThrow(Undecodable);
    for (const key of ["at", "chain", "engineVersion", "offsetNs", "writer", "schemaVersion"]) {
      expect(() => readMetadata({ ...written, [key]: undefined }), key).toThrow(Undecodable);
    }
    expect(() => readMetadata({ ...written, payloads: { [DIGEST]: 1 } })).toThrow(Undecodable);
    expect(readMetadata({ ...written, schemaVersion: 2, whatever: "a newer one has" })).toEqual({ unknownVersion: 2 });
    expect(readMetadata({ ...written, schemaVersion: 0 })).toEqual({ unknownVersion: 0 });
  });
});

describe("a fold of recorded events", () => {
  const goldens = releases().flatMap((release) => goldensOf(release));
  const { rows } = goldens.find(({ name }) => name === "transform")!;

  it("should stop at the revision that is asked for", () => {
    for (const until of rows.events.keys()) {
      expect(foldRecorded(rows.events, until)).toMatchObject({ state: { revision: until + 1 }, failure: null });
    }
  });

  it("should name a gap", () => {
    expect(foldRecorded(rows.events.toSpliced(3, 1))).toMatchObject({
      failure: { revision: 3, kind: "missing_event" },
    });
    expect(Object.keys(SCENARIOS)).toContain("transform");
  });

  it("should find the bytes of each payload, and tell those that were altered", async () => {
    const digest = JSON.parse(rows.events[0]!.data).input.digest;
    const found = await payloadBytes(storeOf(rows), rows.events, digest);
    expect(found.kind).toBe("found");
    expect(await payloadBytes(storeOf(rows), [], digest)).toEqual({ kind: "missing" });
    const altered = { ...rows, blobs: [{ digest, bytes: Uint8Array.of(1) }] };
    expect(await payloadBytes(storeOf(altered), [], digest)).toMatchObject({ kind: "altered" });
  });
});
