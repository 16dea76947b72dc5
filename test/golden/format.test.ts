/**
 * Version 1 of the ledger's format, told without the product's code: layout of ids, domains of digests, the chain, and
 * records field by field. What is wrong here was released wrong.
 */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { goldensOf, releases } from "../support/golden.js";
import type { LedgerRows } from "../support/ledgers.js";

const FIRST = "0.1.0";
const goldens = releases().flatMap((release) => goldensOf(release).map((golden) => ({ release, ...golden })));

function ledger(name: string): LedgerRows {
  const golden = goldens.find((golden) => golden.release === FIRST && golden.name === name);
  if (golden === undefined) throw new Error(`no golden ledger ${name}`);
  return golden.rows;
}

function record(name: string, revision: number) {
  const { id, type, data, metadata } = ledger(name).events[revision]!;
  return { id, type, data: JSON.parse(data), metadata: JSON.parse(metadata) };
}

function sha256(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("hex");
}

type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };

/** RFC 8785: for what stands in events, ECMAScript's own printing with members in the order of their UTF-16 units. */
function jcs(value: Value): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(jcs).join(",")}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${jcs(member)}`).join(",")}}`;
}

describe("an event id", () => {
  /** Most significant bit first. */
  function bitsOfUlid(ulid: string): string {
    const letters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    const bits = [...ulid].map((letter) => letters.indexOf(letter).toString(2).padStart(5, "0")).join("");
    expect(bits).toHaveLength(130);
    return bits.slice(2);
  }

  function bitsOfUuid(uuid: string): string {
    expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    return [...uuid.replaceAll("-", "")]
      .map((digit) => Number.parseInt(digit, 16).toString(2).padStart(4, "0"))
      .join("");
  }

  it("should be a UUIDv8 of 48 bits of time, 58 of randomness and 16 of revision, in every golden ledger", () => {
    for (const { rows } of goldens) {
      for (const { id, stream, revision } of rows.events) {
        const ulid = bitsOfUlid(stream.slice("hookdispatch-".length));
        const bits = bitsOfUuid(id);
        expect(bits.slice(0, 48)).toBe(ulid.slice(0, 48));
        expect(bits.slice(48, 52)).toBe("1000");
        expect(bits.slice(64, 66)).toBe("10");
        const random = bits.slice(52, 64) + bits.slice(66, 112);
        expect(random).toBe(ulid.slice(-58));
        expect(bits.slice(112)).toBe(revision.toString(2).padStart(16, "0"));
      }
    }
  });

  it("should be this one", () => {
    expect(record("session-and-turn", 2).id).toBe("018bcfe5-6800-8da4-a11a-30e0bc000002");
  });
});

describe("a digest", () => {
  it("should be SHA-256 over its domain and the bytes: payloads that travel with their event", () => {
    let met = 0;
    for (const { rows } of goldens) {
      for (const { metadata } of rows.events) {
        const { payloads = {} }: { payloads?: Record<string, string> } = JSON.parse(metadata);
        for (const [digest, base64] of Object.entries(payloads)) {
          met++;
          expect(digest).toBe(`sha256:${sha256("hookledger/payload/v1\0", Buffer.from(base64, "base64"))}`);
          expect(Buffer.from(base64, "base64").byteLength).toBeLessThanOrEqual(4096);
        }
      }
    }
    expect(met).toBeGreaterThan(30);
  });

  it("should be SHA-256 over its domain and the bytes: configurations and large payloads in the blob table", () => {
    for (const { rows } of goldens) {
      const configs = new Set(
        rows.events.flatMap(({ type, data }) => (type === "started" ? JSON.parse(data).configDigest : [])),
      );
      for (const { digest, bytes } of rows.blobs) {
        const domain = configs.has(digest) ? "config" : "payload";
        expect(digest).toBe(`sha256:${sha256(`hookledger/${domain}/v1\0`, bytes)}`);
      }
      for (const digest of configs) expect(rows.blobs.map((blob) => blob.digest)).toContain(digest);
    }
    const sizes = ledger("large-payload").blobs.map(({ bytes }) => bytes.byteLength);
    expect(sizes.filter((size) => size > 4096)).toHaveLength(2);
  });

  it("should archive the configuration as text, with env() as written", () => {
    const [config] = ledger("allow").blobs;
    expect(Buffer.from(config!.bytes).toString()).toBe(
      '{"files":["agent.hcl"],"hooks":[],"settings":{"token":{"env":"GUARD_TOKEN"}}}',
    );
  });
});

