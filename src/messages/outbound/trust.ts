/** Trust in local media is the host's to give: handlers neither see it nor grant it, and keep it only for the media it was given for. */

import type { HostReplyPayload, ReplyPayload } from "../facts.js";

/** What handlers may see. */
export function withoutTrust({ trustedLocalMedia: _, ...payload }: HostReplyPayload): ReplyPayload {
  return payload;
}

/** `made`: what the handlers made of `original`. Both normalised. */
export function withTrustOf(original: HostReplyPayload, made: HostReplyPayload): HostReplyPayload {
  const payload = withoutTrust(made);
  return original.trustedLocalMedia === true && hasSameMedia(original, payload)
    ? { ...payload, trustedLocalMedia: true }
    : payload;
}

function hasSameMedia(a: ReplyPayload, b: ReplyPayload): boolean {
  const { mediaUrls: before = [] } = a;
  const { mediaUrls: after = [] } = b;
  return a.mediaUrl === b.mediaUrl && before.length === after.length && before.every((url, at) => url === after[at]);
}
