import type { Ref } from "../core/events.js";
import type { Payload } from "../payload/payload.js";
import type { Redactor } from "../payload/redaction.js";
import type { Attachment } from "./recorder.js";

/** A payload as the chain knows it: the true one for subscribers, and the copy that is recorded. */
export type Version<P = Payload> = { readonly payload: P; readonly ref: Ref; readonly recorded: Uint8Array };

/** Redacts first and digests then: the digest speaks of the recorded copy. */
export function versionOf(payload: Payload, redactor: Redactor): Version {
  const copy = redactor.active ? redactor.payload(payload) : payload;
  return { payload, recorded: copy.bytes, ref: copy.ref };
}

/** What stands beside an event that refers to it. */
export function attachmentOf({ ref, recorded }: Version<unknown>): Attachment {
  return { digest: ref.digest, bytes: recorded };
}
