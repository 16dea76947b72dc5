// @ts-check
/** What a stream's metadata hides from reads of the stream. In `$all` the events stay. */
/** @import { Recorded } from "./types.js" */

/** `$tb` of a soft-deleted stream and revision of a tombstone: 2^63 - 1, which a double rounds up. */
export const DELETED = 2 ** 63;

/** @typedef {{ readonly maxCount?: number, readonly maxAgeMs?: number, readonly truncateBefore?: number }} Retention */

/** A metadata stream shows its last event only. @type {Retention} */
const OF_METADATA = { maxCount: 1 };

/**
 * @param {string} stream
 * @param {Recorded | undefined} metadata last event of its metadata stream
 * @returns {Retention}
 */
export function retentionOf(stream, metadata) {
  if (stream.startsWith("$$")) return OF_METADATA;
  if (metadata === undefined) return {};
  const raw = parse(metadata.data);
  const maxCount = number(raw["$maxCount"]);
  const maxAge = number(raw["$maxAge"]);
  const truncateBefore = number(raw["$tb"]);
  return {
    ...(maxCount === undefined ? {} : { maxCount }),
    ...(maxAge === undefined ? {} : { maxAgeMs: maxAge * 1000 }),
    ...(truncateBefore === undefined ? {} : { truncateBefore }),
  };
}

/**
 * Is this event of a stream whose last revision is `last` shown to who reads the stream?
 * @param {Retention} retention
 * @param {Recorded} event
 * @param {number} last
 * @param {number} now ms since 1970
 */
export function isShown({ maxCount, maxAgeMs, truncateBefore }, event, last, now) {
  if (truncateBefore !== undefined && event.revision < truncateBefore) return false;
  if (maxCount !== undefined && event.revision <= last - maxCount) return false;
  return maxAgeMs === undefined || event.created >= now - maxAgeMs;
}

/**
 * The metadata with another `$tb`, everything else as it was.
 * @param {Recorded | undefined} metadata
 * @param {number} truncateBefore
 */
export function truncatedAt(metadata, truncateBefore) {
  const raw = metadata === undefined ? {} : parse(metadata.data);
  return Buffer.from(JSON.stringify({ ...raw, $tb: truncateBefore }));
}

/** Written by hand: JSON.stringify prints the rounded number. */
export const SOFT_DELETED = Buffer.from('{"$tb":9223372036854775807}');

/**
 * @param {Uint8Array} data
 * @returns {Record<string, unknown>}
 */
function parse(data) {
  try {
    const value = JSON.parse(Buffer.from(data).toString());
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** @param {unknown} value */
function number(value) {
  return typeof value === "number" ? value : undefined;
}
