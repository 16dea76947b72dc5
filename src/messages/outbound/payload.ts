/** One shape of reply, whoever made it. */

import type { HostReplyPayload, ReplyPayload } from "../facts.js";

/** A reply of this text alone asks for silence. */
export const SILENT_REPLY = "NO_REPLY";

/**
 * The known fields, of their types: blank and silent texts, blank media references and empty presentations are left out, flags are
 * kept where they are true. Null where nothing would be visible: no text, no media, no presentation.
 */
export function normalise(payload: HostReplyPayload): HostReplyPayload | null {
  if (typeof payload !== "object" || payload === null) return null;
  const text = visibleText(payload.text);
  const mediaUrl = nonBlank(payload.mediaUrl);
  const mediaUrls = listed(payload.mediaUrls);
  const presentation = isFilled(payload.presentation) ? payload.presentation : undefined;
  if (text === undefined && mediaUrl === undefined && mediaUrls.length === 0 && presentation === undefined) return null;
  const delivery = payload.delivery ?? undefined;
  const replyToId = nonBlank(payload.replyToId);
  const spokenText = nonBlank(payload.spokenText);
  return {
    ...(text === undefined ? {} : { text }),
    ...(mediaUrl === undefined ? {} : { mediaUrl }),
    ...(mediaUrls.length === 0 ? {} : { mediaUrls }),
    ...(presentation === undefined ? {} : { presentation }),
    ...(delivery === undefined ? {} : { delivery }),
    ...(replyToId === undefined ? {} : { replyToId }),
    ...(payload.audioAsVoice === true ? { audioAsVoice: true } : {}),
    ...(spokenText === undefined ? {} : { spokenText }),
    ...(payload.isError === true ? { isError: true } : {}),
    ...(payload.trustedLocalMedia === true ? { trustedLocalMedia: true } : {}),
  };
}

/** Every media reference once, in order: `mediaUrl` first, unless `mediaUrls` gives it a place. */
export function mediaOf({ mediaUrl, mediaUrls = [] }: ReplyPayload): readonly string[] {
  return [...new Set(mediaUrl === undefined || mediaUrls.includes(mediaUrl) ? mediaUrls : [mediaUrl, ...mediaUrls])];
}

/** The text, where the recipient would see any. */
export function visibleText(text: unknown): string | undefined {
  const said = nonBlank(text);
  return said?.trim() === SILENT_REPLY ? undefined : said;
}

function isFilled(presentation: unknown): boolean {
  return typeof presentation === "object" && presentation !== null && Object.keys(presentation).length > 0;
}

function nonBlank(text: unknown): string | undefined {
  return typeof text === "string" && text.trim() !== "" ? text : undefined;
}

function listed(urls: unknown): readonly string[] {
  return Array.isArray(urls) ? urls.map(nonBlank).filter((url) => url !== undefined) : [];
}
