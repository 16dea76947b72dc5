/** Attachments: where they are, and what events say of them. */

import type { MediaFact, MediaFacts } from "../facts.js";
import { known } from "./known.js";

/** The place of an attachment in its list is its identity, in all lists alike. */
export type Attachments =
  /** Readable here as they came. */
  | { readonly state: "local"; readonly media: readonly MediaFact[] }
  /** At the provider, at least one of them. A path among these facts is the provider's: nothing here can be read by it. */
  | { readonly state: "remote"; readonly original: readonly MediaFact[] }
  /** Fetched; one that could not be had has no path in `media`. */
  | { readonly state: "staged"; readonly original: readonly MediaFact[]; readonly media: readonly MediaFact[] };

export function mediaFacts(attachments: Attachments | undefined): MediaFacts {
  switch (attachments?.state) {
    case undefined:
      return {};
    case "local":
      return listed("media", attachments.media);
    case "remote":
      return attachments.original.length === 0
        ? {}
        : { ...listed("originalMedia", attachments.original), mediaStagingPending: true };
    case "staged":
      return { ...listed("media", attachments.media), ...listed("originalMedia", attachments.original) };
  }
}

function listed<L extends "media" | "originalMedia">(list: L, facts: readonly MediaFact[]): MediaFacts {
  return facts.length === 0 ? {} : { [list]: facts.map(factOf) };
}

function factOf({ path, url, contentType, kind, transcribed, messageId, workspaceDir }: MediaFact): MediaFact {
  const fact = known({ path, url, contentType, kind, messageId, workspaceDir });
  return transcribed === true ? { ...fact, transcribed } : fact;
}
