import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Meter, type Span, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import type { DispatchOptions } from "#src/dispatch/dispatcher.js";
import { telemetry } from "#src/dispatch/telemetry.js";
import { openMemoryStore } from "#src/store/memory.js";
import { connectGrpc } from "#src/subscribers/grpc.js";
import { FaultyStore, fromNth, REFUSE } from "../support/faulty-store.js";
import { ack, allow, broken, delayed, deny, keep, never, type Part, Rig } from "../support/kernels.js";
import { provider } from "../support/subscriber-calls.js";
import { Peer } from "../support/subscriber-peer.js";
import { Observatory } from "../support/tracing.js";
import { VirtualClock } from "../support/virtual-clock.js";

const POINT = "pluggableharness.hook.point";
const MODE = "pluggableharness.subscriber.mode";

function observed(chain: readonly Part[], options: ConstructorParameters<typeof Rig>[0] = {}) {
  const observatory = new Observatory();
  const rig = new Rig({ ...options, chain, parts: { telemetry: telemetry(observatory.tracer, observatory.meter) } });
  return { observatory, rig };
}

describe("spans", () => {
  it("should be one a dispatch, with one nested in it a subscriber", async () => {
    const { observatory, rig } = observed([
      { mode: "observe", id: "log", does: ack },
      { mode: "veto", id: "gate", does: allow, skip: "off" },
      { mode: "veto", id: "other", does: allow },
    ]);
    await rig.dispatch({ session: "s-1" });
    const names = observatory.spans.ended.map(({ name }) => name);
    expect(names).toStrictEqual(["hook pre-tool-call log", "hook pre-tool-call other", "hook pre-tool-call"]);
    const whole = observatory.span("hook pre-tool-call");
    expect(whole.parentSpanContext).toBeUndefined();
    for (const span of observatory.spans.ended.slice(0, 2)) {
      expect(span.parentSpanContext?.spanId).toBe(whole.spanContext().spanId);
      expect(span.spanContext().traceId).toBe(whole.spanContext().traceId);
      expect(span.ended).toBe(true);
    }
  });

  it("should show concurrent observers as siblings side by side", async () => {
    const clock = new VirtualClock();
    const { observatory, rig } = observed(
      [
        { mode: "observe", id: "a", does: delayed(clock, 5, ack) },
        { mode: "observe", id: "b", does: delayed(clock, 4, ack) },
        { mode: "veto", id: "c", does: allow },
      ],
      { clock },
    );
    await rig.dispatch();
    expect(observatory.spans.course).toStrictEqual([
      "+ hook pre-tool-call",
      "+ hook pre-tool-call a",
      "+ hook pre-tool-call b",
      "- hook pre-tool-call b",
      "- hook pre-tool-call a",
      "+ hook pre-tool-call c",
      "- hook pre-tool-call c",
      "- hook pre-tool-call",
    ]);
    const parents = ["a", "b", "c"].map((id) => observatory.span(`hook pre-tool-call ${id}`).parentSpanContext?.spanId);
    expect(new Set(parents).size).toBe(1);
  });

  it("should bear the contract's attributes", async () => {
    const producer = { name: "acme", version: "1.2.3", category: "tool", source: "grpc:x" };
    const { observatory, rig } = observed([{ mode: "veto", id: "acme:gate", does: allow, producer }]);
    await rig.dispatch({ session: "s-1" });
    expect(observatory.span("hook pre-tool-call").attributes).toStrictEqual({
      [POINT]: "pre-tool-call",
      "pluggableharness.session.id": "s-1",
    });
    expect(observatory.span("hook pre-tool-call acme:gate").attributes).toStrictEqual({
      [POINT]: "pre-tool-call",
      [MODE]: "veto",
      "pluggableharness.producer.name": "acme",
      "pluggableharness.producer.version": "1.2.3",
      "pluggableharness.producer.category": "tool",
      "pluggableharness.session.id": "s-1",
    });
  });

  it("should say who failed by the category alone, which no secret is in", async () => {
    const { observatory, rig } = observed([{ mode: "veto", id: "gate", does: broken }]);
    await rig.dispatch();
    expect(observatory.span("hook pre-tool-call gate").status).toStrictEqual({
      code: SpanStatusCode.ERROR,
      message: "UNKNOWN",
    });
    expect(JSON.stringify(observatory.spans.ended.map(({ events, attributes }) => [events, attributes]))).not.toContain(
      "it broke",
    );
  });

  it("should end, each once, however the dispatch ends", async () => {
    const caller = new AbortController();
    const clock = new VirtualClock();
    const endings: [Part[], DispatchOptions, ConstructorParameters<typeof Rig>[0]?][] = [
      [
        [
          { mode: "observe", does: never },
          { mode: "veto", does: deny },
        ],
        {},
      ],
      [[{ mode: "veto", does: never }], { signal: caller.signal }],
      [[{ mode: "veto", does: never, recording: "write-ahead" }], { signal: AbortSignal.abort() }],
      [[{ mode: "transform", does: broken }], {}],
      [[{ mode: "veto", does: { class: "ack" } }], {}],
      [[{ mode: "veto", does: allow, recording: "write-ahead" }], {}, { store: refusing() }],
      [
        [{ mode: "observe", does: allow, recording: "write-ahead" }],
        {},
        { store: refusing(), settings: { observeConcurrency: "detached" } },
      ],
    ];
    for (const [chain, options, rigged] of endings) {
      const { observatory, rig } = observed(chain, { ...rigged, clock });
      clock.first(3, () => caller.abort());
      await rig.dispatch(options).catch(() => {}); // One of them is a fault of ours.
      await rig.dispatcher.idle();
      const { course } = observatory.spans;
      expect(course.filter((step) => step.startsWith("+")).length, String(chain[0]!.mode)).toBe(course.length / 2);
    }
  });
});

