/** Streams in the order of their names, as every store pages through them. */
import type { StreamFilter } from "./port.js";

const CATEGORY = "hookdispatch-";
/** Sorts behind every stream name. */
const END = "\u{10FFFF}";

/** Names from `low` (inclusive) to `high` (exclusive). */
type StreamRange = { readonly low: string; readonly high: string };

/** The names that the filter's prefix and `after` leave. */
export function streamRange({ prefix = "", after, order }: StreamFilter): StreamRange {
  const low = CATEGORY + prefix;
  const high = low + END;
  if (after === undefined) return { low, high };
  return order === "oldest" ? { low: later(low, `${after}\0`), high } : { low, high: earlier(high, after) };
}

function later(a: string, b: string): string {
  return a > b ? a : b;
}

function earlier(a: string, b: string): string {
  return a < b ? a : b;
}
