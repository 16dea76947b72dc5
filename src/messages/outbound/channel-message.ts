/** A payload as a channel may show it, and the parts in which it goes out. */

import type { HostReplyPayload } from "../facts.js";
import type { ChannelMessage, ChannelPart } from "./adapter.js";
import { mediaOf, visibleText } from "./payload.js";

/** Leaves out what is the host's own: transcripts, trust as a claim of the payload, the two ways to name media. */
export function channelMessageOf(payload: HostReplyPayload): ChannelMessage {
  const { text, presentation, delivery, replyToId, audioAsVoice, isError, trustedLocalMedia = false } = payload;
  return {
    ...(text === undefined ? {} : { text }),
    media: mediaOf(payload).map((url) => ({ url, trustedLocal: trustedLocalMedia })),
    ...(presentation === undefined ? {} : { presentation }),
    ...(delivery === undefined ? {} : { delivery }),
    ...(replyToId === undefined ? {} : { replyToId }),
    ...(audioAsVoice === undefined ? {} : { audioAsVoice }),
    ...(isError === undefined ? {} : { isError }),
  };
}

export function isEmpty({ text, media, presentation }: ChannelMessage): boolean {
  return visibleText(text) === undefined && media.length === 0 && (presentation ?? undefined) === undefined;
}

/** One part for each of several media; text and presentation go with the first. */
export function partsOf({ media, ...message }: ChannelMessage): readonly ChannelPart[] {
  const [first, ...others] = media;
  if (first === undefined) return [message];
  const { text: _, presentation: __, ...shared } = message;
  return [{ ...message, media: first }, ...others.map((one) => ({ ...shared, media: one }))];
}
