/** The real OpenTelemetry SDK, kept in memory: what a dispatcher told of itself. */
import type { Attributes } from "@opentelemetry/api";
import { type DataPoint, type Histogram, MeterProvider, MetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from "@opentelemetry/sdk-trace-base";

class Collector implements SpanProcessor {
  readonly ended: ReadableSpan[] = [];
  /** Starts and ends as they happened. */
  readonly course: string[] = [];

  onStart(span: ReadableSpan): void {
    this.course.push(`+ ${span.name}`);
  }
  onEnd(span: ReadableSpan): void {
    this.course.push(`- ${span.name}`);
    this.ended.push(span);
  }
  async forceFlush(): Promise<void> {}
  async shutdown(): Promise<void> {}
}

class Reader extends MetricReader {
  protected async onForceFlush(): Promise<void> {}
  protected async onShutdown(): Promise<void> {}
}

export type Measured = { readonly name: string; readonly unit: string; readonly points: readonly Point[] };
type Point = { readonly attributes: Attributes; readonly value: number; readonly count?: number };

export class Observatory {
  readonly spans = new Collector();
  readonly tracer = new BasicTracerProvider({ spanProcessors: [this.spans] }).getTracer("test");
  readonly #reader = new Reader();
  readonly meter = new MeterProvider({ readers: [this.#reader] }).getMeter("test");

  span(name: string): ReadableSpan {
    const found = this.spans.ended.filter((span) => span.name === name);
    if (found.length !== 1) throw new Error(`${found.length} spans are called ${name}`);
    return found[0]!;
  }

  /** All metrics by name. Of a histogram: the sum, and how many values. */
  async metrics(): Promise<ReadonlyMap<string, Measured>> {
    const { resourceMetrics } = await this.#reader.collect();
    return new Map(
      resourceMetrics.scopeMetrics
        .flatMap(({ metrics }) => metrics)
        .map(({ descriptor: { name, unit }, dataPoints }) => [name, { name, unit, points: dataPoints.map(pointOf) }]),
    );
  }
}

function pointOf({ attributes, value }: DataPoint<unknown>): Point {
  if (typeof value === "number") return { attributes, value };
  const { sum = 0, count } = value as Histogram;
  return { attributes, value: sum, count };
}