describe("the chain", () => {
  it.each(goldens)("should bind every event to all before it: $release $name", ({ rows }) => {
    for (const head of rows.heads) {
      const events = rows.events.filter(({ stream }) => stream === head.stream);
      let chain = "";
      for (const [place, event] of events.entries()) {
        const { chain: recorded, payloads: _, ...metadata } = JSON.parse(event.metadata);
        const covered = jcs({ data: JSON.parse(event.data), metadata, revision: place, type: event.type });
        chain = sha256("hookledger/chain/v1\0", chain, covered);
        expect(recorded).toBe(chain);
        expect(event.revision).toBe(place);
        expect(event.data).toBe(jcs(JSON.parse(event.data)));
      }
      const first: { $correlationId?: string } = JSON.parse(events[0]!.metadata);
      expect(head).toEqual({
        stream: head.stream,
        revision: events.length - 1,
        chain,
        session: first.$correlationId ?? null,
        position: events[0]!.position,
      });
    }
  });
});

describe("a record, field by field", () => {
  it("should be this started", () => {
    const { type, data, metadata } = record("session-and-turn", 0);
    expect(type).toBe("started");
    expect(data).toEqual({
      dispatchId: "01HF7YAT00KG9NPT9138RE1F00",
      point: "pre-tool-call",
      composition: "chain",
      reducerVersion: 1,
      flags: [],
      vetoBearing: true,
      observe: "concurrent",
      budgetMs: null,
      subscribers: [
        {
          index: 0,
          id: "guard",
          provider: "guard",
          mode: "veto",
          timeoutMs: 1000,
          producer: { name: "guard", source: "host" },
        },
      ],
      configDigest: "sha256:c39809310783eb9fdc6a2bd29dbab3ca491d86bd5e82f16769fc76c2a594a9e5",
      descriptorDigest: "sha256:2f954d0a67a23e10c2135cafc2a8d5863ef82e466a118b58067ac7c7fbce7208",
      input: {
        digest: "sha256:607f55099952a35271d00840497443beeed03f09807eac725a70921a38cd0057",
        size: 163,
        encoding: "proto",
      },
    });
    expect(metadata).toEqual({
      $correlationId: 'Sitzung "1"',
      at: "2023-11-14T22:13:20.000Z",
      engineVersion: "0.1.0",
      offsetNs: 0,
      schemaVersion: 1,
      traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
      turn: "tour n° 1",
      writer: "01HF7YAT00WR1TERWR1TERWR1T",
      chain: "7ddbcc47cdb11303c79fd70088909e1bd02192e1509d1a358ffeae72804065b2",
      payloads: {
        "sha256:607f55099952a35271d00840497443beeed03f09807eac725a70921a38cd0057":
          "IqABCp0BCgZjYWxsLTESCndyaXRlX2ZpbGUaawoLCgVlbXB0eRICKgAKCwoFZm9yY2USAiABCiYKBWxpbmVzEh0yGwoVGhMxMjcuMC4wLjEgbG9jYWxob3N0CgIIAAoRCgRtb2RlEgkRAAAAAABAekAKFAoEcGF0aBIMGgovZXRjL2hvc3RzIhQKA3MtMRIDdC0xGggvc3J2L2FwcPo+AwECAw==",
      },
    });
  });

  it("should keep what only some records have", () => {
    expect(record("producers", 0).data.subscribers[0].producer).toEqual({
      name: "guard",
      version: "1.2.3",
      source: "grpc+unix:guard.sock",
      category: "tool",
      digest: `sha256:${"5".repeat(64)}`,
    });
    expect(record("allow", 0).data.subscribers[1]).toMatchObject({
      id: "auditor:strict",
      provider: "auditor",
      subscriptionId: "strict",
    });
    expect(record("skipped", 0).data.subscribers[0]).toMatchObject({ skip: "disabled by its owner" });
    expect(record("shadow", 0).data.subscribers[0]).toMatchObject({ shadow: true });
    expect(record("redacted", 0).data.flags).toEqual(["redacted"]);
    expect(record("budget-denies", 0).data.budgetMs).toBe(40);
    expect(record("observers-sequential", 0).data.observe).toBe("sequential");
    expect(record("observers-detached", 0).data.observe).toBe("detached");
    expect(record("warnings", 2).data).toEqual({
      class: "allow",
      index: 0,
      warnings: ["the answer came with unknown fields"],
    });
    expect(record("deny-timeout-noticed-late", 2).metadata).toMatchObject({ offsetNs: 300_000_000, lagMs: 50 });
  });

  it("should be these invocations, settlements and ends", () => {
    const saw = "sha256:607f55099952a35271d00840497443beeed03f09807eac725a70921a38cd0057";
    expect(record("allow", 1)).toMatchObject({ type: "subscriber-invoked", data: { index: 0, saw } });
    expect(record("allow", 2)).toMatchObject({ type: "outcome", data: { class: "allow", index: 0 } });
    expect(record("allow", 5).data).toEqual({ decision: "allow", decidedBy: "kernel:default", payload: saw });
    expect(record("deny-plugin", 2).data).toEqual({ class: "deny", index: 0, reason: "writes outside the workspace" });
    expect(record("deny-plugin", 3).data).toEqual({ decision: "deny", decidedBy: "guard", payload: saw });
    expect(record("deny-timeout", 2)).toMatchObject({ type: "timeout", data: { index: 0, budgetMs: 250 } });
    expect(record("deny-crash", 2).data).toEqual({
      class: "failed",
      index: 0,
      error: { category: "PROCESS_CRASHED", message: "the connection was lost" },
    });
    expect(record("deny-invalid", 2).data).toEqual({
      class: "invalid",
      index: 0,
      error: { category: "INVALID_RESPONSE", message: "decision 7 is unknown" },
    });
    expect(record("transform-rejected", 3)).toMatchObject({
      type: "aborted",
      data: {
        cause: "hook_error",
        index: 0,
        error: { category: "INVALID_RESPONSE", message: "changed immutable field model.id" },
      },
    });
    expect(record("cancelled", 3).data).toEqual({ cause: "cancelled", inFlight: [0, 1] });
    expect(record("cancelled-before", 1).data).toEqual({ cause: "cancelled" });
    expect(record("store-unavailable", 2).data).toEqual({ cause: "store_unavailable", inFlight: [0] });
    expect(record("unconfirmed", 4).data).toEqual({ cause: "unconfirmed" });
    expect(record("recovered", 3)).toMatchObject({
      type: "aborted",
      data: { cause: "recovered", inFlight: [0, 1] },
      metadata: { writer: "01HF7YAT00REC0VERREC0VERRE", $correlationId: "s-1" },
    });
    expect(record("lost", 6).data).toEqual({ class: "lost", index: 0 });
  });

  it("should be this verdict of policy", () => {
    const { type, data } = record("policy-mixed", 2);
    expect(type).toBe("outcome");
    expect(data).toEqual({
      class: "policy",
      index: 0,
      payload: { digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), size: expect.any(Number), encoding: "proto" },
      items: [
        { itemId: "read", decision: "allow", decidedBy: "policy:default" },
        { itemId: "write", decision: "ask", decidedBy: "policy:writes" },
        { itemId: "delete", decision: "deny", decidedBy: "policy:no-deletes", reason: "deleting is for people" },
        { itemId: "denied", decision: "deny", decidedBy: "user" },
      ],
    });
  });
});