function refusing(): FaultyStore {
  return new FaultyStore(openMemoryStore(), fromNth(1, REFUSE));
}

describe("metrics", () => {
  it("should count failures by point and mode, and nothing else", async () => {
    const { observatory, rig } = observed([
      { mode: "observe", does: broken },
      { mode: "observe", does: broken },
      { mode: "veto", does: never },
    ]);
    await rig.dispatch({ session: "s-1" });
    const errors = (await observatory.metrics()).get("pluggableharness.hook.errors")!;
    expect(errors.points).toStrictEqual([
      { attributes: { [POINT]: "pre-tool-call", [MODE]: "observe" }, value: 2 },
      { attributes: { [POINT]: "pre-tool-call", [MODE]: "veto" }, value: 1 },
    ]);
  });

  it("should measure each dispatch in seconds, by point", async () => {
    const { observatory, rig } = observed([{ mode: "veto", does: deny }]);
    await rig.dispatch({ session: "s-1" });
    await rig.dispatch();
    const metrics = await observatory.metrics();
    const duration = metrics.get("pluggableharness.hook.dispatch.duration")!;
    expect(duration.unit).toBe("s");
    expect(duration.points).toMatchObject([{ attributes: { [POINT]: "pre-tool-call" }, count: 2 }]);
    expect(Object.keys(duration.points[0]!.attributes)).toStrictEqual([POINT]);
    expect(duration.points[0]!.value).toBeGreaterThan(0);
    expect(duration.points[0]!.value).toBeLessThan(5);
    expect(metrics.get("pluggableharness.hook.errors")?.points ?? []).toStrictEqual([]);
  });

  it("should count an answer that comes too late, and no failure that does", async () => {
    const clock = new VirtualClock();
    const late = (answer: Part["does"]) => ({ timeoutMs: 5, does: delayed(clock, 9, answer) });
    const { observatory, rig } = observed(
      [
        { mode: "observe", ...late(ack) },
        { mode: "observe", ...late(broken) },
        { mode: "veto", ...late(allow) },
      ],
      { clock },
    );
    expect(await rig.dispatch()).toMatchObject({ allowed: false });
    expect((await observatory.metrics()).get("hookledger.hook.extra_answers")!.points).toStrictEqual([
      { attributes: { [POINT]: "pre-tool-call", [MODE]: "observe" }, value: 1 },
      { attributes: { [POINT]: "pre-tool-call", [MODE]: "veto" }, value: 1 },
    ]);
  });

  it("should count what the ledger could not keep", async () => {
    const { observatory, rig } = observed([{ mode: "veto", does: allow }], { store: refusing() });
    await rig.dispatch();
    expect((await observatory.metrics()).get("hookledger.store.failures")!.points).toStrictEqual([
      { attributes: { [POINT]: "pre-tool-call" }, value: 1 },
    ]);
  });

  it("should count a late observer's outcome that the ledger could not keep", async () => {
    const clock = new VirtualClock();
    const { observatory, rig } = observed([{ mode: "observe", does: delayed(clock, 5, ack) }], {
      clock,
      settings: { observeConcurrency: "detached" },
      store: new FaultyStore(openMemoryStore(), fromNth(2, REFUSE)),
    });
    expect(await rig.dispatch()).toMatchObject({ recorded: true });
    await rig.dispatcher.idle();
    expect((await observatory.metrics()).get("hookledger.store.failures")!.points).toMatchObject([{ value: 1 }]);
  });
});

