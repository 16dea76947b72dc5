/** What a run is about, as handlers are given it and as it is recorded. */

import type { Digest, Ref } from "../core/events.js";
import type { Attachment } from "../dispatch/recorder.js";
import type { Version } from "../dispatch/version.js";
import { canonicalJson, type Json } from "../payload/canonical-json.js";
import { digest } from "../payload/digest.js";
import type { Redactor } from "../payload/redaction.js";
import { clone } from "./clone.js";
import { recorded } from "./recorded.js";

/** Live: handlers are given copies of the event. */
export type Given = { readonly event: object; readonly context: object };

/** Of a context: the host's own things, which say nothing of the message. Handlers get the very ones, and no record holds them. */
const HANDLES: ReadonlySet<string> = new Set([
  "cfg",
  "dispatcher",
  "abortSignal",
  "turnAdoption",
  "userTurnTranscriptRecorder",
]);

/** bytes; as large as a payload may be anywhere. */
const MAX_BYTES = 64 * 1024 * 1024;

export function documentOf(given: Given, redactor: Redactor): Version<Given> {
  const context = Object.entries(given.context).filter(([key]) => !HANDLES.has(key));
  const { ref, bytes } = recordedJson(
    { context: Object.fromEntries(context), event: given.event },
    redactor,
    handlesOf(given),
  );
  return { payload: given, ref, recorded: bytes };
}

/** The context that one handler is given: its own copy, but for the host's handles. */
export function contextCopy({ context }: Given): object {
  return Object.fromEntries(
    Object.entries(context).map(([key, value]) => [key, HANDLES.has(key) ? value : clone<unknown>(value)]),
  );
}

/** The host's own things among what handlers are given. */
export function handlesOf({ context }: Given): ReadonlySet<unknown> {
  return new Set(
    Object.entries(context).flatMap(([key, value]) => (HANDLES.has(key) && typeof value === "object" ? [value] : [])),
  );
}

export type RecordedJson = { readonly ref: Ref; readonly bytes: Uint8Array };

/** The redacted copy of any value without `handles`, by reference. Never throws. */
export function recordedJson(value: unknown, redactor: Redactor, handles?: ReadonlySet<unknown>): RecordedJson {
  const json = recorded(value, handles);
  const text = canonicalJson(redactor.active ? redactor.json(json) : json);
  const bytes = Buffer.from(Buffer.byteLength(text) > MAX_BYTES ? TOO_LARGE : text);
  return { ref: refTo(digest("payload", bytes), bytes), bytes };
}

export function attachmentTo({ ref, bytes }: RecordedJson): Attachment {
  return { digest: ref.digest, bytes };
}

const TOO_LARGE = canonicalJson({ $unrecordable: "too large" } satisfies Json);

function refTo(digestOf: Digest, bytes: Uint8Array): Ref {
  return { digest: digestOf, size: bytes.byteLength, encoding: "json" };
}
