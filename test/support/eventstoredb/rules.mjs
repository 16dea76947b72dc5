// @ts-check
/** @import { Decision, Expected, StreamState } from "./types.js" */

/**
 * The server's decision about an append: versions and idempotency. Written after the behaviour of its index writer.
 *
 * An exact revision that is behind compares ids position by position: all there, repeated; the first one differs, wrong
 * version (or, for "none" on a soft-deleted stream, written); a later one differs, wrong version. "any" and "exists" look
 * each id up in what the server still remembers, wherever in the stream it is.
 *
 * @param {StreamState} stream
 * @param {Expected} expected
 * @param {readonly string[]} ids
 * @returns {Decision}
 */
export function decide(stream, expected, ids) {
  if (stream.tombstoned) return { kind: "deleted" };
  if (expected === "exists") {
    if (stream.softDeleted) return { kind: "deleted" };
    if (stream.last < 0 && !stream.hasMetadata) return { kind: "wrong-version" };
  }
  if (expected === "exists" || expected === "any") return decideById(stream, ids);

  const revision = expected === "none" ? -1 : expected;
  if (revision > stream.last) return { kind: "wrong-version" };
  if (revision === stream.last) return { kind: "write", undelete: stream.softDeleted };
  return decideByPosition(stream, revision, ids);
}

/**
 * @param {StreamState} stream
 * @param {readonly string[]} ids
 * @returns {Decision}
 */
function decideById(stream, ids) {
  let last = -1;
  for (const [index, id] of ids.entries()) {
    const revision = stream.revisionOf(id);
    if (revision === undefined) {
      return index === 0 ? { kind: "write", undelete: stream.softDeleted } : { kind: "wrong-version" };
    }
    last = revision;
  }
  return ids.length === 0 ? { kind: "write", undelete: stream.softDeleted } : { kind: "repeat", last };
}

/**
 * @param {StreamState} stream
 * @param {number} revision
 * @param {readonly string[]} ids
 * @returns {Decision}
 */
function decideByPosition(stream, revision, ids) {
  for (const [index, id] of ids.entries()) {
    if (stream.idAt(revision + 1 + index) === id) continue;
    const reborn = index === 0 && revision === -1 && stream.softDeleted;
    return reborn ? { kind: "write", undelete: true } : { kind: "wrong-version" };
  }
  return ids.length === 0 ? { kind: "wrong-version" } : { kind: "repeat", last: revision + ids.length };
}