describe("the trace context", () => {
  it("should be recorded, and be handed to each subscriber as its own span's", async () => {
    const { observatory, rig } = observed([{ mode: "veto", id: "gate", does: allow }]);
    const { dispatchId } = await rig.dispatch();
    const whole = observatory.span("hook pre-tool-call").spanContext();
    const own = observatory.span("hook pre-tool-call gate").spanContext();
    expect(rig.calls[0]!.call.traceparent).toBe(`00-${own.traceId}-${own.spanId}-01`);
    const { metadata } = await rig.recorded(dispatchId);
    for (const { traceparent } of metadata) expect(traceparent).toBe(`00-${whole.traceId}-${whole.spanId}-01`);
  });

  it("should reach a subscriber over gRPC", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hookledger-trace-"));
    const peer = await Peer.start({ listen: join(folder, "peer.sock") });
    const source = { kind: "grpc", transport: "unix", target: peer.target, insecure: false } as const;
    const subscriber = await connectGrpc(provider(source), { maxMessageBytes: 1024 * 1024 });
    try {
      const { observatory, rig } = observed([{ mode: "veto", id: "gate", does: (call) => subscriber.invoke(call) }]);
      const result = await rig.begin({ session: "s/1" });
      expect(result.allowed).toBe(true);
      await peer.until(() => peer.calls.length === 1);
      const own = observatory.span("hook pre-tool-call gate").spanContext();
      expect(peer.calls[0]!.metadata).toMatchObject({
        traceparent: `00-${own.traceId}-${own.spanId}-01`,
        "hookledger-dispatch": result.dispatchId,
        "hookledger-session": "s%2F1",
      });
    } finally {
      await subscriber.close();
      await peer.stop();
      await rm(folder, { recursive: true });
    }
  });
});

const bang = (): never => {
  throw new Error("telemetry broke");
};
/** A thing of which nothing works. */
const hostile = new Proxy(() => {}, { get: () => bang, apply: bang });

function spanOf(spanContext: () => unknown): Span {
  const span = { spanContext, setStatus: () => span, end: () => {}, setAttribute: () => span };
  return span as never;
}

const valid = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
function flagged(traceFlags: unknown): Span {
  return spanOf(() => ({ ...valid, traceFlags }));
}

const TRACERS: readonly (readonly [string, () => Span])[] = [
  ["throws", bang],
  ["gives nothing", () => undefined as never],
  ["gives a span of which nothing works", () => hostile as never],
  ["gives a context of long flags", () => flagged({ toString: () => "f".repeat(1_000_000) })],
  ["gives a context of flags that are no text", () => flagged({ toString: () => "\ud800" })],
  ["gives a context of flags beyond a byte", () => flagged(4096)],
  [
    "gives another context each time",
    () => {
      let asked = 0;
      return spanOf(() => ({
        ...valid,
        traceFlags: 1,
        get traceId() {
          return asked++ % 2 === 0 ? valid.traceId : "x\n";
        },
      }));
    },
  ],
  ["gives ids in capitals", () => spanOf(() => ({ ...valid, traceId: valid.traceId.toUpperCase(), traceFlags: 1 }))],
];

describe.each([...TRACERS, ["is the real one", null] as const])("a tracer that %s", (_, startSpan) => {
  it.each(["observe", "transform", "veto"] as const)(
    "should change no event, whatever became of the dispatch: %s",
    async (mode) => {
      const chain: Part[] = [
        { mode: "observe", does: broken },
        { mode: "transform", does: keep },
        { mode, does: broken },
        { mode: "observe", does: ack },
      ];
      const { tracer, meter } = new Observatory();
      const odd = startSpan === null ? tracer : ({ startSpan } as unknown as Tracer);
      const watched = new Rig({
        chain,
        parts: { telemetry: telemetry(odd, startSpan === null ? meter : (hostile as never)) },
      });
      const plain = new Rig({ chain });
      const [one, two] = [await watched.dispatch(), await plain.dispatch()];
      expect({ ...one, payload: null }).toStrictEqual({ ...two, payload: null });
      expect(one.payload?.bytes).toStrictEqual(two.payload?.bytes);
      const [a, b] = [await watched.recorded(one.dispatchId), await plain.recorded(two.dispatchId)];
      expect(a.raw.map(({ type, data }) => [type, data])).toStrictEqual(b.raw.map(({ type, data }) => [type, data]));
      expect(a.diverged).toBeNull();
      for (const { traceparent } of a.metadata) {
        if (traceparent !== undefined) expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/);
      }
    },
  );
});

describe("telemetry that meddles", () => {
  it("should not make a subscriber be called behind an abort", async () => {
    const caller = new AbortController();
    let spans = 0;
    const tracer = {
      startSpan: () => {
        if (++spans === 2) caller.abort();
        return flagged(1);
      },
    };
    const rig = new Rig({
      chain: [{ mode: "veto", does: allow }],
      parts: { telemetry: telemetry(tracer as unknown as Tracer) },
    });
    const result = await rig.dispatch({ signal: caller.signal });
    expect(result).toMatchObject({ abortCause: "cancelled" });
    expect(rig.calls).toHaveLength(0);
    expect((await rig.recorded(result.dispatchId)).told).toStrictEqual([
      "started",
      "invoked 0",
      "aborted cancelled with 0",
    ]);
  });

  it("should not keep a kernel from being made", () => {
    expect(() => telemetry(hostile as never, hostile as unknown as Meter)).not.toThrow();
  });
});
