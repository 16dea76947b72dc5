/**
 * What the content of a payload is for hooks: its text, or, where nothing but audio is sent, the hidden transcript of what is spoken.
 * A transcript is rewritten like a text and is never shown as a caption.
 */

import type { HostReplyPayload } from "../facts.js";
import { mediaOf, normalise } from "./payload.js";

export function isAudioOnly(payload: HostReplyPayload): boolean {
  return payload.text === undefined && payload.spokenText !== undefined && mediaOf(payload).length > 0;
}

export function contentOf(payload: HostReplyPayload): string {
  return payload.text ?? (isAudioOnly(payload) ? payload.spokenText : undefined) ?? "";
}

/** Null where the new content leaves nothing to be seen. */
export function withContent(payload: HostReplyPayload, content: string): HostReplyPayload | null {
  return normalise(isAudioOnly(payload) ? { ...payload, spokenText: content } : { ...payload, text: content });
}
