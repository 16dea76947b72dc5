/** What every store judges alike about an append. */
import { HookledgerError } from "../errors.js";
import type { AppendRequest, Blob, EventDraft, StreamName } from "./port.js";

/** Bytes of one event: data, metadata and payloads as UTF-8. */
export const MAX_EVENT_BYTES = 256 * 1024;

/** Bytes of the events of one append: room is left for what a server adds to each before it holds the append against 1 MiB. */
export const MAX_APPEND_BYTES = 768 * 1024;

/**
 * Throws HL_LIMIT_EVENT for an event that is too large, HL_LIMIT_APPEND for events that are too large together, HL_USAGE for a
 * request that the port does not allow.
 */
export function checkAppend({ stream, expected, events, session }: AppendRequest): void {
  if (events.length === 0) throw new HookledgerError("HL_USAGE", "an append needs at least one event");
  if (session !== undefined) checkSession(session, expected);
  let bytes = 0;
  for (const event of events) bytes += mostBytes(event);
  if (bytes <= MAX_EVENT_BYTES) return;
  bytes = 0;
  for (const event of events) {
    const size = eventBytes(event);
    if (size > MAX_EVENT_BYTES) {
      throw new HookledgerError(
        "HL_LIMIT_EVENT",
        `an event of type ${event.type} for ${stream} is larger than ${MAX_EVENT_BYTES} bytes`,
      );
    }
    bytes += size;
  }
  if (bytes > MAX_APPEND_BYTES) {
    throw new HookledgerError(
      "HL_LIMIT_APPEND",
      `the events of an append to ${stream} are larger than ${MAX_APPEND_BYTES} bytes together`,
    );
  }
}

/** Upper bound of `eventBytes` that costs nothing: a UTF-16 unit takes at most three bytes. */
export function mostBytes({ data, metadata, payloads = "" }: EventDraft): number {
  return (data.length + metadata.length + payloads.length) * 3;
}

/** What MAX_EVENT_BYTES and MAX_APPEND_BYTES bound. */
export function eventBytes({ data, metadata, payloads = "" }: EventDraft): number {
  return Buffer.byteLength(data) + Buffer.byteLength(metadata) + Buffer.byteLength(payloads);
}

function checkSession(session: string, expected: AppendRequest["expected"]): void {
  if (expected !== "none") throw new HookledgerError("HL_USAGE", "only the first append of a stream names its session");
  if (!session.isWellFormed()) throw new HookledgerError("HL_USAGE", "a session id holds a lone surrogate");
}

/** Revision that the first event of the request gets. */
export function firstRevision(expected: AppendRequest["expected"]): number {
  return expected === "none" ? 0 : expected + 1;
}

export function conflict(stream: StreamName, expected: number | "none", found: number | undefined): HookledgerError {
  const at = found === undefined ? "does not exist" : `is at revision ${found}`;
  const wanted = expected === "none" ? "to be new" : `at revision ${expected}`;
  return new HookledgerError("HL_STORE_CONFLICT", `${stream} ${at}; the append expected it ${wanted}`);
}

/** Is this recorded event the one that the draft asks for? */
export function isSameEvent(
  recorded: { readonly id: string; readonly type: string; readonly data: string },
  draft: EventDraft,
): boolean {
  return recorded.id === draft.id && recorded.type === draft.type && recorded.data === draft.data;
}

/** Blobs are copied when the append is made: the caller may do with its bytes what it likes. */
export function withOwnBlobs(request: AppendRequest): AppendRequest {
  if (request.blobs === undefined) return request;
  return {
    ...request,
    blobs: request.blobs.map(({ digest, bytes }): Blob => ({ digest, bytes: new Uint8Array(bytes) })),
  };
}
