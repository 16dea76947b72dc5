/** The metadata beside a DispatchHook call. Strictly ASCII: what is foreign travels percent-encoded. */

import { Metadata } from "@grpc/grpc-js";
import { boundedReason } from "../payload/text.js";
import type { Invocation } from "./port.js";

/** bytes of one encoded value */
const MAX_VALUE = 256;

/** A value whose encoding is over 256 bytes is left out: a cut id would name something else. */
export function requestMetadata(call: Invocation): Metadata {
  const metadata = new Metadata();
  put(metadata, "hookledger-dispatch", call.dispatchId);
  put(metadata, "hookledger-session", call.session);
  put(metadata, "hookledger-turn", call.turn);
  if (call.traceparent !== undefined && TRACEPARENT.test(call.traceparent))
    metadata.set("traceparent", call.traceparent);
  return metadata;
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

function put(metadata: Metadata, name: string, value: string | undefined): void {
  if (value === undefined) return;
  const encoded = encodeURIComponent(value.toWellFormed());
  if (encoded.length <= MAX_VALUE) metadata.set(name, encoded);
}

type Reason = { readonly reason?: string; readonly warning?: string };

/** The reason a peer gave in its trailing metadata, cut to 1 024 bytes. One that cannot be read is left out, with a warning. */
export function trailingReason(trailers: Metadata): Reason {
  const values = trailers.get("hookledger-reason");
  const [value] = values;
  if (value === undefined || value === "") return {};
  if (values.length > 1) return { warning: "hookledger-reason ignored: more than one" };
  try {
    return { reason: boundedReason(decodeURIComponent(String(value))) };
  } catch {
    return { warning: "hookledger-reason ignored: not percent-encoded UTF-8" };
  }
}
