/** Dispatches written into a real store event by event, each at a moment that the test names, with payloads as the recorder keeps them. */
import type { Digest, DispatchEvent, Ref } from "#src/core/events.js";
import { canonicalJson, type Json } from "#src/payload/canonical-json.js";
import { digest } from "#src/payload/digest.js";
import type { HookPayloadInput } from "#src/payload/messages.js";
import { payloadFromView } from "#src/payload/payload.js";
import type { Blob, EventDraft, EventStore, StreamName } from "#src/store/port.js";
import { encodeData } from "#src/store/record/encode.js";
import { eventIds } from "#src/store/record/event-id.js";
import { encodePayloads, metadataWriter } from "#src/store/record/metadata.js";

/** The n-th dispatch id; ids ascend with n. */
export function ulidOf(n: number): string {
  return `01K${String(n).padStart(23, "0")}`;
}

/** Bytes that some event refers to. */
export type Kept = { readonly ref: Ref; readonly bytes: Uint8Array };

export function kept(input: HookPayloadInput): Kept {
  const { ref, bytes } = payloadFromView(input);
  return { ref, bytes };
}

/** JSON as a run of message hooks keeps it; `text` spells it in another way. */
export function keptJson(value: Json, text = canonicalJson(value)): Kept {
  const bytes = new TextEncoder().encode(text);
  return { ref: { digest: digest("payload", bytes), size: bytes.length, encoding: "json" }, bytes };
}

export function configBlob(config: unknown): Blob {
  const bytes = new TextEncoder().encode(JSON.stringify(config));
  return { digest: digest("config", bytes), bytes };
}

export type Happening = { readonly atMs: number; readonly event: DispatchEvent; readonly lagMs?: number };

export function at(atMs: number, event: DispatchEvent, lagMs?: number): Happening {
  return { atMs, event, ...(lagMs === undefined ? {} : { lagMs }) };
}

export type Recording = {
  readonly n: number;
  readonly session?: string;
  readonly turn?: string;
  /** Wall clock of the start, ms since 1970. */
  readonly wall?: number;
  readonly engineVersion?: string;
  readonly happenings: readonly Happening[];
  readonly kept?: readonly Kept[];
  readonly blobs?: readonly Blob[];
  /** Revision of the first of the happenings; the ones before are in the store. */
  readonly from?: number;
};

const INLINE_BYTES = 4096;

/** Appends one dispatch, or more of it, durably. */
export async function record(store: EventStore, recording: Recording): Promise<StreamName> {
  const { n, session, turn, wall = Date.UTC(2026, 1, 28, 9, 30), happenings, from = 0 } = recording;
  const stream: StreamName = `hookdispatch-${ulidOf(n)}`;
  const idOf = eventIds(ulidOf(n));
  const payloads = new Map((recording.kept ?? []).map(({ ref, bytes }) => [ref.digest, bytes]));
  const blobs = [...(recording.blobs ?? [])];
  const textOf = metadataWriter({
    engineVersion: recording.engineVersion ?? "0.1.0",
    writer: store.writer,
    ...(session === undefined ? {} : { session }),
    ...(turn === undefined ? {} : { turn }),
  });
  const events = happenings.map(({ atMs, event, lagMs }, place): EventDraft => {
    const inline = new Map<Digest, Uint8Array>();
    for (const named of digestsIn(event)) {
      const bytes = payloads.get(named);
      payloads.delete(named);
      if (bytes === undefined) continue;
      if (bytes.byteLength <= INLINE_BYTES) inline.set(named, bytes);
      else blobs.push({ digest: named, bytes });
    }
    return {
      id: idOf(from + place),
      type: event.type,
      data: encodeData(event),
      metadata: textOf({
        at: new Date(wall + atMs).toISOString(),
        offsetNs: Math.round(atMs * 1e6),
        ...(lagMs === undefined ? {} : { lagMs }),
      }),
      ...(inline.size === 0 ? {} : { payloads: encodePayloads(inline) }),
    };
  });
  await store.append({
    stream,
    expected: from === 0 ? "none" : from - 1,
    events,
    barrier: true,
    ...(blobs.length === 0 ? {} : { blobs }),
    ...(from === 0 && session !== undefined ? { session } : {}),
  });
  return stream;
}

function digestsIn(event: DispatchEvent): readonly Digest[] {
  if (event.type === "started") return [event.input.digest];
  if (event.type !== "outcome") return [];
  const payload = "payload" in event && event.payload !== undefined ? [event.payload] : [];
  const set = "set" in event && event.set !== undefined ? Object.values(event.set) : [];
  return [...payload, ...set].map(({ digest }) => digest);
}
