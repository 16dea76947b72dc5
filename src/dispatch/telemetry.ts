/** OpenTelemetry, API only. Whatever a tracer or meter does, even throwing, changes no step of a dispatch. */
import {
  type Context,
  context,
  type Meter,
  metrics,
  type ObservableCallback,
  type Span,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Subscriber } from "../core/events.js";
import type { HookErrorRecord } from "../core/result.js";
import { ENGINE_VERSION } from "../version.js";

const PREFIX = "pluggableharness";

export type Telemetry = {
  /** Opens the span of one dispatch. */
  dispatch(point: string, session: string | undefined): DispatchTelemetry;
  /** Counts a dispatch that the ledger could not keep. */
  storeFailed(point: string): void;
  /** Counts an append that the ledger refused because too much waits to be written. */
  backlogRefused(): void;
  /** Shows the bytes that wait to be written, until the returned function is called. */
  watchBacklog(pendingBytes: () => number): () => void;
};

export type DispatchTelemetry = {
  readonly traceparent: string | undefined;
  /** Opens a nested span; all of a dispatch's are siblings. */
  subscriber(subscriber: Subscriber): SubscriberTelemetry;
  end(): void;
};

export type SubscriberTelemetry = {
  readonly traceparent: string | undefined;
  /** Counts an answer that came beside the first, or too late. */
  extra(): void;
  end(error: HookErrorRecord | null): void;
};

/** By default, with the tracer and meter that are registered globally. Never throws. */
export function telemetry(givenTracer?: Tracer, givenMeter?: Meter): Telemetry {
  const tracer = givenTracer ?? guarded(() => trace.getTracer("hookledger", ENGINE_VERSION));
  const meter = givenMeter ?? guarded(() => metrics.getMeter("hookledger", ENGINE_VERSION));
  const errors = guarded(() =>
    meter?.createCounter(`${PREFIX}.hook.errors`, { description: "Failed hook subscribers" }),
  );
  const duration = guarded(() =>
    meter?.createHistogram(`${PREFIX}.hook.dispatch.duration`, {
      unit: "s",
      description: "Whole dispatch of a hook point",
    }),
  );
  const extraAnswers = guarded(() =>
    meter?.createCounter("hookledger.hook.extra_answers", { description: "Answers that came second, or too late" }),
  );
  const storeFailures = guarded(() =>
    meter?.createCounter("hookledger.store.failures", { description: "Dispatches that the ledger could not keep" }),
  );
  const refusals = guarded(() =>
    meter?.createCounter("hookledger.store.backlog_refusals", {
      description: "Appends that the ledger refused because too much waits to be written",
    }),
  );
  const pending = guarded(() =>
    meter?.createObservableGauge("hookledger.store.pending_bytes", {
      unit: "By",
      description: "Appends that the ledger has not answered yet",
    }),
  );
  return {
    backlogRefused: () => guarded(() => refusals?.add(1)),
    watchBacklog(pendingBytes) {
      const observe: ObservableCallback = (result) => guarded(() => result.observe(pendingBytes()));
      guarded(() => pending?.addCallback(observe));
      return () => guarded(() => pending?.removeCallback(observe));
    },
    storeFailed: (point) => guarded(() => storeFailures?.add(1, { [`${PREFIX}.hook.point`]: point })),
    dispatch(point, session) {
      const attributes = { [`${PREFIX}.hook.point`]: point };
      const begunAt = performance.now();
      const span = guarded(() =>
        tracer?.startSpan(`hook ${point}`, {
          attributes: session === undefined ? attributes : { ...attributes, [`${PREFIX}.session.id`]: session },
        }),
      );
      const traceparent = traceparentOf(span);
      const parent = span === undefined ? undefined : guarded(() => trace.setSpan(context.active(), span));
      return {
        traceparent,
        subscriber(subscriber) {
          const child =
            traceparent === undefined
              ? undefined
              : guarded(() => startChild(tracer, point, subscriber, session, parent));
          return {
            traceparent: child === undefined ? traceparent : (traceparentOf(child) ?? traceparent),
            extra: () =>
              guarded(() => extraAnswers?.add(1, { ...attributes, [`${PREFIX}.subscriber.mode`]: subscriber.mode })),
            end(error) {
              if (error !== null) {
                guarded(() => child?.setStatus({ code: SpanStatusCode.ERROR, message: error.category }));
                guarded(() => errors?.add(1, { ...attributes, [`${PREFIX}.subscriber.mode`]: subscriber.mode }));
              }
              guarded(() => child?.end());
            },
          };
        },
        end() {
          guarded(() => span?.end());
          guarded(() => duration?.record((performance.now() - begunAt) / 1000, attributes));
        },
      };
    },
  };
}

function startChild(
  tracer: Tracer | undefined,
  point: string,
  subscriber: Subscriber,
  session: string | undefined,
  parent: Context | undefined,
): Span | undefined {
  const { producer } = subscriber;
  const attributes = {
    [`${PREFIX}.hook.point`]: point,
    [`${PREFIX}.subscriber.mode`]: subscriber.mode,
    [`${PREFIX}.producer.name`]: producer.name,
    ...(producer.category === undefined ? {} : { [`${PREFIX}.producer.category`]: producer.category }),
    ...(producer.version === undefined ? {} : { [`${PREFIX}.producer.version`]: producer.version }),
    ...(session === undefined ? {} : { [`${PREFIX}.session.id`]: session }),
  };
  return tracer?.startSpan(`hook ${point} ${subscriber.id}`, { attributes }, parent);
}

const TRACEPARENT = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** W3C trace context of a span that a tracer really made, else undefined: it goes into the record, whatever a tracer says. */
function traceparentOf(span: Span | undefined): string | undefined {
  return guarded(() => {
    const spanContext = span?.spanContext();
    if (spanContext === undefined || !trace.isSpanContextValid(spanContext)) return undefined;
    const text = `00-${spanContext.traceId}-${spanContext.spanId}-${spanContext.traceFlags.toString(16).padStart(2, "0")}`;
    return TRACEPARENT.test(text) ? text : undefined;
  });
}

function guarded<T>(effect: () => T): T | undefined {
  try {
    return effect();
  } catch {
    return undefined;
  }
}
