/** What a peer behind gRPC can do wrong, whether it is at an address or is a plugin. */
import type { Row } from "./judged.js";

/** Of a well-formed server. */
export const GRPC: readonly Row[] = [
  ["auto", "answered"],
  ["garbage", "invalid"],
  ["empty", "invalid"],
  ["wrong-mode", "invalid"],
  ["wrong-variant", "invalid"],
  ["unspecified", "invalid"],
  ["unknown-enum", "invalid"],
  ["two-outcomes", "invalid"],
  ["mixed-outcomes", "invalid"],
  ["empty-transform", "invalid"],
  ["changed-model", "invalid"],
  ["added-field", "invalid"],
  ["dropped-model", "invalid"],
  ["100-mib", "invalid"],
  ["resource-exhausted", "failed"],
  ["early-deadline", "failed"],
  ["internal", "failed"],
  ["unimplemented", "failed"],
  ["cancelled", "failed"],
  ["unavailable", "crashed"],
];
/** Below gRPC. */
export const WIRE: readonly Row[] = [
  ["two-messages", "invalid"],
  ["no-message", "invalid"],
  ["half-frame", "invalid"],
  ["frame-of-noise", "invalid"],
  ["huge-length", "invalid"],
  ["bad-gzip", "invalid"],
  ["compressed-identity", "invalid"],
  ["status-then-allow", "failed"],
  ["odd-status", "failed"],
  ["html", "crashed"],
  ["json", "crashed"],
  ["http-500", "crashed"],
  ["http-503-bare", "crashed"],
  ["no-status", "crashed"],
  ["rst-internal", "crashed"],
  ["rst-cancel", "crashed"],
  ["rst-mid-answer", "crashed"],
  ["close-at-once", "crashed"],
  ["close-mid-answer", "crashed"],
];
/** Within a short timeout. */
export const SLOW: readonly Row[] = [
  ["hang", "timed out"],
  ["late-400", "timed out"],
];