describe("a run of message hooks, field by field", () => {
  /** JSON that some event of the run carries. */
  function carried(name: string): ReadonlyMap<string, string> {
    return new Map(
      ledger(name).events.flatMap(({ metadata }) => {
        const { payloads = {} }: { payloads?: Record<string, string> } = JSON.parse(metadata);
        return Object.entries(payloads).map(([digest, base64]) => [digest, Buffer.from(base64, "base64").toString()]);
      }),
    );
  }

  it("should be this started, whose input is an event with its context", () => {
    const { data, metadata } = record("messages-skipped", 0);
    const producer = { source: "plugin", version: "1.2.3" };
    const handler = { mode: "handler", timeoutMs: null };
    expect(data).toEqual({
      dispatchId: expect.stringMatching(/^[0-9A-Z]{26}$/),
      point: "before_agent_reply",
      composition: "claim",
      reducerVersion: 1,
      flags: [],
      vetoBearing: false,
      observe: "sequential",
      budgetMs: null,
      subscribers: [
        {
          ...handler,
          index: 0,
          id: "cron",
          provider: "cron",
          skip: "only for trigger cron",
          producer: { name: "cron", ...producer },
        },
        { ...handler, index: 1, id: "all", provider: "all", producer: { name: "all", ...producer } },
      ],
      configDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      descriptorDigest: "sha256:2f954d0a67a23e10c2135cafc2a8d5863ef82e466a118b58067ac7c7fbce7208",
      input: { digest: expect.stringMatching(/^sha256:/), size: 81, encoding: "json" },
    });
    expect(metadata).toMatchObject({ $correlationId: "s-1" });
    expect(carried("messages-skipped").get(data.input.digest)).toBe(
      '{"context":{"sessionKey":"s-1","trigger":"user"},"event":{"cleanedBody":"hello"}}',
    );
  });

  it("should carry canonical JSON", () => {
    let met = 0;
    for (const { name } of goldens.filter(({ name }) => name.startsWith("messages-"))) {
      for (const text of carried(name).values()) {
        met++;
        expect(text).toBe(jcs(JSON.parse(text)));
      }
    }
    expect(met).toBeGreaterThan(30);
  });

  it("should claim with a result, and decline without a word", () => {
    expect(record("messages-claimed", 2).data).toEqual({ class: "declined", index: 0 });
    expect(record("messages-claimed", 4).data).toEqual({
      class: "failed",
      index: 1,
      error: { category: "UNKNOWN", message: "no such table" },
    });
    const { payload } = record("messages-claimed", 6).data;
    expect(record("messages-claimed", 6).data).toEqual({ class: "claimed", index: 2, payload });
    expect(carried("messages-claimed").get(payload.digest)).toBe('{"handled":true,"text":"Hello yourself."}');
    expect(record("messages-claimed", 7).data).toEqual({
      decision: "allow",
      decidedBy: "faq",
      payload: payload.digest,
    });
  });

  it("should define by field, in the order of the handlers, each seeing the original", () => {
    const events = ledger("messages-rewritten").events.map(({ type, data }) => ({ type, data: JSON.parse(data) }));
    const { input, subscribers } = events[0]!.data;
    expect(subscribers.map(({ id }: { id: string }) => id)).toEqual(["first", "scrub", "mark", "slow", "same"]);
    expect(subscribers.map(({ timeoutMs }: { timeoutMs: number }) => timeoutMs)).toEqual([
      15000, 15000, 15000, 15, 15000,
    ]);
    for (const { type, data } of events) if (type === "subscriber-invoked") expect(data.saw).toBe(input.digest);
    const texts = carried("messages-rewritten");
    const sets = events.flatMap(({ data }) => (data.set === undefined ? [] : [data.set]));
    const told = sets.map((set) =>
      Object.fromEntries(
        Object.entries(set).map(([field, ref]) => [field, texts.get((ref as { digest: string }).digest)]),
      ),
    );
    expect(told).toEqual([
      { content: '""' },
      { content: '"the key is gone"' },
      { metadata: '{"score":3,"tags":["a"]}' },
      { content: '"the key is gone"', cancelReason: '"kept for later"' },
    ]);
    expect(events.at(-1)!.data).toEqual({
      decision: "allow",
      decidedBy: "kernel:default",
      payload: sets[3].content.digest,
    });
  });

  it("should cancel with what belongs to it, or with nothing", () => {
    expect(Object.keys(record("messages-cancelled", 4).data.set).sort()).toEqual([
      "cancelReason",
      "content",
      "metadata",
    ]);
    expect(record("messages-cancelled", 5).data).toEqual({
      decision: "deny",
      decidedBy: "guard",
      payload: record("messages-cancelled", 2).data.set.content.digest,
    });
    expect(record("messages-cancelled-bare", 2).data).toEqual({ class: "cancelled", index: 0 });
    expect(record("messages-waterfall-cancelled", 4).data).toMatchObject({ class: "cancelled", reason: "it is late" });
  });

  it("should replace whole documents in a waterfall", () => {
    const { payload } = record("messages-waterfall", 8).data;
    expect(record("messages-waterfall", 8).data).toEqual({ class: "rewritten", index: 3, payload });
    const document = JSON.parse(carried("messages-waterfall").get(payload.digest)!);
    expect(document.event).toMatchObject({ kind: "final", payload: { text: "", audioAsVoice: true } });
    expect(document.event.payload).not.toHaveProperty("mediaUrls");
  });

  it("should say in its flags that failures block", () => {
    expect(record("messages-blocked", 0).data.flags).toEqual(["blocks_on_failure"]);
    expect(record("messages-blocked", 2)).toMatchObject({ type: "timeout", data: { index: 0, budgetMs: 200 } });
    expect(record("messages-blocked", 3).data).toMatchObject({ decision: "deny", decidedBy: "guard" });
  });

  it("should name what has no JSON form by its kind", () => {
    const { payload } = record("messages-unrecordable", 2).data;
    expect(JSON.parse(carried("messages-unrecordable").get(payload.digest)!)).toEqual({
      handled: true,
      big: { $unrecordable: "bigint" },
      no: { $unrecordable: "NaN" },
      bytes: { $unrecordable: "bytes" },
      self: { $unrecordable: "cycle" },
    });
  });

  it("should end as these", () => {
    expect(record("messages-aborted", 2).data).toEqual({ cause: "cancelled", inFlight: [0] });
    expect(record("messages-recovered", 4)).toMatchObject({
      data: { cause: "recovered", inFlight: [0] },
      metadata: { writer: "01HF7YAT00REC0VERREC0VERRE" },
    });
    expect(record("messages-recovered-cancelled", 3)).toMatchObject({
      data: { decision: "deny", decidedBy: "guard" },
      metadata: { writer: "01HF7YAT00REC0VERREC0VERRE" },
    });
  });
});

describe("a golden ledger", () => {
  it("should hold no path, no stack and nothing secret", () => {
    for (const { text } of goldens) {
      const decoded = text.replace(
        /[A-Za-z0-9+/]{16,}={0,2}/g,
        (base64) => base64 + Buffer.from(base64, "base64").toString("latin1"),
      );
      for (const secret of ["hunter2", "12345678", process.cwd(), "    at "]) expect(decoded).not.toContain(secret);
    }
  });
});
