/** What a cancellation says for itself, bounded: it goes to callers, logs and operators. */

import { canonicalJson } from "../../payload/canonical-json.js";
import { rawText } from "../../payload/text.js";
import type { Metadata } from "../facts.js";
import { recorded } from "../recorded.js";

/** UTF-16 units */
export const MAX_CANCEL_REASON = 512;
/** bytes of canonical JSON (RFC 8785) */
export const MAX_CANCEL_METADATA_BYTES = 4096;
export const MAX_CANCEL_METADATA_KEYS = 32;

export type HookEffect = { readonly cancelReason?: string; readonly metadata?: Metadata };

/**
 * Metadata comes as plain JSON, what has no JSON form as `{"$unrecordable": kind}`; metadata over a bound comes as
 * `{truncated: true, bytes}`, its full size, and `truncatedBytes` says so. `effect` is absent where nothing was said.
 */
export function boundedEffect({ cancelReason, metadata }: HookEffect): {
  readonly effect?: HookEffect;
  readonly truncatedBytes?: number;
} {
  const reason = cancelReason === undefined ? {} : { cancelReason: rawText(cancelReason, MAX_CANCEL_REASON) };
  if (metadata === undefined) return cancelReason === undefined ? {} : { effect: reason };
  const json = canonicalJson(recorded(metadata));
  const bytes = Buffer.byteLength(json);
  const kept: Metadata | null = bytes > MAX_CANCEL_METADATA_BYTES ? null : JSON.parse(json);
  return kept === null || Object.keys(kept).length > MAX_CANCEL_METADATA_KEYS
    ? { effect: { ...reason, metadata: { truncated: true, bytes } }, truncatedBytes: bytes }
    : { effect: { ...reason, metadata: kept } };
}
